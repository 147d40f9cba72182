"""What was said: the user's messages, the model's thoughts, and notices. Answers are `answers`' business.

Each widget shows a record that outlives it, so that it can be unmounted and made again. When records change is the
business of `presenter`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from .folding import Fold
from .lines import Lines, Row, rows_of
from .text import MUTED, safe

_MOST = 20
"""Lines of a user's message that are shown of a longer one."""
_PACE = 0.25
"""Seconds between two updates of a line that counts."""


@dataclass(slots=True)
class Said:
    """What the user wrote."""

    text: str
    open: bool = False


class UserText(Horizontal):
    """`❯ text`; a long one shows its beginning."""

    DEFAULT_CSS = """
    UserText { width: 1fr; height: auto; margin: 1 0; background: $foreground 5%; }
    UserText > .mark { width: 2; color: $text-accent; text-style: bold; }
    """

    def __init__(self, said: Said) -> None:
        super().__init__()
        self._said = said
        self._rows = rows_of(said.text.strip("\n"), words=True)
        self._lines = Lines(self._visible_rows())

    def compose(self) -> ComposeResult:
        yield Static(safe("❯"), classes="mark")
        yield self._lines

    def _visible_rows(self) -> list[Row]:
        hidden = len(self._rows) - _MOST
        if self._said.open or hidden <= 1:
            return self._rows
        return [*self._rows[:_MOST], Row(f"… {hidden:,} more lines, Ctrl+O", "muted")]

    @property
    def folded(self) -> bool:
        """Whether only the beginning is shown."""
        return not self._said.open

    def fold(self, folded: bool) -> None:
        """Shows the beginning, or all."""
        self._said.open = not folded
        self._lines.set_rows(self._visible_rows())

    def on_click(self, event: events.Click) -> None:
        """Shows more or less of a long message."""
        if len(self._rows) > _MOST and not self.screen.selections:
            event.stop()
            self.fold(not self.folded)


@dataclass(slots=True)
class Thought:
    """What the model thought aloud in one answer."""

    pieces: list[str] = field(default_factory=list[str])
    length: int = 0
    done: bool = False
    open: bool = False

    def add(self, piece: str) -> None:
        """Takes the next piece."""
        self.pieces.append(piece)
        self.length += len(piece)

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self.pieces)


class Thinking(Fold):
    """One dim line, `thinking… 1.2k characters`, that opens to the text."""

    DEFAULT_CSS = "Thinking Lines { color: $text-muted; }"

    def __init__(self, thought: Thought) -> None:
        super().__init__(thought)
        self._thought = thought
        self._due: Timer | None = None

    def head(self, width: int) -> Content:
        word = "thought" if self._thought.done else "thinking…"
        return safe(f"  {word} {_amount(self._thought.length)} characters", f"{MUTED} italic")

    def body(self, *, whole: bool) -> Iterable[Widget]:
        if whole:
            yield Lines(rows_of(self._thought.text.strip("\n"), "muted", words=True))

    def show(self) -> None:
        """Shows what the record says now; while it grows, a few times a second at most."""
        if self._thought.done and self.is_mounted:
            self._show()
        elif self._due is None and self.is_mounted:
            self._due = self.set_timer(_PACE, self._show)

    def _show(self) -> None:
        self._due = None
        self.show_head()
        for lines in self.query(Lines):
            lines.set_rows(rows_of(self._thought.text.strip("\n"), "muted", words=True))


def _amount(number: int) -> str:
    return f"{number:,}" if number < 1_000 else f"{number / 1_000:.1f}k"


class NoticeLine(Static):
    """A line or two that a person should know."""

    DEFAULT_CSS = """
    NoticeLine { width: 1fr; height: auto; padding-left: 2; color: $text-muted; }
    NoticeLine.-error { color: $text-error; }
    NoticeLine.-warning { color: $text-warning; }
    """

    def __init__(self, text: str, kind: Literal["info", "warning", "error"] = "info") -> None:
        super().__init__(safe(text), classes=f"-{kind}", markup=False)
