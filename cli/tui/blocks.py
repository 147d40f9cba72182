"""Markdown as rows of text: many blocks in one widget, where a widget for each would make long answers slow.

Streaming is `answers`' business, wrapping and selecting `lines`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, takewhile

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name
from pygments.token import _TokenType
from pygments.util import ClassNotFound
from rich.cells import cell_len
from textual.content import Span
from textual.highlight import HighlightTheme
from textual.style import Style

from .lines import Row, wrapped
from .text import visible

_HIGHLIGHTED = 20_000
"""Characters of code up to which it is coloured."""
_BULLETS = "•◦▪"
_GAP = 3
"""Cells between two columns of a table."""
_NARROW = 4
"""Cells that a column keeps."""
_CODE = "$text-accent"
_STYLES = {"em_open": "italic", "strong_open": "bold", "s_open": "strike"}


@dataclass(frozen=True, slots=True)
class Inline:
    """A piece of text with its styles."""

    text: str
    spans: tuple[Span, ...] = ()


def inline(token: Token) -> Inline:
    """What an inline token says."""
    pieces: list[str] = []
    spans: list[Span] = []
    open_styles: list[tuple[str | Style, int]] = []
    at = 0
    for child in token.children or ():
        text = _text_of(child)
        if child.type == "code_inline":
            spans.append(Span(at, at + len(text), _CODE))
        elif child.type == "link_open":
            target = str(child.attrs.get("href", ""))
            open_styles.append((Style.from_meta({"@click": f"link({target!r})"}) + Style(underline=True), at))
        elif child.type in _STYLES:
            open_styles.append((_STYLES[child.type], at))
        elif child.type.endswith("_close") and open_styles:
            style, start = open_styles.pop()
            spans.append(Span(start, at, style))
        pieces.append(text)
        at += len(text)
    return Inline("".join(pieces), tuple(spans))


def _text_of(child: Token) -> str:
    match child.type:
        case "softbreak":
            return " "
        case "hardbreak":
            return "\n"
        case "text":
            return child.content.replace("\n", " ").replace("\t", " ")
        case _:
            return child.content.replace("\n", " ")


def _cut(piece: Inline, start: int, end: int) -> Inline:
    """Characters `start` to `end` of a piece, its styles with them."""
    inside = (Span(max(0, s.start - start), min(end, s.end) - start, s.style) for s in piece.spans)
    return Inline(piece.text[start:end], tuple(span for span in inside if span.start < span.end))


def _lines(piece: Inline) -> Iterator[Inline]:
    """The lines of a piece, each with its styles."""
    spans = sorted(piece.spans, key=lambda span: span.start)
    start = begin = 0
    for text in piece.text.split("\n"):
        end = start + len(text)
        while begin < len(spans) and spans[begin].end <= start:
            begin += 1
        mine = takewhile(lambda span, end=end: span.start < end, islice(spans, begin, None))
        yield _cut(Inline(text, tuple(Span(s.start - start, s.end - start, s.style) for s in mine)), 0, len(text))
        start = end + 1


@cache
def _lexer(language: str) -> Lexer | None:
    """What reads the tokens of a language; looking for it takes long."""
    try:
        return find_lexer_class_by_name(language)(stripnl=False)
    except ClassNotFound:
        return None


def _coloured(code: str, language: str) -> Inline:
    """Code in the colours of its language, the theme's own."""
    lexer = _lexer(language)
    if lexer is None:
        return Inline(code)
    spans: list[Span] = []
    at = 0
    for kind, text in lexer.get_tokens(code):
        if style := _style_of(kind):
            spans.append(Span(at, at + len(text), style))
        at += len(text)
    return Inline(code, tuple(spans))


@cache
def _style_of(kind: _TokenType) -> str:
    while kind not in HighlightTheme.STYLES and kind.parent is not None:
        kind = kind.parent
    return HighlightTheme.STYLES.get(kind, "")


def has_table(tokens: Iterable[Token]) -> bool:
    """Whether the rows of the tokens depend on the width."""
    return any(token.type == "table_open" for token in tokens)


def markdown() -> MarkdownIt:
    """The parser: HTML is text, pictures are links, and nothing invisible comes out of an entity."""
    parser = MarkdownIt("gfm-like", {"html": False}).disable("image")
    parser.core.ruler.push("visible", _clean)
    return parser


def _clean(state: StateCore) -> None:
    """Makes visible what entities such as `&#x202e;` have become."""
    for token in state.tokens:
        token.content = visible(token.content)
        for child in token.children or ():
            child.content = visible(child.content)


def rows_from(tokens: Sequence[Token], width: int) -> list[Row]:
    """The rows of whole blocks, an empty row between two of them; tables are made for `width` cells."""
    writer = _Writer(width)
    for at, token in enumerate(tokens):
        writer.take(token, tokens[at + 1] if at + 1 < len(tokens) else token)
    return writer.rows


@dataclass(slots=True)
class _Writer:
    """Where we are in the tree of blocks, and the rows so far."""

    width: int
    rows: list[Row] = field(default_factory=list[Row])
    prefixes: list[str] = field(default_factory=list[str])
    first: str | None = None
    """Stands before the next row in place of the prefixes: a bullet."""
    begun: bool = False
    """A quotation has just begun."""
    lists: list[int | None] = field(default_factory=list[int | None])
    """For each list that we are in the number of its next item, None for bullets."""
    table: list[list[Inline]] | None = None
    right: set[int] = field(default_factory=set[int])
    """Columns that are aligned to the right."""

    def take(self, token: Token, after: Token) -> None:
        """Takes the next token; `after` is the one behind it."""
        match token.type:
            case "heading_open":
                self._gap()
                self._text(inline(after), "bold")
            case "paragraph_open":
                self._gap()
                self._text(inline(after))
            case "fence" | "code_block":
                self._gap()
                self._code(token)
            case "hr":
                self._gap()
                self._row("─" * 12, "muted")
            case "blockquote_open":
                self._gap()
                self.prefixes.append("▏ ")
                self.begun = True
            case "bullet_list_open" | "ordered_list_open":
                self._gap()
                self.lists.append(int(token.attrs.get("start", 1)) if token.type[0] == "o" else None)
            case "list_item_open":
                self._item()
            case "list_item_close" | "blockquote_close":
                self.prefixes.pop()
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
            case _ if token.type.startswith(("t", "th_", "td_")):
                self._table(token, after)
            case _:
                pass

    def _prefix(self) -> tuple[str, str]:
        rest = "".join(self.prefixes)
        first, self.first = self.first if self.first is not None else rest, None
        return first, rest

    def _gap(self) -> None:
        """An empty row between two blocks, but none within a list, nor before what a quotation begins with."""
        begun, self.begun = self.begun, False
        if self.rows and not self.lists and not begun:
            self.rows.append(Row("", first="".join(self.prefixes), rest="".join(self.prefixes)))

    def _row(self, text: str, kind: str = "plain") -> None:
        first, rest = self._prefix()
        self.rows.append(Row(text, "muted" if kind == "muted" else "plain", first=first, rest=rest))

    def _text(self, piece: Inline, style: str = "") -> None:
        for line in _lines(piece):
            spans = (Span(0, len(line.text), style), *line.spans) if style else line.spans
            first, rest = self._prefix()
            self.rows.append(Row(line.text, spans=spans, first=first, rest=rest, words=True))

    def _code(self, token: Token) -> None:
        code = token.content.rstrip("\n").expandtabs(4)
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        pieces = _coloured(code, language) if language and len(code) <= _HIGHLIGHTED else Inline(code)
        for line in _lines(pieces):
            first, rest = self._prefix()
            self.rows.append(Row(line.text, "code", line.spans, first=f"{first} ", rest=f"{rest} "))

    def _item(self) -> None:
        number = self.lists[-1]
        marker = f"{_BULLETS[(len(self.lists) - 1) % len(_BULLETS)]} " if number is None else f"{number}. "
        if number is not None:
            self.lists[-1] = number + 1
        self.first = (self.first if self.first is not None else "".join(self.prefixes)) + marker
        self.prefixes.append(" " * len(marker))

    def _table(self, token: Token, after: Token) -> None:
        if token.type == "table_open":
            self._gap()
            self.table, self.right = [], set()
        elif token.type == "tr_open" and self.table is not None:
            self.table.append([])
        elif token.type in ("th_open", "td_open") and self.table:
            if "right" in str(token.attrs.get("style", "")):
                self.right.add(len(self.table[-1]))
            self.table[-1].append(inline(after))
        elif token.type == "table_close" and self.table:
            self._write_table(self.table)
            self.table = None

    def _write_table(self, table: list[list[Inline]]) -> None:
        room = self.width - cell_len("".join(self.prefixes))
        widths = _widths(table, room)
        for number, cells in enumerate(table):
            for piece in self._lines_of(cells, widths):
                spans = (Span(0, len(piece.text), "bold"), *piece.spans) if number == 0 else piece.spans
                first, rest = self._prefix()
                self.rows.append(Row(piece.text, spans=spans, first=first, rest=rest))
            if number == 0:
                self._row("─" * (sum(widths) + _GAP * (len(widths) - 1)), "muted")

    def _lines_of(self, cells: Sequence[Inline], widths: Sequence[int]) -> Iterator[Inline]:
        """The lines of one row, each cell wrapped in its column."""
        columns = [
            [_cut(cell, start, end) for start, end in wrapped(cell.text, width, words=True)]
            for cell, width in zip(cells, widths, strict=False)
        ]
        for number in range(max(map(len, columns), default=0)):
            text, spans = "", list[Span]()
            for at, (column, width) in enumerate(zip(columns, widths, strict=False)):
                piece = column[number] if number < len(column) else Inline("")
                text += " " * _GAP * bool(at)
                space = " " * (width - cell_len(piece.text))
                text += space * (at in self.right)
                spans += [Span(s.start + len(text), s.end + len(text), s.style) for s in piece.spans]
                text += piece.text + space * (at not in self.right)
            yield Inline(text.rstrip(), tuple(spans))


def _widths(table: Sequence[Sequence[Inline]], room: int) -> list[int]:
    """Cells of each column: what it needs, or, where there is not enough room, less for the widest."""
    columns = max(map(len, table))
    widths = [max((cell_len(row[at].text) for row in table if at < len(row)), default=0) for at in range(columns)]
    room = max(columns * _NARROW, room - _GAP * (columns - 1))
    while sum(widths) > room:
        widest = max(widths)
        widths[widths.index(widest)] = max(_NARROW, widest - max(1, (sum(widths) - room) // columns))
    return widths
