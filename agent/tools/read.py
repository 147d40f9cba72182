"""`ls` and `read_file`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import JsonValue

from ...context.facts import FIRST_LINE, LAST_LINE, PATH
from ..backends.paths import printable
from ..backends.protocol import FileInfo
from ..runtime import ToolRuntime
from ..tool import ToolResult, tool
from .answers import answering, count, failure, name_line
from .file_text import SNIFF, UTF8_BOM, what_it_is
from .images import read_image
from .limits import SAFETY, fitting
from .pages import COUNT_LIMIT, Page, Row, count_lines, line_length, line_start, read_page
from .source import Source, open_source

LINES = 1000
"""Lines that a page has at most, unless the model asks for more."""
LS_ENTRIES = 500
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
    name = name_line(entry.path.rpartition("/")[2])
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
        return failure(f"{path} is a directory, not a file: ls lists it.")
    seen = await backend.fingerprint(path)  # before the text: a change in between is met when writing
    head = await backend.read(path, size=SNIFF)
    if info is None or seen is None:
        return failure(f"{path} was removed in this moment.")
    if image := await read_image(path, info, head, runtime):
        return image
    if kind := what_it_is(head):
        name, _, advice = kind.partition("; ")
        text = f"{printable(info.path)} is {name}, {info.size:,} bytes, not shown{f'; {advice}' if advice else ''}."
        return ToolResult(text=text, summary=name)
    backend.memory.remember(backend.resolve(path), seen)
    log: dict[str, JsonValue] = {PATH: backend.resolve(path)}
    if not head:
        return ToolResult(text=f"{printable(info.path)} is empty (0 bytes).", summary="empty", log=log)
    tokens = max(_MINIMUM, runtime.result_limit * SAFETY - _HEADER)
    source, notes = await open_source(backend, info, head)
    if not source.size or head == UTF8_BOM:
        return ToolResult(text=f"{printable(info.path)} is empty but for its BOM.", summary="empty", log=log)
    page = await read_page(source, offset=offset, column=column, limit=limit, tokens=tokens)
    if page.rows[0].column == 1 and (page.next is None or page.next[1] == 1):  # whole lines only
        log |= {FIRST_LINE: page.rows[0].number, LAST_LINE: page.rows[-1].number}
    return ToolResult(text=await _shown(source, page, notes), summary=count(len(page.rows), "line"), log=log)


async def _shown(source: Source, page: Page, said: Sequence[str]) -> str:
    """A page as the model sees it; `said` is what is known of the whole file, and told with its first line."""
    total = f"{await count_lines(source):,}" if source.size <= COUNT_LIMIT else f"{source.size:,} bytes"
    mixed = len({row.end for row in page.rows if row.end}) > 1
    first, last = page.rows[0], page.rows[-1]
    head = f"{printable(source.path)} lines {first.number}-{last.number} of {total}"
    if notes := [*(said if first.number == 1 else ()), *_notes(source, page, mixed=mixed)]:
        head += f" ({'; '.join(notes)})"
    lines = [head, *(_row(row, mixed=mixed) for row in page.rows)]
    if page.next is not None:
        lines += await _onward(source, page.next)
    return "\n".join(lines)


def _notes(source: Source, page: Page, *, mixed: bool) -> Iterator[str]:
    if source.path.endswith(".ipynb") and page.rows[0].number == 1:
        yield "a notebook: cells are JSON, outputs can be long; `jq -r '.cells[].source[]' FILE` prints the code"
    if mixed:
        yield "mixed line ends, ␍ marks CRLF"
    elif any(row.end == b"\r\n" for row in page.rows):
        yield "CRLF line ends"
    if any(b"\r" in row.data for row in page.rows):
        yield "lines hold carriage returns"
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


async def _onward(source: Source, place: tuple[int, int]) -> list[str]:
    """How to read on; of a long line also how long it is."""
    line, column = place
    if column == 1:
        return [f"next: offset {line}"]
    start = await line_start(source, line) or 0
    length = await line_length(source, start)
    more = "or more" if length >= COUNT_LIMIT else f"in all; offset {line + 1} skips the rest"
    return [f"(line {line} has {length:,} bytes {more})", f"next: offset {line} column {column}"]
