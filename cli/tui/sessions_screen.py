"""The list of sessions: type to filter, Enter picks one. What a row says is read by `cli.listings`, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static
from textual.widgets.option_list import Option

from .rows import ChoiceList, Line
from .text import MUTED, one_line, safe

if TYPE_CHECKING:
    from ...agent.workspace import Workspace
    from ..listings import SessionRow

_FIRST, _BATCH = 50, 200
"""Rows that are shown at once, and then together."""


class SessionsScreen(Screen["str | None"]):
    """Gives the id of the session that was picked, or None."""

    DEFAULT_CSS = """
    SessionsScreen { padding: 0 1; }
    SessionsScreen > Static { height: auto; }
    SessionsScreen > Input { height: 1; border: none; padding: 0 1; margin: 1 0; background: $foreground 6%; }
    SessionsScreen > Input:focus { border: none; background: $foreground 12%; }
    SessionsScreen > #sessions-columns { padding: 0 2 0 1; }
    SessionsScreen > ChoiceList { height: 1fr; scrollbar-gutter: stable; }
    SessionsScreen > #sessions-keys { margin: 1 0 0 0; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", show=False),
        *(Binding(key, f"move('{key}')", show=False, priority=True) for key in ("up", "down", "pageup", "pagedown")),
    ]

    def __init__(self, workspace: Workspace, *, current: str | None = None) -> None:
        """`current` is the session that is open here."""
        super().__init__()
        self._workspace = workspace
        self._current = current
        self._rows: list[SessionRow] = []
        self._complete = False

    def compose(self) -> ComposeResult:
        yield Static(id="sessions-head")
        line = Input(placeholder="type to filter")
        line.cursor_blink = False
        yield line
        yield Static(id="sessions-columns")
        rows = ChoiceList()
        rows.can_focus = False  # the line keeps the focus, so that typing always filters
        yield rows
        yield Static(safe("↑↓ move   Enter go on with it   Esc back"), id="sessions-keys")

    @work
    async def on_mount(self) -> None:
        """Reads the rows and shows them as they come."""
        from ..listings import each_session

        columns = f"{'last':>12}{'said':>7}{'size':>9}{'comp.':>7}  {'ended':<11}"
        self.query_one("#sessions-columns", Static).update(Line(Content(""), Content.styled(columns, MUTED)))
        self._show()
        rows = each_session(self._workspace)
        while batch := await asyncio.to_thread(_next, rows, _BATCH if self._rows else _FIRST):
            self._rows += batch
            self._show(batch)
        self._complete = True
        self._show([])

    def _show(self, new: list[SessionRow] | None = None) -> None:
        """Shows the rows that fit the filter: all anew, or `new` ones below those that are there."""
        choices = self.query_one(ChoiceList)
        rows = [row for row in (self._rows if new is None else new) if self._fits(row)]
        options = [Option(_line(row, self._current), id=row["id"]) for row in rows]
        if new is None:
            choices.set_options(options)
        else:
            choices.add_options(options)
        if choices.highlighted is None and choices.option_count:
            choices.highlighted = 0
        self.query_one("#sessions-head", Static).update(self._head(choices.option_count))

    def _head(self, shown: int) -> Content:
        if not self._complete:
            said = f"{len(self._rows)} so far …"
        elif not self._rows:
            said = "There is none in this workspace yet."
        elif shown == len(self._rows):
            said = f"{shown} in this workspace"
        else:
            said = f"{shown} of {len(self._rows)} fit"
        return Content.assemble(("Sessions", "bold $text-accent"), "  ", (said, MUTED))

    def _fits(self, row: SessionRow) -> bool:
        """Whether every word that was typed is in the title, or begins the id."""
        words = self.query_one(Input).value.casefold().split()
        title = row["title"].casefold()
        return all(word in title or row["id"].startswith(word) for word in words)

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        self._show()

    def action_move(self, key: str) -> None:
        """Moves the cursor of the list."""
        choices = self.query_one(ChoiceList)
        moves = {"up": choices.action_cursor_up, "down": choices.action_cursor_down}
        moves |= {"pageup": choices.action_page_up, "pagedown": choices.action_page_down}
        moves[key]()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        option = self.query_one(ChoiceList).highlighted_option
        if option is not None:
            self.dismiss(option.id)

    @on(ChoiceList.OptionSelected)
    def _clicked(self, event: ChoiceList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_id)

    def action_close(self) -> None:
        """Goes back with nothing picked."""
        self.dismiss(None)


def _next(rows: Iterator[SessionRow], count: int) -> list[SessionRow]:
    from ...context.storage import StorageError

    try:
        return list(islice(rows, count))
    except (StorageError, OSError):
        return []


def _line(row: SessionRow, current: str | None) -> Line:
    from ..last_session import ENDED, ago

    ended = "open here" if row["id"] == current else ENDED.get(row["ended"], row["ended"])
    numbers = f"{ago(row['time']):>12}{row['messages']:>7,}{_size(row['size']):>9}{row['compactions'] or '':>7}"
    title = safe(one_line(row["title"], 200)) if row["title"] else safe("(nothing asked)", MUTED)
    return Line(title, Content.assemble((numbers, MUTED), f"  {one_line(ended, 11):<11}"))


def _size(size: int) -> str:
    """Bytes in at most seven characters: `940 B`, `12 kB`, `3.4 MB`."""
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:.0f} kB" if size < 999_500 else f"{size / 1_000_000:.1f} MB"
