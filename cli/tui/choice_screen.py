"""A question with a few answers, each with a key of its own; Esc is none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from .rows import Pairs
from .text import MUTED, safe


class ChoiceScreen(Screen["str | None"]):
    """Gives the key that was pressed, or None."""

    DEFAULT_CSS = """
    ChoiceScreen { padding: 0 1; }
    ChoiceScreen > Static { height: auto; margin: 0 0 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", show=False)]

    def __init__(self, title: str, text: str, choices: Sequence[tuple[str, str]]) -> None:
        """`choices` are keys and what they mean."""
        super().__init__()
        self._title = title
        self._said = text
        self._choices = choices

    def compose(self) -> ComposeResult:
        yield Static(safe(self._title, "bold $text-accent"))
        yield Static(safe(self._said))
        pairs = [(key, meaning) for key, meaning in (*self._choices, ("Esc", "leave all as it is"))]
        yield Static(Pairs((Content.styled(key, "bold $text-accent"), safe(meaning, MUTED)) for key, meaning in pairs))

    def on_key(self, event: events.Key) -> None:
        """Takes the keys of the choices."""
        if any(event.character == key for key, _ in self._choices):
            event.stop()
            self.dismiss(event.character)

    def action_close(self) -> None:
        """Goes back; nothing was chosen."""
        self.dismiss(None)
