"""Where the messages of a project's sessions are read from: logs, and archives whose logs are gone.

Nothing is written here, and a file that cannot be read is passed over with a notice. Files that came with a clone are
not seen at all: the storage names only what this user wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from pydantic import ValidationError

from .archive import parse
from .entries import FORMAT_VERSION, MessageLogged, SessionStarted
from .log import decode
from .messages import Message, clean
from .recall_passages import Passage, passages_of
from .storage import Storage, StorageError, archive_name, log_name

_BLOCK = 8 * 1024 * 1024
_LONGEST_LINE = 512 * 1024 * 1024
_LARGE = 64 * 1024 * 1024
"""Bytes of one offloaded text that are read."""
_KEPT_FILES = 8
"""Offloaded texts that are kept in memory."""
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file with messages."""

    session: str
    """With the task's name behind a dot for a sub-agent's."""
    kind: Literal["log", "archive"]

    @property
    def name(self) -> str:
        """The file's name in the storage."""
        return log_name(self.session) if self.kind == "log" else archive_name(self.session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a message lies: the bytes of its line in a log, or of its section in an archive and its number there."""

    start: int
    end: int
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A message and its place."""

    place: Place
    message: Message


class Sources:
    """The files of a project's sessions."""

    def __init__(self, storage: Storage, notice: Notice) -> None:
        self.storage = storage
        self._notice = notice
        self._files: dict[str, str | None] = {}

    def all(self) -> tuple[Source, ...]:
        """Every session's file, newest session first: a session's id begins with its time."""
        logs = _stems(self.storage.names("sessions"), ".jsonl")
        archives = _stems(self.storage.names("conversation_history"), ".md") - logs
        found = [*(Source(session=one, kind="log") for one in logs)]
        found += [Source(session=one, kind="archive") for one in archives]
        return tuple(sorted(found, key=lambda source: source.session, reverse=True))

    def of(self, session: str) -> tuple[Source, ...]:
        """The files of one session, those of its sub-agents included."""
        return tuple(one for one in self.all() if one.session == session or one.session.startswith(f"{session}."))

    def size(self, source: Source) -> int:
        """Bytes of the file; 0 where it cannot be read, which is noticed."""
        try:
            return self.storage.size(source.name)
        except (OSError, StorageError) as error:
            self._notice(f"{source.name} cannot be read and was passed over: {error}")
            return 0

    def head(self, source: Source) -> str:
        """What tells one file of this name from another: the hash of its first line."""
        data = self._read(source.name, 0, 64 * 1024)
        return hashlib.sha256(data[: data.find(b"\n") + 1]).hexdigest()

    def tail(self, source: Source, end: int) -> str:
        """The hash of the bytes before `end`: a log that grew has the same ones there."""
        start = max(0, end - 256)
        return hashlib.sha256(self._read(source.name, start, end - start)).hexdigest()

    def readable(self, source: Source) -> bool:
        """Whether this version can read the file; if not, that is noticed."""
        if source.kind == "archive":
            return True
        data = self._read(source.name, 0, 64 * 1024)
        if not (first := data.partition(b"\n")[0]).strip():
            return False
        entry = None
        with suppress(ValueError, ValidationError, RecursionError):
            entry = decode(first)
        if isinstance(entry, SessionStarted) and entry.version <= FORMAT_VERSION:
            return True
        self._notice(f"{source.name} is no log that this version can read and was passed over")
        return False

    def messages(self, source: Source, start: int = 0) -> Iterator[tuple[int, Located | None]]:
        """The messages from byte `start` on, each with the byte up to which the file has been read.

        A step without a message is the end of a block. What cannot be read is passed over with a notice.
        """
        try:
            yield from self._logged(source, start) if source.kind == "log" else self._archived(source)
        except (OSError, StorageError) as error:
            self._notice(f"{source.name} cannot be read to its end: {error}")

    def message(self, source: Source, place: Place) -> Message | None:
        """The message at a place; None where there is none any more."""
        try:
            data = self.storage.read(source.name, start=place.start, size=place.end - place.start)
        except (OSError, StorageError):
            return None
        if source.kind == "archive":
            sections = parse(data).sections
            messages = sections[0].messages if sections else ()
            return messages[place.at] if place.at < len(messages) else None
        return _message(data)

    def with_id(self, source: Source, message: str) -> Message | None:
        """The newest message with this id; found without reading the others."""
        try:
            data = self.storage.read(source.name)
            if source.kind == "archive":
                every = (one for section in parse(data).sections for one in section.messages)
                return next((one for one in reversed(tuple(every)) if one.id == message), None)
        except (OSError, StorageError) as error:
            self._notice(f"{source.name} cannot be read: {error}")
            return None
        wanted, at = json.dumps(message).encode(), len(data)
        while (at := data.rfind(wanted, 0, at)) >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            found = _message(data[start : end if end >= 0 else len(data)])
            if found is not None and found.id == message:
                return found
            at = start
        return None

    def passages(self, message: Message, files: dict[str, str] | None = None) -> tuple[Passage, ...]:
        """The texts of a message, see `passages_of`."""
        return passages_of(message, self._text, {} if files is None else files)

    def _read(self, name: str, start: int, size: int) -> bytes:
        try:
            return self.storage.read(name, start=start, size=size)
        except (OSError, StorageError):
            return b""

    def _logged(self, source: Source, start: int) -> Iterator[tuple[int, Located | None]]:
        position, rest = start, b""
        while block := self.storage.read(source.name, start=position + len(rest), size=_BLOCK):
            data = rest + block
            *lines, rest = data.split(b"\n")
            for line in lines:
                end = position + len(line) + 1
                if (found := self._line(source, line)) is not None:
                    yield end, Located(place=Place(start=position, end=end - 1), message=found)
                position = end
            yield position, None
            if len(rest) > _LONGEST_LINE:
                self._notice(f"{source.name} has a line that is too long and was passed over")
                return

    def _line(self, source: Source, line: bytes) -> Message | None:
        if b'"role":' not in line:
            return None
        try:
            return _decoded(line)
        except (ValueError, ValidationError, RecursionError):
            self._notice(f"{source.name}: a line that cannot be read was passed over")
            return None

    def _archived(self, source: Source) -> Iterator[tuple[int, Located | None]]:
        data = self.storage.read(source.name)
        for section in parse(data).sections:
            for at, message in enumerate(section.messages):
                place = Place(start=section.start, end=section.end, at=at)
                yield section.end, Located(place=place, message=message)
        yield len(data), None

    def _text(self, name: str) -> str | None:
        """An offloaded text; the newest few are kept."""
        if name not in self._files:
            while len(self._files) >= _KEPT_FILES:
                del self._files[next(iter(self._files))]
            self._files[name] = self._file(name)
        return self._files[name]

    def _file(self, name: str) -> str | None:
        try:
            if self.storage.size(name) > _LARGE:
                self._notice(f"only the first {_LARGE:,} bytes of {name} can be searched here; grep finds the rest")
            return clean(self.storage.read(name, size=_LARGE).decode("utf-8", "surrogateescape"))
        except (OSError, StorageError) as error:
            self._notice(f"{name} is gone ({error}); only its preview can be searched")
            return None


def _decoded(line: bytes) -> Message | None:
    entry = decode(line)
    return entry.message if isinstance(entry, MessageLogged) else None


def _message(line: bytes) -> Message | None:
    with suppress(ValueError, ValidationError, RecursionError):
        return _decoded(line)
    return None


def _stems(names: tuple[str, ...], suffix: str) -> set[str]:
    """The sessions that the files are named after; those in deeper folders are none."""
    paths = (PurePosixPath(name) for name in names)
    return {path.name.removesuffix(suffix) for path in paths if path.suffix == suffix and len(path.parts) == 2}
