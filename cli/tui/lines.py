"""Long text, row by row: only what is on the screen is rendered, so that ten thousand rows cost no more than ten.

What the rows say is the business of `cards`, `diffs` and, for Markdown, `blocks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar, Literal

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from textual.content import Content, Span
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from .text import MUTED, visible, visible_line

Kind = Literal["plain", "muted", "added", "removed", "error", "code"]
_WORD = re.compile(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of text as it came; whatever it holds is made visible when it is shown."""

    text: str
    kind: Kind = "plain"
    spans: tuple[Span, ...] = ()
    """Styles of parts of the text, which must be visible already."""
    first: str = ""
    """Stands before the text, in its first line on the screen."""
    rest: str = ""
    """The same, as long, in the lines below."""
    words: bool = False
    """Lines break between words; else like a terminal's, where there is no more room."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the screen: characters `start` to `end` of row `row`."""

    row: int
    start: int
    end: int


def rows_of(text: str, kind: Kind = "plain", *, words: bool = False) -> list[Row]:
    """The rows of `text`; `words` for what people read as sentences."""
    return [Row(line, kind, words=words) for line in visible(text).split("\n")]


def wrapped(text: str, width: int, *, words: bool) -> Iterator[tuple[int, int]]:
    """Where the lines of `width` cells begin and end that a visible row takes."""
    if (len(text) <= width and text.isascii()) or cell_len(text) <= width or width <= 0:
        yield 0, len(text)
        return
    ends = _word_ends(text, width) if words else list(accumulate(map(len, chop_cells(text, width))))
    yield from pairwise((0, *ends))


def _word_ends(text: str, width: int) -> list[int]:
    """The ends of lines that break between words; a word that is longer than a line is broken too."""
    ends: list[int] = []
    used = len(text) - len(text.lstrip())
    for word in _WORD.finditer(text):
        if used + cell_len(word[0].rstrip()) > width and word.start():
            ends.append(word.start())
            used = 0
        pieces = chop_cells(word[0], width) if cell_len(word[0].rstrip()) > width else [word[0]]
        ends += [word.start() + end for end in accumulate(map(len, pieces[:-1]))]
        used = cell_len(pieces[-1]) + (used if len(pieces) == 1 else 0)
    return [*ends, len(text)]


COMPONENTS = frozenset(
    {
        "lines--muted",
        "lines--added",
        "lines--added-mark",
        "lines--removed",
        "lines--removed-mark",
        "lines--error",
        "lines--code",
    }
)


def css(name: str) -> str:
    """The style sheet of a widget class that shows rows."""
    return f"""
    {name} {{
        width: 1fr; height: auto; color: $text;
        & > .lines--muted {{ color: $text-muted; }}
        & > .lines--added {{ color: $text-success; background: $success 8%; }}
        & > .lines--removed {{ color: $text-error; background: $error 8%; }}
        & > .lines--added-mark {{ background: $success 30%; text-style: bold; }}
        & > .lines--removed-mark {{ background: $error 30%; text-style: bold; }}
        &:nocolor > .lines--added-mark, &:nocolor > .lines--removed-mark {{ text-style: bold underline; }}
        & > .lines--error {{ color: $text-error; }}
        & > .lines--code {{ background: $foreground 5%; }}
    }}
    """


class RowsWidget(Widget):
    """What shows rows; `Lines` is the plain one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENTS)

    _rows: Sequence[Row] = ()
    _lines: tuple[int, list[_Line]] = (0, [])
    """The lines of the screen, and the width that they were made for."""

    def set_rows(self, rows: Iterable[Row]) -> None:
        """Shows other rows."""
        self._rows = _shown(rows)
        self._lines = (0, [])
        self.refresh(layout=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines_at(width))

    def _lines_at(self, width: int) -> list[_Line]:
        if self._lines[0] != width:
            lines = [
                _Line(at, start, end)
                for at, row in enumerate(self._rows)
                for start, end in wrapped(row.text, width - cell_len(row.rest), words=row.words)
            ]
            self._lines = (width, lines)
        return self._lines[1]

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        lines = self._lines_at(width)
        if y >= len(lines):
            return Strip.blank(width, self.rich_style)
        line = lines[y]
        row = self._rows[line.row]
        base = self.visual_style if row.kind == "plain" else self.get_visual_style(f"lines--{row.kind}")
        x = line.start
        segments: list[Segment] = []
        for text, style in self._assembled(line, row).render(base, end="", parse_style=self._get_style):
            segments.append(Segment(text, (base + style).rich_style_with_offset(x, line.row)))
            x += len(text)
        return Strip(segments).adjust_cell_length(width, base.rich_style)

    def _assembled(self, line: _Line, row: Row) -> Content:
        """The line with what stands before it, its selected part in the colours of a selection."""
        text = Content(row.text, list(row.spans))[line.start : line.end]
        before = row.rest if line.start else row.first
        content = Content.assemble((before, MUTED), text) if before else text
        selection = self.text_selection
        span = selection.get_span(line.row) if selection is not None else None
        if span is None:
            return content
        begin, end = span[0] - line.start, len(content.plain) if span[1] == -1 else span[1] - line.start
        style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
        return content.stylize(style, max(0, begin), max(0, end))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(row.first + row.text for row in self._rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


class Lines(RowsWidget):
    """Rows of text, wrapped to the width, of which any part can be selected."""

    DEFAULT_CSS = css("Lines")

    def __init__(self, rows: Iterable[Row] = (), *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._rows = _shown(rows)


def _shown(rows: Iterable[Row]) -> Sequence[Row]:
    return [row if row.spans or row.text.isprintable() else _visible(row) for row in rows]


def _visible(row: Row) -> Row:
    return Row(visible_line(row.text), row.kind, first=row.first, rest=row.rest, words=row.words)
