"""Reading a message back: any part of any of its texts, in pages that never lose a character.

Lines end with LF alone and `"\\n".join(lines)` is the text, so an empty last line says that the text ends with one. Who
follows `Page.next` from page to page gets all of it, also where one line is longer than any page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .recall_passages import Passage
from .recall_query import QueryError

_LINES = re.compile(r"(\d{1,15})(?::(\d{1,15}))?(?:(-)(\d{1,15})?)?")
_ROW = 5
"""Tokens that a line's number costs."""
Count = Callable[[str], int]
"""Tokens of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A message, or one of its texts: `[SESSION/]MESSAGE[#PART]`."""

    session: str | None
    message: str
    part: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of a text, or a piece of one that begins at character `column` (from 1)."""

    part: int
    line: int
    column: int
    text: str
    whole: bool
    """The line ends here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows, and where the next page begins: part and lines as `read_page` takes them; None at the end."""

    rows: tuple[Row, ...]
    next: tuple[int, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """From character `column` of `line`, to character `last_column` of `last_line`, both included; None: to the end."""

    line: int = 1
    column: int = 1
    last_line: int | None = None
    last_column: int | None = None

    def rest(self, line: int, column: int) -> str:
        """What is left of the range from a place on, as a person writes it."""
        place = f"{line}:{column}" if column > 1 or self.last_column else str(line)
        if self.last_column is not None and line == self.last_line:
            return f"{place}-{self.last_column}"
        if self.last_line is None:
            return f"{place}-"
        if column > 1:
            return place if line == self.last_line else f"{place}-"
        return place if line == self.last_line else f"{place}-{self.last_line}"


def parse_reference(text: str) -> Reference:
    """What an id names. Raises `QueryError`."""
    session, slash, rest = text.strip().rpartition("/")
    message, mark, part = rest.partition("#")
    if not message or (mark and not part.isdecimal()) or (slash and not session):
        raise QueryError(f"{text!r} is no id; ids look like SESSION/MESSAGE or MESSAGE#PART")
    return Reference(session=session or None, message=message, part=int(part) if mark else None)


def _parse_lines(text: str) -> _Range:
    """`40`, `40-80`, `40-`; characters in a line: `7:2001`, `7:2001-4000`; from there on: `7:2001-`."""
    if not text.strip():
        return _Range()
    found = _LINES.fullmatch(text.strip())
    if found is None:
        raise QueryError(
            f"lines is {text!r}; it looks like 40-80, 40- or, for characters 2001 to 4000 of line 7, 7:2001-4000"
        )
    line, column, dash, last = int(found[1]), int(found[2] or 1), found[3], found[4]
    if min(line, column) < 1 or (last and int(last) < (column if found[2] else line)):
        raise QueryError(f"lines is {text!r}; lines and characters count from 1, and the last comes after the first")
    if found[2] and last:
        return _Range(line=line, column=column, last_line=line, last_column=int(last))
    return _Range(line=line, column=column, last_line=int(last) if last else None if dash else line)


def read_page(passages: Sequence[Passage], part: int | None, lines: str, *, tokens: int, count: Count) -> Page:
    """A page of a text, or of all texts of a message one after the other where `part` is None.

    It has at most `tokens`, but a character at least. Raises `QueryError` for a place that is not there.
    """
    if part is not None and not 1 <= part <= len(passages):
        raise QueryError(f"the message has {len(passages)} texts, #1 to #{len(passages)}")
    wanted = _parse_lines(lines)
    rows: list[Row] = []
    for passage in passages[part - 1 : part] if part is not None else passages:
        going = wanted if not rows else _Range()
        tokens, left = _fill(rows, passage, going, tokens, count)
        if left is not None:
            return Page(rows=tuple(rows), next=(passage.part, left))
    return Page(rows=tuple(rows), next=None)


def _fill(rows: list[Row], passage: Passage, wanted: _Range, tokens: int, count: Count) -> tuple[int, str | None]:
    """Adds rows of one text; gives the tokens that are left then, and what is left of the range."""
    lines = passage.text.split("\n")
    if wanted.line > len(lines) or wanted.column > len(lines[wanted.line - 1]) + 1:
        raise QueryError(_outside(passage, wanted, lines))
    last, column = min(wanted.last_line or len(lines), len(lines)), wanted.column
    for number in range(wanted.line, last + 1):
        line = lines[number - 1]
        end = min(wanted.last_column, len(line)) if wanted.last_column is not None and number == last else len(line)
        text = line[column - 1 : end]
        fits = fitting(text, tokens - _ROW, count)
        if fits < len(text) or tokens < _ROW:
            fits = max(fits, 0 if rows else 1)
            if fits:
                rows.append(Row(part=passage.part, line=number, column=column, text=text[:fits], whole=False))
            return 0, wanted.rest(number, column + fits)
        rows.append(Row(part=passage.part, line=number, column=column, text=text, whole=end == len(line)))
        tokens -= count(text) + _ROW
        column = 1
    return tokens, None


def _outside(passage: Passage, wanted: _Range, lines: Sequence[str]) -> str:
    if wanted.line > len(lines):
        return f"#{passage.part} ({passage.name}) has {len(lines):,} lines"
    return f"line {wanted.line:,} of #{passage.part} has {len(lines[wanted.line - 1]):,} characters"


def fitting(text: str, tokens: int, count: Count) -> int:
    """How many characters of a text fit into a number of tokens: all of them, or rather too few than too many."""
    fits = min(len(text), max(0, tokens) * 8)
    while fits and (size := count(text[:fits])) > tokens:
        fits = min(fits - 1, fits * max(0, tokens) // size)
    return fits
