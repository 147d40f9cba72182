"""Long text, line by line: only what is on the screen is rendered, so that ten thousand lines cost no more than ten.

A row has a kind, which gives its colour. What the rows say is the business of `cards` and `diffs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, Literal

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from .text import visible

Kind = Literal["plain", "muted", "added", "removed", "error"]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of text as it came; whatever it holds is made visible when it is shown."""

    text: str
    kind: Kind = "plain"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A line of the screen: characters `start` to `end` of row `row`."""

    row: int
    start: int
    end: int


def rows_of(text: str, kind: Kind = "plain") -> list[Row]:
    """The lines of `text`."""
    return [Row(line, kind) for line in visible(text).split("\n")]


class Lines(Widget):
    """Rows of text, wrapped to the width, of which any part can be selected."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--muted", "lines--added", "lines--removed", "lines--error"}
    DEFAULT_CSS = """
    Lines {
        width: 1fr; height: auto; color: $text;
        & > .lines--muted { color: $text-muted; }
        & > .lines--added { color: $text-success; background: $success 8%; }
        & > .lines--removed { color: $text-error; background: $error 8%; }
        & > .lines--error { color: $text-error; }
    }
    """

    def __init__(self, rows: Iterable[Row] = (), *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._rows: Sequence[tuple[str, Kind]] = _shown(rows)
        self._pieces: tuple[int, list[_Piece]] = (0, [])
        """The lines of the screen, and the width that they were made for."""

    def set_rows(self, rows: Iterable[Row]) -> None:
        """Shows other rows."""
        self._rows = _shown(rows)
        self._pieces = (0, [])
        self.refresh(layout=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._wrapped(width))

    def _wrapped(self, width: int) -> list[_Piece]:
        if self._pieces[0] != width:
            pieces = [piece for at, (text, _) in enumerate(self._rows) for piece in _pieces(at, text, width)]
            self._pieces = (width, pieces)
        return self._pieces[1]

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        pieces = self._wrapped(width)
        if y >= len(pieces):
            return Strip.blank(width, self.rich_style)
        piece = pieces[y]
        text, kind = self._rows[piece.row]
        style = self.rich_style if kind == "plain" else self.get_component_rich_style(f"lines--{kind}")
        strip = Strip(self._segments(piece, text, style)).adjust_cell_length(width, style)
        return strip.apply_offsets(piece.start, piece.row)

    def _segments(self, piece: _Piece, text: str, style: Style) -> list[Segment]:
        """The piece, its selected part in the colours of a selection."""
        selection = self.text_selection
        span = selection.get_span(piece.row) if selection is not None else None
        if span is None:
            return [Segment(text[piece.start : piece.end], style)]
        begin = min(max(span[0], piece.start), piece.end)
        end = piece.end if span[1] == -1 else max(begin, min(span[1], piece.end))
        selected = style + self.screen.get_component_rich_style("screen--selection")
        parts = ((piece.start, begin, style), (begin, end, selected), (end, piece.end, style))
        return [Segment(text[a:b], style) for a, b, style in parts if a < b]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(text for text, _ in self._rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


def _shown(rows: Iterable[Row]) -> list[tuple[str, Kind]]:
    return [(visible(row.text).replace("\n", " ").expandtabs(4), row.kind) for row in rows]


def _pieces(at: int, text: str, width: int) -> list[_Piece]:
    if (len(text) <= width and text.isascii()) or cell_len(text) <= width or width <= 0:
        return [_Piece(at, 0, len(text))]
    ends = list(accumulate(map(len, chop_cells(text, width))))
    return [_Piece(at, start, end) for start, end in zip((0, *ends), ends, strict=False)]
