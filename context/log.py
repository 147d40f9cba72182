"""The log of a session: one JSON object a line, appended, never edited.

Crash rules: an incomplete last line is closed with a newline and so set aside; a line that cannot be read is skipped
with a notice; a kind that this version does not know is kept in the file and skipped. What entries mean is told in
`context.entries`; what the model sees of them, in `context.view`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from .entries import ENTRY, FORMAT_VERSION, KINDS, Entry, SessionStarted
from .storage import AppendFile, Storage, log_name


class LogError(Exception):
    """A log that cannot be opened: it has no first entry, or a newer format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLog:
    """What a file held."""

    entries: tuple[Entry, ...]
    notices: tuple[str, ...]
    closed: bool
    """The file ends with a whole line."""


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
    return ENTRY.validate_python(raw)


def load(name: str, data: bytes) -> LoadedLog:
    """Reads a log. Raises `LogError`."""
    entries: list[Entry] = []
    notices: list[str] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = decode(line)
        except (ValueError, ValidationError, RecursionError):
            notices.append(f"{name}:{number}: a line that cannot be read was skipped")
            continue
        if entry is not None:
            entries.append(entry)
    _check_first(name, entries)
    return LoadedLog(entries=tuple(entries), notices=tuple(notices), closed=not data or data.endswith(b"\n"))


def _check_first(name: str, entries: list[Entry]) -> None:
    if not entries or not isinstance(entries[0], SessionStarted):
        raise LogError(f"{name} does not begin with the start of a session")
    if entries[0].version > FORMAT_VERSION:
        raise LogError(f"{name} has format {entries[0].version}; this version of deepagent reads {FORMAT_VERSION}")


class LogWriter:
    """Appends entries to the log of `session`, which no other process may write meanwhile."""

    def __init__(self, storage: Storage, session: str) -> None:
        """Raises `Locked` if another process has the log open."""
        self._file: AppendFile = storage.open(log_name(session), lock=True)
        self._dirty = False

    def close_torn_line(self) -> None:
        """Ends an incomplete last line, so that the next entry begins a line of its own."""
        self._file.append(b"\n")

    def append(self, entry: Entry) -> None:
        """Adds an entry. Raises `StorageError`; then the log is as it was."""
        self._file.append(encode(entry))
        self._dirty = True

    def sync(self) -> None:
        """Returns when every entry is on the disk."""
        if self._dirty:
            self._file.sync()
            self._dirty = False

    def close(self) -> None:
        """Gives back the file and its lock."""
        self._file.close()
