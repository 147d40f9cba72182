"""The archive: what left the view, as Markdown that a person reads and a program reads back byte for byte.

One section a compaction. Below each heading a comment holds what a heading cannot hold safely; texts stand unescaped
in fences longer than any run of fence characters inside them, so a literal search finds every word of the conversation.
A section carries its length and hash in front, so a torn one is known, closed on the next open, and passed over.

How a message becomes Markdown and back is told in `context.archive_text`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from pydantic import TypeAdapter, ValidationError

from .archive_text import ArchiveError, one_line, read_messages, torn_fence, write_message
from .messages import Message
from .storage import Storage, StorageError, archive_name

_TORN_HEADING = b" (torn) -->\n"
"""Ends a heading that broke off: no comment stays open, and none that lacked but its end becomes whole."""
_HEAD = re.compile(rb"^<!-- deepagent:section (\{.*\}) -->\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One complete section of an archive."""

    compaction: str
    time: str
    messages: tuple[Message, ...]
    start: int
    """The byte at which the section's heading begins."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """A section that broke off."""

    compaction: str
    start: int
    """The byte at which its comment begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A whole archive file."""

    sections: tuple[Section, ...]
    torn: Torn | None
    """A section that was not written to its end and not closed yet."""
    end: int
    """The byte behind the last section that is complete or closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Where a compaction's messages lie in the archive."""

    start: int
    end: int


def render_section(compaction: str, time: str, messages: Sequence[Message], tokens: int) -> bytes:
    """One section. `tokens` is what the messages took in the view."""
    body = "".join(write_message(message) for message in messages).encode("utf-8")
    first, last = one_line(messages[0].id), one_line(messages[-1].id)
    meta = {
        "compaction": compaction,
        "time": time,
        "messages": len(messages),
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    heading = (
        f"\n## Compaction {compaction} · {time}\n\n"
        f"{len(messages)} messages, {first} to {last}, {tokens:,} tokens.\n\n"
        f"<!-- deepagent:section {json.dumps(meta)} -->\n"
    )
    return heading.encode("utf-8") + body


def parse(data: bytes) -> Parsed:
    """Reads an archive; complete sections come back with their messages exactly as they were written.

    Sections that broke off, that somebody edited, or that a later version wrote, are passed over.
    """
    sections: list[Section] = []
    position = end = 0
    while (head := _HEAD.search(data, position)) is not None:
        position = head.end()
        meta = _meta(head[1])
        if meta is None:
            continue
        body = data[position : position + meta.bytes]
        if hashlib.sha256(body).hexdigest() != meta.sha256:
            closing = _closing(meta.compaction)
            closed = data.find(closing, position)
            if closed < 0:
                torn = Torn(compaction=meta.compaction, start=head.start())
                return Parsed(sections=tuple(sections), torn=torn, end=end)
            position = end = closed + len(closing)
            continue
        position = end = position + len(body)
        with suppress(ValueError):
            sections.append(_section(data, head.start(), position, meta, body))
    return Parsed(sections=tuple(sections), torn=None, end=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meta:
    """What a section says of itself."""

    compaction: str
    time: str
    messages: int
    bytes: int
    sha256: str


_META = TypeAdapter(_Meta)


def _meta(data: bytes) -> _Meta | None:
    try:
        return _META.validate_json(data)
    except ValidationError:
        return None


def _section(data: bytes, head: int, end: int, meta: _Meta, body: bytes) -> Section:
    heading = data.rfind(b"\n## Compaction ", 0, head)
    return Section(
        compaction=meta.compaction,
        time=meta.time,
        messages=read_messages(body.decode("utf-8")),
        start=heading if heading >= 0 else head,
        end=end,
    )


def _closing(compaction: str) -> bytes:
    return f"\n<!-- deepagent:torn {compaction} -->\n".encode()


class Archive:
    """The archive file of one session."""

    def __init__(self, storage: Storage, session: str) -> None:
        self._storage = storage
        self._session = session
        self._ranges: dict[str, Written] = {}
        """Where each message lies, by its id."""
        self._healed = False
        self._busy = Lock()
        """A compaction that was cancelled may still be writing on its thread when the next one begins."""

    @property
    def name(self) -> str:
        """The name of the file in the storage."""
        return archive_name(self._session)

    def add(self, compaction: str, time: str, messages: Sequence[Message], tokens: int) -> Written:
        """Writes a section and returns when it is on the disk and reads back whole. Raises `StorageError`.

        Messages that an earlier section holds, because the program ended between archive and log or because a
        compaction was undone, are not written again; if all are there, the section that holds the last one is named.
        """
        with self._busy:
            try:
                return self._add(compaction, time, messages, tokens)
            except BaseException:
                self._healed = False  # what is in the file now is learned from the file
                raise

    def _add(self, compaction: str, time: str, messages: Sequence[Message], tokens: int) -> Written:
        self._heal()
        fresh = [message for message in messages if message.id not in self._ranges]
        if not fresh:
            return self._ranges[messages[-1].id]
        section = render_section(compaction, time, fresh, tokens)
        start = self._append(section)
        written = Written(start=start, end=start + len(section))
        self._check(written, section)
        self._ranges.update((message.id, written) for message in fresh)
        return written

    def _check(self, written: Written, section: bytes) -> None:
        if self._storage.read(self.name)[written.start : written.end] != section:
            raise StorageError(f"{self._storage.path(self.name)} does not read back what was written")

    def _heal(self) -> None:
        """Before the first section: closes what is torn, and learns which messages are there already."""
        if self._healed:
            return
        try:
            data = self._storage.read(self.name)
        except FileNotFoundError:
            data = b""
        if mending := self._mending(data):
            self._append(mending)
        self._ranges = {
            message.id: Written(start=section.start, end=section.end)
            for section in parse(data + mending).sections  # a section that lacked but line ends is whole again
            for message in section.messages
        }
        self._healed = True

    def _mending(self, data: bytes) -> bytes:
        """What must be added to the file before the next section."""
        if not data:
            return f"# Conversation archive of session {self._session}\n".encode()
        parsed = parse(data)
        if parsed.torn is not None:
            return torn_fence(data[parsed.torn.start :]) + _closing(parsed.torn.compaction)
        rest = data[parsed.end :]
        torn = b"\n## Compaction " in rest or not data.endswith(b"\n")
        return _TORN_HEADING if torn and not rest.endswith(_TORN_HEADING) else b""

    def _append(self, data: bytes) -> int:
        """Returns when `data` is on the disk, and the byte at which it begins."""
        file = self._storage.open(self.name)
        try:
            start = file.append(data)
            file.sync()
        finally:
            file.close()
        return start


__all__ = ["Archive", "ArchiveError", "Parsed", "Section", "Written", "parse", "render_section"]
