"""Reading and writing real files: regular ones only, never waiting for a device, never half written.

Blocking calls on resolved paths, for a worker thread. Which paths may be reached is decided in `paths`, how a content
gets into a file in `writing`. All here raises `OSError`, or `BackendError` where there is no error of the system.
"""

from __future__ import annotations

import hashlib
import os
import stat
from itertools import islice
from pathlib import Path

from .protocol import ChangedError, FileInfo
from .spot import Spot, reader, spot
from .writing import put

HASH_LIMIT = 16 * 1024 * 1024
"""Bytes up to which a fingerprint is made of the content; of larger files it is made of size, times and inode."""
COUNTED_ENTRIES = 1_000
"""Entries of a folder up to which they are counted; a listing of more counts those of no sub-folder."""


def info(real: Path, shown: str) -> FileInfo | None:
    """What stands at `real`, or None."""
    try:
        status = real.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return FileInfo(path=shown, kind="directory", size=_count(real), modified=status.st_mtime)
    kind = "file" if stat.S_ISREG(status.st_mode) else "other"
    return FileInfo(path=shown, kind=kind, size=status.st_size, modified=status.st_mtime)


def read(real: Path, start: int, size: int | None) -> bytes:
    """`size` bytes of a regular file from `start`; None reads to the end."""
    with spot(real) as place, reader(place) as file:
        file.seek(start)
        return file.read(-1 if size is None else size)


def fingerprint(real: Path) -> str | None:
    """A text that changes when the content does; None where there is no file."""
    try:
        with spot(real) as place:
            return _fingerprint(place)
    except FileNotFoundError:
        return None


def _fingerprint(place: Spot) -> str:
    with reader(place) as file:
        status = os.fstat(file.fileno())
        if status.st_size > HASH_LIMIT:
            return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(real: Path, data: bytes, expected: str | None) -> str:
    """Makes `data` the content of `real` and returns its fingerprint; see `Backend.write`."""
    with spot(real, make=True) as place:
        put(place, data, lambda: _expect(place, expected))
        return hashlib.sha256(data).hexdigest() if len(data) <= HASH_LIMIT else _fingerprint(place)


def _expect(place: Spot, expected: str | None) -> None:
    try:
        found = "" if expected is None else _fingerprint(place)
    except FileNotFoundError:
        found = ""
    if expected is not None and found != expected:
        raise ChangedError("The file was changed by someone else in this moment; nothing was written")


def entries(real: Path, shown: str) -> tuple[FileInfo, ...]:
    """The entries of a folder by name; `shown` leads their paths."""
    with os.scandir(real) as scan:
        found = sorted(scan, key=lambda entry: entry.name)
    prefix = "" if shown == "." else f"{shown}/"
    count = len(found) <= COUNTED_ENTRIES
    return tuple(_entry(entry, f"{prefix}{entry.name}", count) for entry in found)


def _entry(entry: os.DirEntry[str], shown: str, count: bool) -> FileInfo:
    link = entry.is_symlink()
    try:
        status = entry.stat()
    except OSError:  # a link to nowhere, or gone by now
        return FileInfo(path=shown, kind="other", size=0, modified=0.0, link=link)
    if stat.S_ISDIR(status.st_mode):
        size = _count(entry.path) if count and not link else -1
        return FileInfo(path=shown, kind="directory", size=size, modified=status.st_mtime, link=link)
    kind = "file" if stat.S_ISREG(status.st_mode) else "other"
    return FileInfo(path=shown, kind=kind, size=status.st_size, modified=status.st_mtime, link=link)


def _count(folder: str | Path) -> int:
    """Entries of a folder; -1 where it cannot be read or holds too many to count in passing."""
    try:
        with os.scandir(folder) as scan:
            number = sum(1 for _ in islice(scan, COUNTED_ENTRIES + 1))
    except OSError:
        return -1
    return number if number <= COUNTED_ENTRIES else -1
