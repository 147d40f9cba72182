"""Where the bytes of a page come from: the file itself, or a text that was made of it because models read UTF-8 and LF.

Pages are cut in `pages`; what is said of a file is the business of `read`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from ..backends.protocol import Backend, BackendError, FileInfo
from .file_text import UTF8_BOM, file_text, is_utf16

HELD = 32 * 1024 * 1024
"""Bytes of a file up to which it is held in memory to be turned into another text."""


class Source(Protocol):
    """Bytes that can be read in any place."""

    @property
    def path(self) -> str:
        """What the file is called."""
        ...

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    async def read(self, start: int, size: int) -> bytes:
        """`size` bytes from `start`, fewer at the end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """A file, read piece by piece."""

    backend: Backend
    path: str
    size: int

    async def read(self, start: int, size: int) -> bytes:
        return await self.backend.read(self.path, start=start, size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSource:
    """A text in memory."""

    path: str
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    async def read(self, start: int, size: int) -> bytes:
        return self.data[start : start + size]


async def open_source(backend: Backend, info: FileInfo, head: bytes) -> tuple[Source, tuple[str, ...]]:
    """The source for a file of text that begins with `head`, and what is to be said of it. Raises `BackendError`."""
    file = FileSource(backend=backend, path=info.path, size=info.size)
    if is_utf16(head):
        if info.size > HELD:
            raise BackendError(
                f"{info.path} is UTF-16 text of {info.size:,} bytes, too many to be shown here; "
                "`iconv -f UTF-16 -t UTF-8 FILE > COPY` makes a copy that can be read"
            )
        return await _decoded(backend, info)
    if b"\r" in head and b"\n" not in head and info.size <= HELD:
        data = await backend.read(info.path)
        if b"\n" not in data:
            return HeldSource(path=info.path, data=data.replace(b"\r", b"\n")), ("CR line ends", *_bom(head))
    return file, _bom(head)


async def _decoded(backend: Backend, info: FileInfo) -> tuple[Source, tuple[str, ...]]:
    data = await backend.read(info.path)
    text = await asyncio.to_thread(file_text, data)
    if text is None:
        shown = data.decode("utf-16", "replace").encode()
        return HeldSource(path=info.path, data=shown), ("UTF-16 with errors, � stands for them; it cannot be edited",)
    order = "big" if text.codec == "utf-16-be" else "little"
    notes = (f"UTF-16, {order}-endian, shown as UTF-8", *(("CR line ends",) if text.cr else ()))
    return HeldSource(path=info.path, data=text.text.encode()), notes


def _bom(head: bytes) -> tuple[str, ...]:
    return ("begins with a BOM",) if head.startswith(UTF8_BOM) else ()
