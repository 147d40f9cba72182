"""Completion: which word before the caret can be completed, with what, and the list above the input that shows it.

The keys are the prompt's business. The list also shows earlier prompts while they are searched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size, clamp
from textual.message import Message
from textual.widget import Widget

from ..slash import Slash, complete_slash
from .file_index import FileIndex
from .pastes import clean
from .text import one_line, safe

ROWS = 8
"""Rows that the list shows at once."""
OFFERED = 50
"""Choices that are offered at most."""
_FILE = re.compile(r"""(?:^|[\s(\[{"'`,])@([^\s@]*)$""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """The word before the caret, if it can be completed."""

    kind: Literal["command", "file"]
    letters: str
    """What was typed after the sign."""
    start: int
    """The sign's column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A row of the list."""

    text: str
    """What takes the place of the word."""
    shown: str
    note: str = ""
    exact: bool = False
    """It was typed in full already."""


def word_before(line: str, row: int) -> Word | None:
    """The word at the end of `line`, the part before the caret of the input's line `row` (from 0)."""
    if row == 0 and line.startswith("/") and not re.search(r"\s", line):
        return Word(kind="command", letters=line[1:], start=0)
    if found := _FILE.search(line):
        return Word(kind="file", letters=found[1], start=found.start(1) - 1)
    return None


def command_choices(letters: str) -> list[Choice]:
    """Commands that may be meant, an exact name first."""
    return [_command(slash, letters) for slash in complete_slash(letters)]


def _command(slash: Slash, letters: str) -> Choice:
    return Choice(
        text=f"/{slash.name}{' ' if slash.argument else ''}",
        shown=f"/{slash.name} {slash.argument}".rstrip(),
        note=slash.help,
        exact=letters in (slash.name, *slash.aliases),
    )


def file_choices(letters: str, paths: Iterable[str]) -> list[Choice]:
    """A choice for each path; one with a space in it is quoted, one that cannot be shown as it is is left out."""
    return [
        Choice(text=f'@"{path}" ' if re.search(r"\s", path) else f"@{path} ", shown=path, exact=path == letters)
        for path in paths
        if clean(path) == path
    ]


def prompt_choices(texts: Iterable[str]) -> list[Choice]:
    """A choice for each earlier prompt, on one line each."""
    return [Choice(text=text, shown=one_line(text)) for text in texts]


class Choices(Widget):
    """The list above the input."""

    class Toggled(Message):
        """The list was opened or closed: Esc now means something else."""

        def __init__(self, is_open: bool) -> None:
            super().__init__()
            self.is_open = is_open

    class Picked(Message):
        """A row was clicked: it is the chosen one now."""

    DEFAULT_CSS = """
    Choices { display: none; height: auto; padding: 0 2; color: $text-muted; }
    Choices.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._choices: Sequence[Choice] = ()
        self._title = ""
        self._at = 0
        self._top = 0
        self.moved = False
        """The chosen row is not simply the first one."""

    @property
    def is_open(self) -> bool:
        """The list is on the screen."""
        return self.has_class("-open")

    @property
    def chosen(self) -> Choice | None:
        """The marked row, if there is one."""
        return self._choices[self._at] if self._choices else None

    def offer(self, choices: Sequence[Choice], title: str = "") -> None:
        """Shows choices, the first one marked; with neither choices nor title the list closes."""
        self._choices, self._title = choices, title
        self._at = self._top = 0
        self.moved = False
        self._show(bool(choices or title))

    def close(self) -> None:
        """Takes the list away."""
        self.offer(())

    def move(self, by: int) -> None:
        """Marks another row; from the last one on to the first and back."""
        if self._choices:
            self._mark((self._at + by) % len(self._choices))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(ROWS, len(self._choices)) + bool(self._title)

    def render(self) -> Content:
        width = self.content_size.width
        rows = self._choices[self._top : self._top + ROWS]
        left = min(max((cell_len(row.shown) for row in rows), default=0), max(width // 2, width - 60))
        left = left if any(row.note for row in rows) else width - 2
        lines = [self._row(row, row is self.chosen, left, width) for row in rows]
        title = [safe(self._title).truncate(width, ellipsis=True)] if self._title else []
        return Content("\n").join([*title, *lines])

    def on_click(self, event: events.Click) -> None:
        row = event.y - bool(self._title) + self._top
        if 0 <= row < len(self._choices):
            self._mark(row)
            self.post_message(self.Picked())

    def _row(self, choice: Choice, marked: bool, left: int, width: int) -> Content:
        name = safe(choice.shown).truncate(left, ellipsis=True, pad=True)
        line = Content.assemble("▸ " if marked else "  ", name, "  " if choice.note else "", safe(choice.note))
        line = line.truncate(width, ellipsis=True)
        return line.stylize("$text-accent") if marked else line

    def _mark(self, row: int) -> None:
        self._at = row
        self._top = clamp(self._top, row - ROWS + 1, row)
        self.moved = True
        self.refresh()

    def _show(self, is_open: bool) -> None:
        if is_open != self.is_open:
            self.set_class(is_open, "-open")
            self.post_message(self.Toggled(is_open))
        self.refresh(layout=True)


class Completer:
    """Offers in the list what may be meant by the word before the caret."""

    def __init__(self, choices: Choices, listed: Callable[[], object]) -> None:
        """`listed` is called, by a thread, when a new list of files is there."""
        self.files: FileIndex | None = None
        self._choices = choices
        self._listed = listed
        self._refused: tuple[int, int] | None = None
        """Row and column of the word for which the list was closed."""

    def offer(self, line: str, row: int) -> None:
        """Offers for the word at the end of `line`, the part before the caret; closes the list if there is none."""
        word = word_before(line, row)
        if word is None or (row, word.start) != self._refused:
            self._refused = None
        if word is None or self._refused:
            self._choices.close()
        elif word.kind == "command":
            self._choices.offer(command_choices(word.letters))
        elif self.files:
            self.files.refresh(self._listed)
            found = file_choices(word.letters, self.files.best(word.letters, OFFERED))
            self._choices.offer(found, title="" if self.files.ready else "looking for files …")

    def refuse(self, line: str, row: int) -> None:
        """Offers nothing more for this word."""
        word = word_before(line, row)
        self._refused = (row, word.start) if word else None
