"""`write_file` and `edit_file`.

What is replaced by what is found in `splice`. Both refuse to overwrite content that the agent has not seen, and text
that stands for other text (`stub`).
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
from .hints import why_missing
from .rewrite import compared, is_utf8, like, suspicious
from .splice import Change, apply, changed_lines, line_of, plan
from .stub import refuse_stub

EDIT_LIMIT = 64 * 1024 * 1024
"""Bytes of a file up to which it is edited: it is held in memory for that."""
_ATTEMPTS = 3
_SNIFF = 8192
_MANY = 10
"""Places that are listed at most."""


@tool(access="write", subject="path")
@answering
async def write_file(path: str, content: str, runtime: ToolRuntime[Any]) -> ToolResult:
    """Create a file, or replace all of one that you have read. To change a part, use edit_file."""
    if reason := refuse_stub(content):
        return failure(reason, "refused")
    backend, name = runtime.backend, runtime.backend.resolve(path)
    async with backend.memory.lock(name):
        info = await backend.stat(path)
        expected = await backend.fingerprint(path) if info and info.kind == "file" else None
        old = b""
        if info and expected:
            if info.size and backend.memory.seen(name) != expected:
                return _unseen(path, known=backend.memory.seen(name) is not None)
            old = await _content(backend, path, info)
        if old and (reason := suspicious(old, content)):
            return failure(reason, "refused")
        new = like(old, content)
        backend.memory.remember(name, await backend.write(path, new, expected=expected or ""))
    added, removed = await asyncio.to_thread(compared, old, new)
    kept = " Its CRLF line ends were kept." if b"\r\n" in new and "\r\n" not in content else ""
    text = f"{path} was {'written anew' if expected else 'created'}: {count(len(new), 'byte')}.{kept}"
    return _changed(text, name, added, removed)


@tool(access="write", subject="path")
@answering
async def edit_file(
    path: str, old_string: str, new_string: str, runtime: ToolRuntime[Any], replace_all: bool = False
) -> ToolResult:
    """Replace old_string by new_string in a file. old_string must occur exactly once, unless replace_all is set.

    Give both exactly as in the file, whitespace included, without line numbers.
    """
    if not old_string:
        return failure("old_string is empty: it must be text that stands in the file.", "refused: empty old_string")
    if reason := refuse_stub(new_string):
        return failure(reason, "refused")
    old, new = (text.removeprefix("\ufeff").replace("\r\n", "\n") for text in (old_string, new_string))
    if old == new:
        return failure("No change: old_string and new_string are the same.", "no change")
    backend, name = runtime.backend, runtime.backend.resolve(path)
    async with backend.memory.lock(name):
        for _ in range(_ATTEMPTS):
            with suppress(ChangedError):
                return await _edit(backend, path, old, new, replace_all)
    return failure(f"{path} is being changed by someone else all the time; nothing was written.")


async def _edit(backend: Backend, path: str, old: str, new: str, replace_all: bool) -> ToolResult:
    """One attempt. Raises `ChangedError` if the file was changed by someone else in between."""
    name, before = backend.resolve(path), await backend.fingerprint(path)
    data = await _content(backend, path, await backend.stat(path))
    if b"\0" in data[:_SNIFF]:
        return failure(f"{path} is a binary file; edit_file changes text.")
    changes = await asyncio.to_thread(plan, data, old, new)
    if not changes:
        return await asyncio.to_thread(_missing, path, data, old, new)
    if len(changes) > 1 and not replace_all:
        return _not_unique(path, data, changes)
    if any(not change.new.isascii() for change in changes) and not is_utf8(data):
        return failure(f"{path} is not UTF-8, so only ASCII text can be put into it; nothing was written.")
    after = await backend.write(path, apply(data, changes), expected=before or "")
    if backend.memory.seen(name) == before:  # what was not read before is not known now
        backend.memory.remember(name, after)
    lines = ", ".join(f"{line_of(data, change.start):,}" for change in changes[:_MANY])
    where = f"line {lines}" if len(changes) == 1 else f"{count(len(changes), 'place')}, lines {lines}"
    more = " …" if len(changes) > _MANY else ""
    return _changed(f"{path} was changed at {where}{more}.", name, *changed_lines(data, changes))


async def _content(backend: Backend, path: str, info: FileInfo | None) -> bytes:
    if info and info.size > EDIT_LIMIT:
        raise BackendError(f"{path} has {info.size:,} bytes, too many to change it with this tool")
    return await backend.read(path)


def _changed(text: str, name: str, added: int, removed: int) -> ToolResult:
    log: dict[str, JsonValue] = {"path": name, "added": added, "removed": removed}
    return ToolResult(text=text, summary=f"+{added:,} −{removed:,}", log=log)


def _unseen(path: str, *, known: bool) -> ToolResult:
    why = "was changed since you read it" if known else "exists, and you have not read it"
    text = f"{path} {why}; nothing was written. Read it, then write it with what you want to keep of it."
    return failure(text, "refused: changed since read" if known else "refused: not read")


def _not_unique(path: str, data: bytes, changes: Sequence[Change]) -> ToolResult:
    lines = ", ".join(f"{line_of(data, change.start):,}" for change in changes[:_MANY])
    more = " …" if len(changes) > _MANY else ""
    text = (
        f"old_string occurs {len(changes)} times in {path}, at lines {lines}{more}; nothing was written. "
        "Give more of the text around the one you mean, or set replace_all."
    )
    return failure(text, f"{len(changes)} matches")


def _missing(path: str, data: bytes, old: str, new: str) -> ToolResult:
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    encoding = "" if old.isascii() or is_utf8(data) else " The file is not UTF-8: give only ASCII text."
    return failure(
        f"old_string was not found in {path}; nothing was written.{encoding} {why_missing(text, old, new)}", "not found"
    )
