"""`write_file` and `edit_file`.

Both refuse to overwrite content that the agent has not seen. What is replaced by what is made in `edits`, how a file
becomes a text and back is told in `file_text`; that no stand-in of ours is written is seen to before a tool runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import JsonValue

from ..backends.protocol import Backend, BackendError, ChangedError, FileInfo
from ..runtime import ToolRuntime
from ..tool import ToolResult, tool
from .answers import answering, count, failure
from .edits import Edit, EditError, Edits, checked, made
from .file_text import SNIFF, FileText, file_text, what_it_is
from .rewrite import compared, like, suspicious

EDIT_LIMIT = 64 * 1024 * 1024
"""Bytes of a file up to which it is edited: it is held in memory for that."""
STARTS = "starts"
"""In a result's log: the line where each edit begins."""
_ATTEMPTS = 3
_NOTHING = FileText(text="")


@tool(access="write", subject="path")
@answering
async def write_file(path: str, content: str, runtime: ToolRuntime[Any]) -> ToolResult:
    """Create a file, or replace all of one that you have read. To change a part, use edit_file."""
    backend, name = runtime.backend, runtime.backend.resolve(path)
    async with backend.memory.lock(name):
        info = await backend.stat(path)
        expected = await backend.fingerprint(path) if info and info.kind == "file" else None
        old = _NOTHING
        if info and expected:
            if info.size and backend.memory.seen(name) != expected:
                return _unseen(path, known=backend.memory.seen(name) is not None)
            old = file_text(await _content(backend, path, info)) or _NOTHING
        if reason := suspicious(old, content):
            return failure(reason, "refused")
        data = like(old, content)
        backend.memory.remember(name, await backend.write(path, data, expected=expected or ""))
    new = file_text(data) or _NOTHING
    added, removed = await asyncio.to_thread(compared, old.text, new.text)
    text = (
        f"{path} was {'written anew' if expected else 'created'}: {count(len(data), 'byte')}.{_kept(old, new, content)}"
    )
    return _changed(text, name, added, removed)


def _kept(old: FileText, new: FileText, content: str) -> str:
    """What of the old file was kept or lost that the model did not write."""
    said: list[str] = []
    if "\r\n" in new.text and "\r\n" not in content:
        said.append(" Its CRLF line ends were kept.")
    if old.cr:
        said.append(" Its CR line ends were kept.")
    if old.codec != "utf-8":
        said.append(f" It stays {old.codec.upper()}.")
    if not old.exact and not content.isascii():
        said.append(" It was not UTF-8 before, and is now.")
    return "".join(said)


@tool(access="write", subject="path")
@answering
async def edit_file(  # noqa: PLR0917 - models name all arguments
    path: str,
    runtime: ToolRuntime[Any],
    old_string: str = "",
    new_string: str = "",
    replace_all: bool = False,
    edits: Edits = (),
) -> ToolResult:
    """Replace old_string by new_string in a file. old_string must occur exactly once, unless replace_all is set.

    Give both exactly as in the file, whitespace included, without line numbers. For several places give edits instead:
    made in order, all or none.
    """
    first = (Edit(old_string=old_string, new_string=new_string, replace_all=replace_all),)
    wanted = (*(first if old_string or new_string or not edits else ()), *edits)
    backend, name = runtime.backend, runtime.backend.resolve(path)
    try:
        ready = checked(wanted)
        async with backend.memory.lock(name):
            for _ in range(_ATTEMPTS):
                with suppress(ChangedError):
                    return await _edit(backend, path, ready)
    except EditError as error:
        return failure(str(error), error.summary)
    return failure(f"{path} is being changed by someone else all the time; nothing was written.")


async def _edit(backend: Backend, path: str, edits: tuple[Edit, ...]) -> ToolResult:
    """One attempt. Raises `ChangedError` if the file was changed by someone else in between, or `EditError`."""
    name, before = backend.resolve(path), await backend.fingerprint(path)
    data = await _content(backend, path, await backend.stat(path))
    if kind := what_it_is(data[:SNIFF]):
        return failure(f"{path} is {kind}. edit_file changes text; nothing was written.", "refused: no text")
    old = await asyncio.to_thread(file_text, data)
    if old is None:
        return failure(f"{path} is no valid UTF-16, although its BOM says so; nothing was written.", "refused: no text")
    new = await asyncio.to_thread(made, path, old, edits)
    after = await backend.write(path, old.encoded(new.text), expected=before or "")
    if backend.memory.seen(name) == before:  # what was not read before is not known now
        backend.memory.remember(name, after)
    by = f" by {len(edits)} edits" if len(edits) > 1 else ""
    return _changed(f"{path} was changed{by} at {new.places}.", name, new.added, new.removed, new.starts)


async def _content(backend: Backend, path: str, info: FileInfo | None) -> bytes:
    if info and info.size > EDIT_LIMIT:
        raise BackendError(f"{path} has {info.size:,} bytes, too many to change it with this tool")
    return await backend.read(path)


def _changed(text: str, name: str, added: int, removed: int, starts: Sequence[int] = ()) -> ToolResult:
    log: dict[str, JsonValue] = {"path": name, "added": added, "removed": removed}
    if starts:
        log[STARTS] = list(starts)
    return ToolResult(text=text, summary=f"+{added:,} −{removed:,}", log=log)


def _unseen(path: str, *, known: bool) -> ToolResult:
    why = "was changed since you read it" if known else "exists, and you have not read it"
    text = f"{path} {why}; nothing was written. Read it, then write it with what you want to keep of it."
    return failure(text, "refused: changed since read" if known else "refused: not read")
