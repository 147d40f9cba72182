"""Reading and writing real files: regular ones only, never waiting for a device, never half written.

Blocking calls on resolved paths, for a worker thread. Which paths may be reached is decided in `paths`. Everything here
raises `OSError`, or `BackendError` where there is no error of the system.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path
from secrets import token_hex

from .protocol import BackendError, ChangedError, FileInfo

HASH_LIMIT = 16 * 1024 * 1024
"""Bytes up to which a fingerprint is made of the content; of larger files it is made of size, times and inode."""
COUNTED_ENTRIES = 1_000
"""Entries of a folder up to which they are counted; a listing of more counts those of no sub-folder."""
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_IN_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV})
"""Errors of the way over a new file after which an existing one is written in place: its folder is read-only, or it is
a mount of its own."""


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
    with _open(real) as file:
        file.seek(start)
        return file.read(-1 if size is None else size)


def _open(real: Path) -> BufferedReader:
    """Opens a regular file. Looks before it opens: to open some devices is to act, and to open a pipe is to wait."""
    _regular(real.stat().st_mode)
    fd = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    file = os.fdopen(fd, "rb")
    try:
        _regular(os.fstat(fd).st_mode)
    except BackendError:
        file.close()
        raise
    return file


def _regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise BackendError(f"It is {_KINDS.get(stat.S_IFMT(mode), 'no regular file')}, not a regular file")


def fingerprint(real: Path) -> str | None:
    """A text that changes when the content does; None where there is no file."""
    try:
        with _open(real) as file:
            status = os.fstat(file.fileno())
            if status.st_size > HASH_LIMIT:
                return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def write(real: Path, data: bytes, expected: str | None) -> str:
    """Makes `data` the content of `real` and returns its fingerprint; see `Backend.write`."""
    real.parent.mkdir(parents=True, exist_ok=True)
    old = _writable(real)
    draft = real.with_name(f".deepagent-{token_hex(6)}.tmp")  # beside it: a rename never crosses file systems
    try:
        _write_new(draft, data, old)
        _expect(real, expected)
        draft.replace(real)
    except OSError as error:
        if old is None or error.errno not in _IN_PLACE:
            raise
        _expect(real, expected)
        real.write_bytes(data)
    finally:
        draft.unlink(missing_ok=True)
    return hashlib.sha256(data).hexdigest() if len(data) <= HASH_LIMIT else fingerprint(real) or ""


def _writable(real: Path) -> os.stat_result | None:
    """The status of the file that is there, None where there is none."""
    try:
        status = real.stat()
    except FileNotFoundError:
        return None
    _regular(status.st_mode)
    if not os.access(real, os.W_OK):
        raise BackendError("It is read-only")
    return status


def _write_new(draft: Path, data: bytes, old: os.stat_result | None) -> None:
    """Writes the draft, with owner and mode of the file that it will replace; a new file gets what the umask says."""
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        if old is not None:
            if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(fd, old.st_uid, old.st_gid)
            os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _expect(real: Path, expected: str | None) -> None:
    if expected is not None and (fingerprint(real) or "") != expected:
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
