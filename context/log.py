"""The log of a session: one JSON object a line, appended, never edited.

Crash rules: an incomplete last line is closed with a newline and so set aside; a line that cannot be read is skipped
with a notice; a kind that this version does not know is kept in the file and skipped. No string here or in the file has
lone surrogates, so each entry can go to the archive and to a provider. What entries mean is told in `context.entries`;
what the model sees of them, in `context.view`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from .entries import ENTRY, FORMAT_VERSION, KINDS, Entry, SessionStarted
from .messages import clean
from .storage import AppendFile, Storage, log_name

_ESCAPED = (b"\\ud", b"\\uD", b"\\ufffd")
"""What an ASCII line has if it may hold lone surrogates: half a pair, or what replaced one."""


class LogError(Exception):
    """A log that cannot be opened: it has no first entry, or a newer format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLog:
    """What a file held."""

    entries: tuple[Entry, ...]
    notices: tuple[str, ...]
    closed: bool
    """The file ends with a whole line."""
    lines: tuple[bytes, ...]
    """The lines of the entries, those of unknown kinds included, without their ends."""


def encode(entry: Entry) -> bytes:
    """One line, ASCII only."""
    return json.dumps(ENTRY.dump_python(entry, mode="json"), separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> Entry | None:
    """The entry of a line; None for a kind that this version does not know. Raises `ValueError` for anything else."""
    raw: object = json.loads(line)
    if not isinstance(raw, dict):
        raise ValueError("no JSON object")
    kind = cast(dict[str, object], raw).get("kind")
    if isinstance(kind, str) and kind not in KINDS:
        return None
    return ENTRY.validate_python(_cleaned(cast(object, raw)) if _suspicious(line) else raw)


def _suspicious(line: bytes) -> bool:
    """Whether a line may hold lone surrogates. Plain searches: a pattern would take longer than all the rest."""
    return not line.isascii() or any(escaped in line for escaped in _ESCAPED)


def _cleaned(value: object) -> object:
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(item) for item in cast(list[object], value)]
        case dict():
            return {clean(key): _cleaned(item) for key, item in cast(dict[str, object], value).items()}
        case _:
            return value


def load(name: str, data: bytes) -> LoadedLog:
    """Reads a log. Raises `LogError`."""
    entries: list[Entry] = []
    notices: list[str] = []
    lines: list[bytes] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = decode(line)
        except (ValueError, ValidationError, RecursionError):
            notices.append(f"{name}:{number}: a line that cannot be read was skipped")
            continue
        lines.append(line)
        if entry is not None:
            entries.append(entry)
    _check_first(name, entries)
    closed = not data or data.endswith(b"\n")
    return LoadedLog(entries=tuple(entries), notices=tuple(notices), closed=closed, lines=tuple(lines))


def _check_first(name: str, entries: list[Entry]) -> None:
    if not entries or not isinstance(entries[0], SessionStarted):
        raise LogError(f"{name} does not begin with the start of a session")
    if entries[0].version > FORMAT_VERSION:
        raise LogError(f"{name} has format {entries[0].version}; this version of deepagent reads {FORMAT_VERSION}")


class LogWriter:
    """Appends entries to the log of `session`, which no other process may write meanwhile."""

    def __init__(self, storage: Storage, session: str, *, first: Entry | None = None) -> None:
        """Opens the log; a new one, that begins with `first`, only when more is added. Raises `Locked`."""
        self._storage = storage
        self._name = log_name(session)
        self._held = b"" if first is None else encode(first)
        """What is written together with the next entry."""
        self._open_file: AppendFile | None = None if first else storage.open(self._name, lock=True)
        self._dirty = False

    @property
    def _file(self) -> AppendFile:
        if self._open_file is None:
            self._open_file = self._storage.open(self._name, lock=True)
        if self._held:
            self._open_file.append(self._held)
            self._held = b""
        return self._open_file

    def close_torn_line(self) -> None:
        """Ends an incomplete last line, so that the next entry begins a line of its own."""
        self._file.append(b"\n")

    def append(self, entry: Entry) -> Entry:
        """Adds an entry and returns it as the log has it. Raises `StorageError`; then the log is as it was."""
        line = encode(entry)
        if _suspicious(line) and (cleaned := decode(line)) is not None and cleaned != entry:
            entry, line = cleaned, encode(cleaned)
        self._file.append(line)
        self._dirty = True
        return entry

    def copy(self, lines: Iterable[bytes]) -> None:
        """Adds lines of another log as they are. Raises `StorageError`; then the log is as it was."""
        self._file.append(b"".join(line + b"\n" for line in lines))
        self._dirty = True

    def sync(self) -> None:
        """Returns when every entry is on the disk."""
        if self._dirty:
            self._file.sync()
            self._dirty = False

    def close(self) -> None:
        """Syncs and gives back the file and its lock, whatever the sync says. Raises `StorageError`."""
        if self._open_file is not None:
            try:
                self.sync()
            finally:
                self._open_file.close()
