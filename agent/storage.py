"""`DiskStorage`: our files in the project, each linked a second time below the user's own folder.

The second name, the twin, is what makes `git clean -fdx` harmless, and what tells our files from those that came with a
clone: what has no twin was not written by this user's `deepagent` and is never opened. Where no link can be made (two
file systems) the project has a copy. The twin is made first, written first and locked, so it always decides: after a
crash the project's copy is the beginning of it at worst. Which folders these are is decided in `agent.workspace`.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..context.storage import AppendFile, Locked, StorageError

_OPEN = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A file that is open for appending."""

    path: Path
    fd: int

    def write(self, data: bytes) -> None:
        with _named(self.path):
            _write_all(self.fd, data)

    def sync(self) -> None:
        with _named(self.path):
            os.fsync(self.fd)

    @property
    def size(self) -> int:
        return os.fstat(self.fd).st_size


class _DiskFile:
    """The twin, and the project's copy where it is no link to the twin."""

    def __init__(self, files: tuple[_Open, ...]) -> None:
        self._files: tuple[_Open, ...] = files

    def append(self, data: bytes) -> int:
        start = self._files[0].size
        try:
            for file in self._files:
                file.write(data)
        except OSError as error:
            self._take_back(start)
            raise _wrap(error, self._files[0].path) from error
        return start

    def _take_back(self, end: int) -> None:
        """Cuts the torn rest of a failed append, so that the next one starts a clean line."""
        for file in self._files:
            with suppress(OSError):
                if file.size > end:
                    os.ftruncate(file.fd, end)

    def sync(self) -> None:
        try:
            for file in self._files:
                file.sync()
        except OSError as error:
            raise _wrap(error, self._files[0].path) from error

    def close(self) -> None:
        for file in self._files:
            os.close(file.fd)
        self._files = ()


class DiskStorage:
    """Files below `root`, doubled below `mirror`. All are 0600 in folders 0700."""

    def __init__(self, root: Path, mirror: Path, *, prefix: str, prepare: Callable[[], None] = lambda: None) -> None:
        """`prefix` leads the paths that a model sees: `.deepagents`, or the absolute path of `root`. `prepare` is
        called before the first file is made."""
        self.root = root
        self.mirror = mirror
        self._prefix = prefix
        self._prepare: Callable[[], None] | None = prepare

    def open(self, name: str, *, lock: bool = False) -> AppendFile:
        path, twin = self._paths(name)
        new = not os.path.lexists(twin)
        try:
            self._get_ready()
            files = self._open_both(path, twin, lock=lock)
            if new:
                _sync_folders(path, twin)
            return _DiskFile(files)
        except OSError as error:
            if new:  # an empty twin alone would be listed as a session
                with suppress(OSError):
                    twin.unlink()
            raise _wrap(error, path) from error

    def _open_both(self, path: Path, twin: Path, *, lock: bool) -> tuple[_Open, ...]:
        _make_folder(twin.parent)
        ours = _Open(path=twin, fd=os.open(twin, _OPEN, 0o600))
        try:
            if lock:
                _lock(ours)
            _restore(path, twin)
            if os.path.samestat(os.fstat(ours.fd), path.stat(follow_symlinks=False)):
                return (ours,)
            return (ours, _open_copy(path, twin))
        except BaseException:
            os.close(ours.fd)
            raise

    def create(self, name: str, data: bytes) -> None:
        path, twin = self._paths(name)
        if os.path.lexists(twin) or os.path.lexists(path):
            raise FileExistsError(path)
        try:
            self._get_ready()
            _make_folder(twin.parent)
            _write_new(twin, data)
            try:
                _restore(path, twin)
            except OSError:
                twin.unlink(missing_ok=True)
                raise
            _sync_folders(path, twin)
        except FileExistsError:
            raise
        except OSError as error:
            raise _wrap(error, path) from error

    def _get_ready(self) -> None:
        """What has to be done before the first file."""
        prepare, self._prepare = self._prepare, None
        if prepare is not None:
            prepare()

    def read(self, name: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Reads our own file: the twin decides, whatever lies in the project."""
        twin = self.own(name)
        try:
            with twin.open("rb") as file:
                file.seek(start)
                return file.read(size)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _wrap(error, twin, verb="read") from error

    def size(self, name: str) -> int:
        twin = self.own(name)
        try:
            return twin.stat().st_size
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _wrap(error, twin, verb="read") from error

    def names(self, folder: str) -> tuple[str, ...]:
        _, base = self._paths(folder)
        return tuple(sorted(str(p.relative_to(self.mirror)) for p in base.rglob("*") if p.is_file()))

    def shown(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def path(self, name: str) -> Path:
        return self.root / name

    def own(self, name: str) -> Path:
        """The twin."""
        return self._paths(name)[1]

    def remove(self, name: str) -> None:
        """Takes a file of ours away, here and at user level, and folders that are empty then. Raises `StorageError`."""
        path, twin = self._paths(name)
        try:
            ours = path.is_file() and (path.samefile(twin) or path.read_bytes() == twin.read_bytes())
            twin.unlink(missing_ok=True)
            if ours:
                path.unlink()
            for folder in (path.parent, twin.parent):
                if name.count("/") > 1:
                    with suppress(OSError):
                        folder.rmdir()
        except OSError as error:
            raise _wrap(error, path, verb="remove") from error

    def restore_all(self, session: str) -> None:
        """Puts back what was removed from the project of one session's files. Raises `StorageError`."""
        for name in self.names("."):
            if session in name:
                path, twin = self._paths(name)
                try:
                    _restore(path, twin)
                    if name.count("/") > 1:  # an offloaded text: to logs and archives their session may be writing
                        _complete(path, twin)
                except OSError as error:
                    raise _wrap(error, path) from error

    def _paths(self, name: str) -> tuple[Path, Path]:
        """Where a file and its twin lie. Raises `StorageError` for a name that leads out of our folders."""
        if name.startswith("/") or "\0" in name or ".." in PurePosixPath(name).parts:
            raise StorageError(f"{name!r} is no name of a file of ours")
        return self.root / name, self.mirror / name


def _wrap(error: OSError, path: Path, *, verb: str = "write") -> StorageError:
    """The error for people; it names the file at which it happened, or `path` where that is not known."""
    reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)
    return StorageError(f"cannot {verb} {error.filename or path}: {reason}")


@contextmanager
def _named(path: Path) -> Generator[None]:
    """Errors on a descriptor do not know their file."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _lock(file: _Open) -> None:
    """Takes the twin's lock, which lasts as long as the file is open; the project's file may be replaced meanwhile."""
    try:
        fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Locked(f"{file.path.name} is open in another process") from error


def _restore(path: Path, twin: Path) -> None:
    """Links (or copies) the twin back into the project where the project's name is gone or is not ours."""
    if path.is_symlink() or (path.exists() and not _ours(path, twin)):
        path.rename(_aside(path))
    if not path.exists():
        _make_folder(path.parent)
        if not _link(twin, path):
            _write_new(path, twin.read_bytes())


def _ours(path: Path, twin: Path) -> bool:
    """Whether two names hold our text: one inode, or a copy, of which a crash may have cut the end."""
    if os.path.samestat(path.stat(), twin.stat()):
        return True
    return path.stat().st_size <= twin.stat().st_size and twin.read_bytes().startswith(path.read_bytes())


def _open_copy(path: Path, twin: Path) -> _Open:
    """The project's copy, with what a crash kept from it."""
    copy = _Open(path=path, fd=os.open(path, _OPEN, 0o600))
    try:
        copy.write(twin.read_bytes()[copy.size :])
    except BaseException:
        os.close(copy.fd)
        raise
    return copy


def _complete(path: Path, twin: Path) -> None:
    """Adds what a crash, or a full disk, kept from the project's copy."""
    if path.stat().st_size < twin.stat().st_size:
        os.close(_open_copy(path, twin).fd)


def _aside(path: Path) -> Path:
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.foreign-{number}")):
        number += 1
    return aside


def _make_folder(folder: Path) -> None:
    """Makes a folder and those above it, each for the user alone."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:  # a file is in the way; `create` uses this error for something else
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from error


def _write_new(path: Path, data: bytes) -> None:
    """Makes a file, whole and on the disk, or not at all."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with _named(path):
            _write_all(fd, data)
            os.fsync(fd)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _link(path: Path, twin: Path) -> bool:
    """Gives `path` the second name `twin`; False where the file system cannot."""
    try:
        os.link(path, twin, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _sync_folders(*files: Path) -> None:
    """Returns when the names of new files are on the disk."""
    for file in files:
        fd = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
