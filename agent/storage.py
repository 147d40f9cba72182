"""`DiskStorage`: our files in the project, each linked a second time below the user's own folder.

The second name is what makes `git clean -fdx` harmless, and what tells our files from those that came with a clone:
a file that has no twin at user level was not written by this user's `deepagent` and is never opened. Which folders
these are is decided in `agent.workspace`.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from ..context.storage import AppendFile, Locked, StorageError

_OPEN = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _wrap(error: OSError, path: Path) -> StorageError:
    reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)
    return StorageError(f"cannot write {path}: {reason}")


class _DiskFile:
    """One inode where links work, else the file and its copy."""

    def __init__(self, path: Path, fds: tuple[int, ...]) -> None:
        self._path = path
        self._fds = fds
        self._end = os.fstat(fds[0]).st_size

    def append(self, data: bytes) -> int:
        start = self._end
        try:
            for fd in self._fds:
                _write_all(fd, data)
        except OSError as error:
            self._take_back(start)
            raise _wrap(error, self._path) from error
        self._end = start + len(data)
        return start

    def _take_back(self, end: int) -> None:
        """Cuts the torn rest of a failed append, so that the next one starts a clean line."""
        for fd in self._fds:
            if os.fstat(fd).st_size > end:
                os.ftruncate(fd, end)

    def sync(self) -> None:
        try:
            for fd in self._fds:
                os.fsync(fd)
        except OSError as error:
            raise _wrap(error, self._path) from error

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = ()


class DiskStorage:
    """Files below `root`, doubled below `mirror`. All are 0600 in folders 0700."""

    def __init__(self, root: Path, mirror: Path, *, prefix: str) -> None:
        """`prefix` leads the paths that a model sees: `.deepagents`, or the absolute path of `root`."""
        self.root = root
        self.mirror = mirror
        self._prefix = prefix

    def open(self, name: str, *, lock: bool = False) -> AppendFile:
        path, twin = self.root / name, self.mirror / name
        try:
            self._restore(name)
            fds = self._open_both(path, twin)
        except OSError as error:
            raise _wrap(error, path) from error
        if lock:
            self._lock(fds, path)
        return _DiskFile(path, fds)

    def _open_both(self, path: Path, twin: Path) -> tuple[int, ...]:
        for folder in (path.parent, twin.parent):
            _make_folder(folder)
        new = not twin.exists()
        fd = os.open(path, _OPEN | (os.O_EXCL if new else 0), 0o600)
        if new and _link(path, twin):
            _sync_folder(path.parent)
            return (fd,)
        if twin.exists() and os.path.samestat(os.fstat(fd), twin.stat()):
            return (fd,)
        return (fd, os.open(twin, _OPEN, 0o600))

    def _lock(self, fds: tuple[int, ...], path: Path) -> None:
        try:
            fcntl.flock(fds[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            for fd in fds:
                os.close(fd)
            raise Locked(f"{path.name} is open in another process") from error

    def create(self, name: str, data: bytes) -> None:
        path, twin = self.root / name, self.mirror / name
        if twin.exists() or path.is_symlink():
            raise FileExistsError(path)
        try:
            for folder in (path.parent, twin.parent):
                _make_folder(folder)
            _write_new(path, data)
            if not _link(path, twin):
                _write_new(twin, data)
            _sync_folder(path.parent)
        except FileExistsError:
            raise
        except OSError as error:
            path.unlink(missing_ok=True)
            raise _wrap(error, path) from error

    def read(self, name: str) -> bytes:
        """Reads our own file: the twin decides, whatever lies in the project."""
        return (self.mirror / name).read_bytes()

    def names(self, folder: str) -> tuple[str, ...]:
        base = self.mirror / folder
        return tuple(sorted(str(p.relative_to(self.mirror)) for p in base.rglob("*") if p.is_file()))

    def shown(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def path(self, name: str) -> Path:
        return self.root / name

    def restore_all(self, session: str) -> None:
        """Puts back what was removed from the project of one session's files."""
        for name in self.names("."):
            if session in name:
                self._restore(name)

    def _restore(self, name: str) -> None:
        """Links the user-level twin back into the project where the project's name is gone or is not ours."""
        path, twin = self.root / name, self.mirror / name
        if not twin.exists():
            return
        if path.is_symlink() or (path.exists() and not _same(path, twin)):
            path.rename(_aside(path))
        if not path.exists():
            _make_folder(path.parent)
            if not _link(twin, path):
                _write_new(path, twin.read_bytes())


def _same(path: Path, twin: Path) -> bool:
    """Whether two names hold our text: one inode, or a copy (a crash may have cut the last append of one)."""
    if os.path.samestat(path.stat(), twin.stat()):
        return True
    ours, theirs = twin.read_bytes(), path.read_bytes()
    return ours == theirs


def _aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.foreign-{number}")).exists():
        number += 1
    return aside


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _write_new(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _link(path: Path, twin: Path) -> bool:
    """Gives `path` the second name `twin`; False where the file system cannot."""
    try:
        os.link(path, twin, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
