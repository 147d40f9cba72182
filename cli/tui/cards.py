"""Tool cards: a call in one line, with what came of it below when that is worth seeing.

```
● read_file  src/billing/invoice.py  412 lines · ~4.1k tokens                    0.0 s
✗ $ pytest -x  exit 1 · 214 lines                                               14.2 s
```

● the model has the result whole, ◐ as a pointer, ○ no longer (archived), ✗ it failed, ◌ it has not ended.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from ...agent.backends.terminal import plain as shown_by_terminal
from ...agent.by_user import is_by_user
from .diffs import diff_rows
from .folding import Fold
from .lines import Lines, Row, rows_of
from .text import MUTED, one_line, spread

if TYPE_CHECKING:
    from ...context.messages import ToolCall

State = Literal["arriving", "pending", "asking", "running", "done", "failed", "denied", "interrupted"]
ENDED: frozenset[State] = frozenset({"done", "failed", "denied", "interrupted"})

_PEEK = 12
"""Lines of a failure that are shown while its card is closed."""
_PEEK_OF_USER = 30
"""The same of the user's own commands."""
_TAIL_ROWS = 5
"""Lines of a running tool's output that are shown while its card is closed."""
_TAIL = 16_384
"""Bytes of a running tool's output that are kept for that."""
_PACE = 0.1
"""Seconds between two updates while output or a call arrives."""
_WORDS: dict[State, str] = {"pending": "waits", "asking": "waits for your answer", "interrupted": "interrupted"}
_SUBJECT = 24
"""Cells that the subject keeps beside a long summary."""
_EXIT = re.compile(r"\[exit code \d+; directory .*\]")
"""The last line of a command's result."""


@dataclass(slots=True)
class Card:
    """A call and what came of it so far."""

    call: ToolCall
    state: State = "pending"
    pointer: bool = False
    """The model has the result as a pointer."""
    archived: bool = False
    """The result left the view."""
    summary: str = ""
    """For people: `412 lines`; with the reason where it was denied."""
    size: str = ""
    """How long the result is, where that matters: `~4.1k tokens`."""
    seconds: float | None = None
    result: str = ""
    """The result as the model sees it."""
    starts: tuple[int, ...] = ()
    """The lines of the file where the edits begin."""
    tail: bytes = b""
    """The end of the output while the tool runs."""
    began: float | None = None
    """On the monotonic clock."""
    arrived: int = 0
    """Characters of the call's arguments that have come while the model writes it."""
    open: bool = False

    def start(self) -> None:
        """The tool runs."""
        self.state, self.began = "running", self.began or time.monotonic()

    def put_out(self, data: bytes) -> None:
        """The tool wrote something."""
        self.tail = (self.tail + data)[-_TAIL:]

    def end(self, state: State) -> None:
        """The call has come to an end, unless it had one before."""
        if self.state not in ENDED:
            self.state = state
        self.tail = b""

    @property
    def glyph(self) -> tuple[str, str]:
        """The sign in front, and its colour."""
        if self.state not in ENDED:
            return "◌", "$text-accent" if self.state == "running" else MUTED
        if self.archived:
            return "○", MUTED
        if self.state != "done":
            return "✗", "$text-error"
        return ("◐" if self.pointer else "●"), "$text-accent"

    @property
    def detail(self) -> str:
        """What is said behind the subject."""
        if self.state == "arriving":
            return f"is being written, {self.arrived:,} characters"
        size = f"{self.size} → pointer".lstrip() if self.pointer else self.size
        archived = "archived" if self.archived else ""
        return " · ".join(part for part in (self.summary or _WORDS.get(self.state, ""), size, archived) if part)

    @property
    def time(self) -> str:
        """How long it took, or has been running."""
        if self.state == "running" and self.began is not None:
            return _duration(int(time.monotonic() - self.began))
        return "" if self.seconds is None else _duration(self.seconds)


def _duration(seconds: float) -> str:
    if seconds >= 60:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"
    return f"{seconds} s" if isinstance(seconds, int) else f"{seconds:.1f} s"


def titled(call: ToolCall) -> tuple[str, str]:
    """The name to show for a call, and what it is about."""
    arguments = call.arguments
    match call.name, arguments:
        case "execute", {"command": str(command)}:
            return "$", command
        case ("grep" | "glob") as name, {"pattern": str(pattern)}:
            path = arguments.get("path")
            return name, f'"{pattern}"' + (f"  {path}" if isinstance(path, str) else "")
        case name, {"path": str(path)}:
            return name, path
        case name, _:
            return name, next((value for value in arguments.values() if isinstance(value, str)), "")


class ToolCard(Fold):
    """One call."""

    DEFAULT_CSS = """
    ToolCard.-archived { color: $text-muted; }
    ToolCard > .fold--body { border-left: vkey $foreground 20%; padding-left: 1; }
    """

    def __init__(self, card: Card) -> None:
        super().__init__(card)
        self._card = card
        self._state = ""
        self._due: Timer | None = None
        self._clock: Timer | None = None

    def begin(self) -> None:
        self._follow_state()

    def head(self, width: int) -> Content:
        card = self._card
        glyph, colour = card.glyph
        name, subject = (one_line(text) for text in titled(card.call))
        detail = one_line(card.detail)
        room = max(_SUBJECT, width - cell_len(name + detail + card.time) - 8)
        left = Content.assemble(
            (f"{glyph} ", colour),
            (name, MUTED if name == "$" or card.archived else "bold"),
            " " if name == "$" else "  ",
            Content(subject).truncate(room, ellipsis=True),
            "  ",
            (detail, "$text-error" if card.state in ("failed", "denied") else MUTED),
        )
        return spread(left, card.time, width)

    def body(self, *, whole: bool) -> Iterable[Widget]:
        rows = self._rows(whole=whole)
        if rows:
            yield Lines(rows)

    def _rows(self, *, whole: bool) -> list[Row]:
        card = self._card
        if card.state not in ENDED:
            rows = rows_of(shown_by_terminal(card.tail).rstrip("\n")) if card.tail else []
            return rows if whole else rows[-_TAIL_ROWS:]
        if card.state == "done" and not is_by_user(card.call.id):
            return (diff_rows(card.call.name, card.call.arguments, lines=card.starts) or _result(card)) if whole else []
        return _result(card) if whole else _peek(card)

    def show(self) -> None:
        """Shows what the record says now; while output comes, a few times a second."""
        if not self.is_mounted:
            return
        if self._card.state != self._state:
            self._follow_state()
        elif self._due is None:
            self._due = self.set_timer(_PACE, self._show_more)

    def _show_more(self) -> None:
        self._due = None
        rows = self._rows(whole=not self.folded)
        lines = self.query(Lines)
        if lines and rows:
            lines.first().set_rows(rows)
        elif rows or lines:
            self.show_body()
        self.set_class(self._card.archived, "-archived")
        self.show_head()

    def _follow_state(self) -> None:
        """Classes, clock and body of a new state."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        self.remove_class(f"-{self._state}")
        self._state = self._card.state
        self.add_class(f"-{self._state}")
        self.set_class(self._card.archived, "-archived")
        if self._clock is not None:
            self._clock.stop()
            self._clock = None
        if self._state == "running":
            self._clock = self.set_interval(1, self.show_head)
        self.show_body()
        self.show_head()


def _result(card: Card) -> list[Row]:
    return rows_of(card.result.rstrip("\n")) if card.result.strip() else []


def _peek(card: Card) -> list[Row]:
    """The part that tells most of a failure, or of a command of the user's own, who wants to see what it says: of a
    command the end, of all else the beginning."""
    by_user = is_by_user(card.call.id)
    if card.state != "failed" and not by_user:
        return []  # the line says it all
    rows = _result(card)
    if len(rows) == 1 and rows[0].text.startswith(card.summary):
        return rows if rows[0].text.rstrip(".") != card.summary else []
    if card.call.name == "execute" and len(rows) > 1 and _EXIT.fullmatch(rows[-1].text):
        rows = rows[:-1]  # the head says it
    most = _PEEK_OF_USER if by_user else _PEEK
    hidden = len(rows) - most
    if hidden <= 1:
        return rows
    more = Row(f"… {hidden:,} lines, Ctrl+O", "muted")
    return [more, *rows[-most:]] if card.call.name == "execute" else [*rows[:most], more]
