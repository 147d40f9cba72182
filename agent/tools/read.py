"""`ls` and `read_file`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from ...context.facts import FIRST_LINE, LAST_LINE, PATH
from ..backends.paths import printable
from ..backends.protocol import Backend, FileInfo
from ..runtime import ToolRuntime
from ..tool import ToolResult, tool
from .answers import answering, count, failure
from .images import read_image
from .limits import SAFETY, fitting
from .pages import BOM, COUNT_LIMIT, Page, Row, count_lines, line_length, line_start, read_page

LINES = 1000
"""Lines that a page has at most, unless the model asks for more."""
LS_ENTRIES = 500
_SNIFF = 8192
_HEADER = 80
"""Tokens kept free for what stands above and below a page."""
_MINIMUM = 200
"""Tokens that a page has at least, however small the window is."""


@tool(access="read", subject="path")
@answering
async def ls(runtime: ToolRuntime[Any], path: str = ".") -> ToolResult:
    """List a folder: sub-folders with the number of their entries, files with their size in bytes."""
    entries = await runtime.backend.list(path)
    if not entries:
        return ToolResult(text=f"{path} is empty.", summary="empty")
    lines = [_entry(entry) for entry in entries[:LS_ENTRIES]]
    kept, _ = fitting("\n".join(lines), runtime.result_limit * SAFETY - _HEADER)
    text = "\n".join(lines)
    if kept < len(text):
        lines = lines[: text.count("\n", 0, kept)]
    if len(lines) < len(entries):
        lines.append(
            f"({len(entries) - len(lines):,} of {len(entries):,} entries are not shown: name a sub-folder or a pattern)"
        )
    return ToolResult(text="\n".join(lines), summary=count(len(entries), "entry", "entries"))


def _entry(entry: FileInfo) -> str:
    name = printable(entry.path.rpartition("/")[2])
    link = " (link)" if entry.link else ""
    match entry.kind:
        case "directory":
            return f"{name}/{f' {entry.size:,}' if entry.size >= 0 else ''}{link}"
        case "file":
            return f"{name} {entry.size:,}{link}"
        case "other":
            return f"{name} (no regular file){link}"


@tool(access="read", subject="path")
@answering
async def read_file(
    path: str, runtime: ToolRuntime[Any], offset: int = 1, limit: int = LINES, column: int = 1
) -> ToolResult:
    """Read a text file. Each line comes as `number→text`; only what follows the arrow is in the file.

    A result that ends with `next: offset N` has more: call again with these values.

    Args:
        offset: First line, counted from 1.
        limit: Most lines to return.
        column: Byte of that line to begin at, from 1, for lines too long for one result.
    """
    if min(offset, limit, column) < 1:
        return failure("offset, limit and column count from 1.")
    backend = runtime.backend
    info = await backend.stat(path)
    if info is not None and info.kind == "directory":
        return failure(f"{path} is a directory, not a file.")
    seen = await backend.fingerprint(
        path
    )  # before the text: if the file changes in between, what is written is refused
    head = await backend.read(path, size=_SNIFF)
    if info is None or seen is None:
        return failure(f"{path} was removed in this moment.")
    if image := await read_image(path, info, head, runtime):
        return image
    if kind := _not_text(head):
        return ToolResult(text=f"{info.path} is {kind} of {info.size:,} bytes; read_file reads UTF-8.", summary=kind)
    backend.memory.remember(backend.resolve(path), seen)
    log: dict[str, JsonValue] = {PATH: backend.resolve(path)}
    if not head:
        return ToolResult(text=f"{info.path} is empty (0 bytes).", summary="empty", log=log)
    tokens = max(_MINIMUM, runtime.result_limit * SAFETY - _HEADER)
    page = await read_page(backend, path, info.size, offset=offset, column=column, limit=limit, tokens=tokens)
    if page.rows[0].column == 1 and (page.next is None or page.next[1] == 1):  # whole lines only
        log |= {FIRST_LINE: page.rows[0].number, LAST_LINE: page.rows[-1].number}
    text = await _shown(backend, info, page, bom=head.startswith(BOM))
    return ToolResult(text=text, summary=count(len(page.rows), "line"), log=log)


def _not_text(head: bytes) -> str | None:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "UTF-16 text"
    return "a binary file" if b"\0" in head else None


async def _shown(backend: Backend, info: FileInfo, page: Page, *, bom: bool) -> str:
    """A page as the model sees it."""
    total = f"{await count_lines(backend, info.path):,}" if info.size <= COUNT_LIMIT else f"{info.size:,} bytes"
    mixed = len({row.end for row in page.rows if row.end}) > 1
    first, last = page.rows[0], page.rows[-1]
    head = f"{printable(info.path)} lines {first.number}-{last.number} of {total}"
    if notes := [note for note in _notes(page, bom=bom, mixed=mixed) if note]:
        head += f" ({'; '.join(notes)})"
    lines = [head, *(_row(row, mixed=mixed) for row in page.rows)]
    if page.next is not None:
        lines += await _onward(backend, info, page.next)
    return "\n".join(lines)


def _notes(page: Page, *, bom: bool, mixed: bool) -> Iterator[str]:
    if bom and page.rows[0].number == 1:
        yield "begins with a BOM"
    if mixed:
        yield "mixed line ends, ␍ marks CRLF"
    elif any(row.end == b"\r\n" for row in page.rows):
        yield "CRLF line ends"
    if page.next is None and not page.rows[-1].end:
        yield "no final newline"
    if any(not _is_text(row.data) for row in page.rows):
        yield "� stands for bytes that are not UTF-8"


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _row(row: Row, *, mixed: bool) -> str:
    text = row.data.decode("utf-8", "replace").replace("\0", "\ufffd")
    place = f"{row.number}@{row.column}" if row.column > 1 else str(row.number)
    return f"{place}→{text}" + ("␍" if mixed and row.end == b"\r\n" else "")


async def _onward(backend: Backend, info: FileInfo, place: tuple[int, int]) -> list[str]:
    """How to read on; of a long line also how long it is."""
    line, column = place
    if column == 1:
        return [f"next: offset {line}"]
    start = await line_start(backend, info.path, line) or 0
    length = await line_length(backend, info.path, start)
    more = "or more" if length >= COUNT_LIMIT else f"in all; offset {line + 1} skips the rest"
    return [f"(line {line} has {length:,} bytes {more})", f"next: offset {line} column {column}"]
