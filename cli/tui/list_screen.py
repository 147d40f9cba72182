"""A titled text to scroll in: skills, memory files, a diff. Whatever it holds is shown as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from .diffs import patch_rows
from .lines import Lines, Row
from .rows import SCROLLBAR
from .text import MUTED, one_line, safe


class ListScreen(Screen[None]):
    """The text, as wide as the screen; arrows, page keys and the wheel scroll."""

    DEFAULT_CSS = f"""
    ListScreen {{ padding: 0 1; }}
    ListScreen > #list-head {{ height: auto; margin: 0 0 1 0; }}
    ListScreen > VerticalScroll {{ height: 1fr; {SCROLLBAR} }}
    ListScreen > #list-keys {{ height: 1; margin: 1 0 0 0; color: $text-muted; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", show=False)]

    def __init__(self, title: str, lines: Iterable[str], *, diff: bool = False, keys: str = "") -> None:
        """With `diff`, lines that were added, removed, or say where we are have colours of their own. `keys` are
        those that a kind of list has besides."""
        super().__init__()
        self._title = title
        self._keys = f"{keys}   " if keys else ""
        self._rows = list(patch_rows(lines) if diff else (Row(line, words=True) for line in lines))

    def compose(self) -> ComposeResult:
        count = f"{len(self._rows):,} line{'' if len(self._rows) == 1 else 's'}"
        head = Content.assemble(safe(one_line(self._title, 60), "bold $text-accent"), "  ", (count, MUTED))
        yield Static(head, id="list-head")
        with VerticalScroll():
            yield Lines(self._rows)
        yield Static(safe(f"{self._keys}↑↓ PgUp PgDn scroll   Esc back"), id="list-keys")

    def on_mount(self) -> None:
        """Lets the keys scroll."""
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        """Goes back."""
        self.dismiss(None)
