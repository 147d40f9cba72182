"""Files as they lie in the workspace: looking at one, and putting an earlier state in its place.

No link is followed on the way to a file or at its end, and what stands there is looked at again in the last moment:
what is no longer as expected is left alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from ..git.objects import Item, object_id
from .states import FILE_BYTES, Name, folders_of, same

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_DEEPEST = 200
"""Folders above a file at most."""


class LeftAlone(Exception):
    """A file is not touched; the text says why."""


class FolderThere(LeftAlone):
    """A folder stands where the file should be."""

    def __init__(self) -> None:
        super().__init__("a folder stands in its place")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What stands at a name."""

    item: Item | None
    """None where nothing does."""
    data: bytes = b""
    """The content, or where a link leads."""


class Places:
    """The files of one workspace."""

    def __init__(self, root: Path, *, stays: Path | None = None) -> None:
        """`stays` is a folder that is never removed, whatever is in it."""
        self._root = root
        self._stays = stays

    def look(self, name: Name) -> Seen:
        """What is there now; a folder is no file. Raises `LeftAlone` for other things, and for what cannot be read."""
        try:
            with self._folder(name) as folder:
                return _look(folder, _last(name))
        except (FileNotFoundError, NotADirectoryError, FolderThere):
            return Seen(item=None)
        except OSError as error:
            raise LeftAlone(f"it cannot be read: {error.strerror}") from error

    def put(self, name: Name, item: Item, data: bytes, *, expected: Item | None) -> None:
        """Gives a file a state. Raises `LeftAlone` if it has not the `expected` one, or it cannot be done."""
        try:
            self._make_folders(name)
            with self._folder(name) as folder:
                _put(folder, _last(name), item, data, expected)
        except (NotADirectoryError, FileExistsError) as error:
            raise LeftAlone("a part of its path is no folder any more") from error
        except IsADirectoryError as error:
            raise FolderThere from error
        except OSError as error:
            raise LeftAlone(f"it cannot be written: {error.strerror}") from error

    def remove(self, name: Name, *, expected: Item) -> None:
        """Takes a file away, and folders that are empty then. Raises `LeftAlone`, as `put` does."""
        try:
            with self._folder(name) as folder:
                _expect(folder, _last(name), expected)
                os.unlink(_last(name), dir_fd=folder)
        except OSError as error:
            raise LeftAlone(f"it cannot be removed: {error.strerror}") from error
        if not name.startswith(b"/"):
            self._remove_empty(name)

    def _remove_empty(self, name: Name) -> None:
        with suppress(OSError):  # the first that is not empty
            for above in folders_of(name):
                if self._stays is not None and self._stays.is_relative_to(self._root / os.fsdecode(above)):
                    return
                with self._folder(above) as folder:
                    os.rmdir(_last(above), dir_fd=folder)

    def _make_folders(self, name: Name) -> None:
        for above in reversed(folders_of(name)):
            with self._folder(above) as folder, suppress(FileExistsError):
                os.mkdir(_last(above), dir_fd=folder)

    @contextmanager
    def _folder(self, name: Name) -> Generator[int]:
        """The folder that a file lies in, reached without a link. Raises `OSError`, or `LeftAlone` for no name."""
        parts = name.removeprefix(b"/").split(b"/")
        if not all(parts) or {b".", b".."} & set(parts) or b"\0" in name or len(parts) > _DEEPEST:
            raise LeftAlone("its name is none that can be kept")
        top = "/" if name.startswith(b"/") else self._root
        folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


def _last(name: Name) -> bytes:
    return name.rpartition(b"/")[2]


def _look(folder: int, name: bytes) -> Seen:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=folder)
        return Seen(item=Item(mode=stat.S_IFLNK, oid=object_id("blob", target)), data=target)
    if not stat.S_ISREG(status.st_mode):
        raise FolderThere if stat.S_ISDIR(status.st_mode) else LeftAlone("it is no regular file")
    if status.st_size > FILE_BYTES:
        raise LeftAlone(f"it is larger than {FILE_BYTES // 1024 // 1024} MB")
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder), "rb") as f:
        data = f.read(FILE_BYTES + 1)
    return Seen(item=Item(mode=status.st_mode, oid=object_id("blob", data)), data=data)


def _expect(folder: int, name: bytes, expected: Item | None) -> None:
    try:
        found = _look(folder, name).item
    except FileNotFoundError:
        found = None
    if not same(found, expected):
        raise LeftAlone("somebody has changed it in this moment")


def _put(folder: int, name: bytes, item: Item, data: bytes, expected: Item | None) -> None:
    """Puts a draft in the file's place, or writes into a file that has further names, which keep it then."""
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    regular = old is not None and stat.S_ISREG(old.st_mode)
    if old is not None and regular and old.st_nlink > 1 and stat.S_ISREG(item.mode):
        _expect(folder, name, expected)
        _write_in_place(folder, name, item, data)
        return
    draft = f".deepagent-{token_hex(6)}.tmp".encode()
    try:
        if stat.S_ISLNK(item.mode):
            os.symlink(data, draft, dir_fd=folder)
        else:
            _write_draft(folder, draft, item, data, old if regular else None)
        _expect(folder, name, expected)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)


def _write_draft(folder: int, draft: bytes, item: Item, data: bytes, old: os.stat_result | None) -> None:
    """A new file as `item` says; where one stands already, its owner and who may read and write it stay."""
    usual = item.mode in (0o100644, 0o100755)
    created = (0o777 if item.mode & 0o100 else 0o666) if usual else 0o600
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, created, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        if old is not None:
            if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(fd, old.st_uid, old.st_gid)
            os.fchmod(fd, _with_bit(old.st_mode, item.mode))
        elif not usual:
            os.fchmod(fd, item.mode & 0o777)


def _write_in_place(folder: int, name: bytes, item: Item, data: bytes) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.truncate()
        file.write(data)
        os.fchmod(fd, _with_bit(os.fstat(fd).st_mode, item.mode))


def _with_bit(mode: int, wanted: int) -> int:
    """Permissions as they are, but executable or not as `wanted` says: for all who may read, where it does not say."""
    mode = stat.S_IMODE(mode)
    if mode & 0o666 == wanted & 0o666:
        return wanted & 0o777
    if bool(mode & 0o100) == bool(wanted & 0o100):
        return mode
    return mode | (mode & 0o444) >> 2 if wanted & 0o100 else mode & ~0o111
