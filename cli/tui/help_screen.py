"""`?` and `/help`: the keys and the commands, both from their data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from ..slash import SLASH, Slash
from .keys import KEYS
from .rows import SCROLLBAR, Pairs
from .text import MUTED, safe


class HelpScreen(Screen[None]):
    """Two lists, one below the other; they scroll where the screen is small."""

    DEFAULT_CSS = f"""
    HelpScreen {{ padding: 0 1; }}
    HelpScreen > VerticalScroll {{ height: 1fr; {SCROLLBAR} }}
    HelpScreen .title {{ color: $text-accent; text-style: bold; }}
    HelpScreen .table {{ padding: 0 0 0 2; margin: 0 0 1 0; }}
    HelpScreen > #help-keys {{ height: 1; margin: 1 0 0 0; color: $text-muted; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "close", show=False)]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(safe("Keys"), classes="title")
            yield Static(_table(KEYS), classes="table")
            yield Static(safe("Commands"), classes="title")
            yield Static(_table((_usage(slash), _meaning(slash)) for slash in SLASH), classes="table")
        yield Static(safe("↑↓ PgUp PgDn scroll   Esc back"), id="help-keys")

    def on_mount(self) -> None:
        """Lets the keys scroll."""
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        """Goes back."""
        self.dismiss(None)


def _table(pairs: Iterable[tuple[str, str]]) -> Pairs:
    return Pairs((Content(name), Content.styled(meaning, MUTED)) for name, meaning in pairs)


def _usage(slash: Slash) -> str:
    return f"/{slash.name} {slash.argument}".rstrip()


def _meaning(slash: Slash) -> str:
    names = ", ".join(f"/{alias}" for alias in slash.aliases)
    return f"{slash.help}; also {names}" if names else slash.help
