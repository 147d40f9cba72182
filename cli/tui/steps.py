"""What the context layer did, a line each: compactions, which open to their summary, and smaller steps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from ..gauge import tokens
from ..overview import shown_folder
from .folding import Fold
from .lines import Lines, Row
from .text import FAINT, one_line, safe, visible

if TYPE_CHECKING:
    from ...context.entries import Compacted

_RULE = 7
"""Cells that the rule around a line takes at least."""
_WIDTH = 72
"""Cells that a table in a summary may take."""
_REQUEST = 200
"""Characters of a kept request in the list of them."""
_WHO = {"model": "by the model", "harness": "from the log, without a model"}
_WHY = {"trigger": "the window was filling up", "user": "you asked for it", "model": "the model asked for it"}


@dataclass(slots=True)
class Step:
    """A compaction and what the screen knows of it."""

    number: int
    entry: Compacted
    archive: str
    """Absolute path where it is known."""
    seconds: float
    window: int | None
    """Tokens; None where it is not known."""
    requests: tuple[str, ...]
    """Texts of the requests that the view still has word for word."""
    asked: int
    """How many requests there were so far."""
    cost: float | None = None
    """US dollars, where they are known."""
    undone: bool = False
    newest: bool = True
    """Only the newest compaction can be taken back."""
    open: bool = False

    def lines(self) -> tuple[str, ...]:
        """All in one line, and shorter ones for when there is no room for it."""
        line = self._line(" tokens")
        hint = [] if self.open else [f"{line} · Enter opens", f"{self._line('')} · Enter opens"]
        return *hint, line, self._line("")

    def _line(self, unit: str) -> str:
        before, after = self.entry.tokens_before, self.entry.tokens_after
        share = f" ({before / self.window:.0%} → {after / self.window:.0%})" if self.window else ""
        share = share.replace("% →", " →").replace("%)", " %)")
        seconds = [f"{self.seconds:.0f} s"] if self.seconds >= 0.5 else []
        took = " ".join([*seconds, *([f"${self.cost:.2f}"] if self.cost else [])])
        parts = [
            f"compaction {self.number}" + (", taken back" if self.undone else ""),
            f"{tokens(before)} → {tokens(after)}{unit}{share}",
            f"{len(self.requests)}/{self.asked} requests kept",
            took,
        ]
        return " · ".join(part for part in parts if part)


class StepLine(Fold):
    """A compaction. Enter or a click opens it, `u` asks to take it back."""

    DEFAULT_CSS = """
    StepLine { margin: 1 0; color: $text-muted; }
    StepLine > .fold--body { margin-left: 3; }
    StepLine.-undone > Head { text-style: dim; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("u", "undo", "take it back", show=False)]

    class UndoWanted(Message):
        """The user wants the compaction to be taken back."""

        def __init__(self, compaction_id: str) -> None:
            super().__init__()
            self.compaction_id = compaction_id

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self._step = step

    def head(self, width: int) -> Content:
        lines = self._step.lines()
        return ruled(next((line for line in lines if cell_len(line) <= width - _RULE), lines[-1]), width)

    def body(self, *, whole: bool) -> Iterable[Widget]:
        if whole:
            yield Lines(_rows(self._step))

    def show(self) -> None:
        """Shows what the record says now."""
        if self.is_mounted:
            self.set_class(self._step.undone, "-undone")
            self.show_head()
            self.show_body()

    def begin(self) -> None:
        self.show()

    def action_undo(self) -> None:
        """Asks for it, if it can be done."""
        if self._step.newest and not self._step.undone:
            self.post_message(self.UndoWanted(self._step.entry.id))


def _rows(step: Step) -> list[Row]:
    entry = step.entry
    why = f"; {_WHY[entry.reason]}" if entry.reason in _WHY else ""
    rows = [
        Row(f"{entry.messages:,} messages archived{why}", "muted"),
        Row(f"archive: {shown_folder(Path(step.archive))}", "muted", words=True),
    ]
    for word, paths in (("changed", entry.files_changed), ("read", entry.files_read)):
        if paths:
            rows.append(Row(f"files {word}: {', '.join(paths)}", "muted", words=True))
    rows += [Row(""), Row(f"Requests kept word for word, {len(step.requests)} of {step.asked}")]
    requests = (one_line(text[:_REQUEST]) for text in step.requests)
    rows += [Row(text, "muted", first="❯ ", rest="  ", words=True) for text in requests]
    rows += [Row(""), Row(f"Summary, {_WHO[entry.by]}"), *_summary(entry.summary)]
    if entry.reattached:
        rows += [Row(""), Row("Kept from the earlier summary, which this one had lost")]
        rows += [Row(one_line(line), "muted", first="- ", rest="  ", words=True) for line in entry.reattached]
    if step.newest and not step.undone:
        rows += [Row(""), Row("u takes it back")]
    return rows


def _summary(text: str) -> Iterator[Row]:
    """The rows of a summary, which is Markdown."""
    from .blocks import markdown, rows_from  # late: the first frame does not wait for the parser

    for row in rows_from(markdown().parse(visible(text)), _WIDTH):
        yield replace(row, kind="muted") if row.kind == "plain" else row


def ruled(text: str, width: int) -> Content:
    """`── text ──────`, up to the edge."""
    line = one_line(text, max(0, width - _RULE))
    rest = max(0, width - cell_len(line) - 4)
    return Content.assemble(("── ", FAINT), line, (" " + "─" * rest, FAINT))


class QuietLine(Widget):
    """A step that needed no model, or another that needs no more than a line."""

    DEFAULT_CSS = "QuietLine { width: 1fr; height: 1; margin: 1 0; color: $text-muted; }"

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def render(self) -> Content:
        return ruled(self._text, self.content_size.width)


class ProgressLine(Static):
    """While a compaction runs."""

    DEFAULT_CSS = "ProgressLine { width: 1fr; height: auto; margin: 1 0; color: $text-muted; }"

    def __init__(self, messages: int, began: float) -> None:
        """`began` is on the monotonic clock."""
        super().__init__(markup=False)
        self._messages = messages
        self._began = began
        self._clock: Timer | None = None

    def on_mount(self) -> None:
        """Counts the seconds."""
        self._tick()
        self._clock = self.set_interval(1, self._tick)

    def _tick(self) -> None:
        seconds = int(time.monotonic() - self._began)
        text = f"compacting {self._messages:,} messages… {seconds} s · Esc stops it with nothing changed"
        self.update(safe(text))
