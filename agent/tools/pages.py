"""One page of a text file: some of its lines, and from where to read on.

Pages never lose a byte: who follows `next` from page to page gets all of the file, also where one line is longer than
any page. Which file may be read, and what else is said of it, is the business of `read`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ..backends.excerpt import character_start
from ..backends.protocol import BackendError
from .file_text import UTF8_BOM
from .limits import fitting
from .source import Source

COUNT_LIMIT = 32 * 1024 * 1024
"""Bytes of a file up to which its lines are counted, and of a line up to which its end is looked for."""
FIRST_LOOK = 2_000
"""Bytes shown of a line that fits on no page, as long as nobody asked for a place in it."""
_BLOCK = 4 * 1024 * 1024
_WINDOW = 1024 * 1024
"""Bytes read for a page at most."""
_BYTES_PER_TOKEN = 8
"""Bytes read for a page, for each token that it may have."""
_ROW = 5.0
"""Tokens that a line's number costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line, or a part of one that begins at byte `column` (from 1)."""

    number: int
    column: int
    data: bytes
    end: bytes
    """The line end that follows: LF, CRLF, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows, and where the next page begins: line and column, or None at the end of the file."""

    rows: tuple[Row, ...]
    next: tuple[int, int] | None


async def read_page(source: Source, *, offset: int, column: int, limit: int, tokens: float) -> Page:
    """The page that begins at byte `column` of line `offset`. Raises `BackendError` if there is no such place."""
    start = await line_start(source, offset)
    if start is None or start >= source.size:
        lines = f"only {await count_lines(source):,}" if source.size <= COUNT_LIMIT else f"fewer than {offset:,}"
        raise BackendError(f"{source.path} has {lines} lines")
    if start == 0 and await source.read(0, 3) == UTF8_BOM:
        start = 3
    if column > 1 and (length := await line_length(source, start, column)) < column - 1:
        raise BackendError(f"Line {offset:,} of {source.path} has only {length:,} bytes")
    position = start + column - 1
    wanted = min(int(tokens) * _BYTES_PER_TOKEN, _WINDOW) + 4096
    window = await source.read(position, wanted)
    at_end = position + len(window) >= source.size
    if not at_end:
        window = window[: character_start(window, len(window) - 4)]
    return await asyncio.to_thread(
        fill, window, at_end=at_end, offset=offset, column=column, limit=limit, tokens=tokens
    )


def fill(window: bytes, *, at_end: bool, offset: int, column: int, limit: int, tokens: float) -> Page:
    """As many lines of `window` as fit; `at_end` says that the file ends with it. At least a character."""
    rows: list[Row] = []
    at, left = 0, tokens
    while at < len(window) and len(rows) < limit:
        data, end, whole = _line(window, at, at_end)
        text = data.decode("utf-8", "surrogateescape")
        fits, rest = fitting(text, left - _ROW)
        if not whole or fits < len(text) or left < _ROW:
            if not rows:
                rows.append(_first_part(text, max(1, fits), offset, column))
                column += len(rows[0].data)
            break
        rows.append(Row(number=offset, column=column, data=data, end=end))
        at, left = at + len(data) + len(end), rest
        offset, column = offset + 1, 1
    through = at >= len(window) and at_end
    return Page(rows=tuple(rows), next=None if through else (offset, column))


def _line(window: bytes, at: int, at_end: bool) -> tuple[bytes, bytes, bool]:
    """The line at `at`, its end, and whether that is all of it."""
    stop = window.find(b"\n", at)
    if stop < 0:
        return window[at:], b"", at_end
    crlf = stop > at and window[stop - 1 : stop] == b"\r"
    return window[at : stop - crlf], window[stop - crlf : stop + 1], True


def _first_part(text: str, fits: int, offset: int, column: int) -> Row:
    data = text[:fits].encode("utf-8", "surrogateescape")
    if column == 1 and len(data) > FIRST_LOOK:
        data = data[: character_start(data, FIRST_LOOK)]
    return Row(number=offset, column=column, data=data, end=b"")


async def line_start(source: Source, number: int) -> int | None:
    """The byte at which a line begins (perhaps the end of the file), or None if the file is shorter."""
    position, ends = 0, number - 1
    while ends > 0:
        block = await source.read(position, _BLOCK)
        if not block:
            return None
        *passed, rest = block.split(b"\n", ends)
        ends -= len(passed)
        position += len(block) if ends else len(block) - len(rest)
    return position


async def line_length(source: Source, start: int, enough: int = COUNT_LIMIT) -> int:
    """Bytes of the line that begins at `start`, without its end; no more than `enough` are looked at."""
    length = 0
    while length < enough:
        block = await source.read(start + length, min(_BLOCK, enough - length))
        if not block:
            break
        stop = block.find(b"\n")
        if stop >= 0:
            return length + stop
        length += len(block)
    return length


async def count_lines(source: Source) -> int:
    """How many lines a file has, the last one with or without a line end."""
    lines, position, last = 0, 0, b"\n"
    while block := await source.read(position, _BLOCK):
        lines, position, last = lines + block.count(b"\n"), position + len(block), block[-1:]
    return lines + (last != b"\n")
