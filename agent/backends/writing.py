"""How a new content gets into a file: at once where that keeps all that belongs to the file, in place where not.

At once means over a draft beside it that takes the file's name: a reader sees the old or the new content, and so does
whoever comes after a crash. A file with several names (hard links), one whose owner or attributes a draft cannot get,
and one in a folder that takes no draft, are written in place. Whether it may be written at all is decided elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from secrets import token_hex

from .protocol import BackendError, ChangedError
from .spot import Spot, open_regular, regular

Check = Callable[[], None]
"""Raises `ChangedError` if the file is no longer what it is taken for."""

_IN_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS})
"""Errors of the way over a draft after which an existing file is written in place: its folder takes none, what belongs
to the file cannot be given to a draft, or it is a mount of its own."""
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""Errors that say that a file system knows no hard links."""
_HELD = 64 * 1024 * 1024
"""Bytes of a file up to which its content is held while it is written in place, to be put back if that fails."""


def put(place: Spot, data: bytes, check: Check) -> None:
    """Makes `data` the content of the file at `place`, or of a new one; `check` is called right before."""
    old = _writable(place)
    if old is None:
        _create(place, data, check)
    elif old.st_nlink > 1:
        _overwrite(place, data, check)
    else:
        try:
            _replace(place, data, check)
        except OSError as error:
            if error.errno not in _IN_PLACE:
                raise
            _overwrite(place, data, check)


def _writable(place: Spot) -> os.stat_result | None:
    """The status of the file that is there, None where there is none."""
    try:
        status = place.stat()
    except FileNotFoundError:
        return None
    regular(status.st_mode)
    if not os.access(place.name, os.W_OK, dir_fd=place.folder):
        raise BackendError("It is read-only")
    return status


def _create(place: Spot, data: bytes, check: Check) -> None:
    """Gives the draft the name only where nobody else has taken it in this moment."""
    with _draft(place, data, mode=0o666) as draft:
        check()
        try:
            os.link(draft.name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder, follow_symlinks=False)
        except FileExistsError:
            raise ChangedError("It was made by someone else in this moment; nothing was written") from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _rename(draft, place)


def _replace(place: Spot, data: bytes, check: Check) -> None:
    with _draft(place, data) as draft:
        _make_alike(place, draft)
        check()
        _rename(draft, place)


def _rename(draft: Spot, place: Spot) -> None:
    os.replace(draft.name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)


@contextmanager
def _draft(place: Spot, data: bytes, *, mode: int = 0o600) -> Generator[Spot]:
    """A file beside `place` that holds `data`, on the disk; it is gone afterwards unless it was renamed.

    Nobody else may read it before it has the mode of the file that it replaces.
    """
    draft = place.beside(f".deepagent-{token_hex(6)}.tmp")
    try:
        with os.fdopen(draft.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink()


def _make_alike(place: Spot, draft: Spot) -> None:
    """Gives the draft owner, attributes (access lists among them) and mode of the file, or raises `OSError`."""
    old = open_regular(place)
    try:
        new = draft.open(os.O_RDONLY)
        try:
            wanted, have = os.fstat(old), os.fstat(new)
            if (wanted.st_uid, wanted.st_gid) != (have.st_uid, have.st_gid):
                os.fchown(new, wanted.st_uid, wanted.st_gid)
            _copy_attributes(old, new)
            os.fchmod(new, stat.S_IMODE(wanted.st_mode))
        finally:
            os.close(new)
    finally:
        os.close(old)


def _copy_attributes(old: int, new: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    names = _attributes(old)
    for name in names:
        value = os.getxattr(old, name)
        if name not in _attributes(new) or os.getxattr(new, name) != value:
            os.setxattr(new, name, value)
    for name in set(_attributes(new)) - set(names):  # such as an access list that the folder gives to new files
        os.removexattr(new, name)


def _attributes(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno in {errno.ENOTSUP, errno.ENOSYS}:
            return []
        raise


def _overwrite(place: Spot, data: bytes, check: Check) -> None:
    """Writes in place. A draft lies beside it meanwhile, where one can, so that a crash never takes both contents."""
    with os.fdopen(open_regular(place, os.O_RDWR), "r+b", buffering=0) as file, _spare(place, data):
        status = os.fstat(file.fileno())
        held = file.read(_HELD + 1) if status.st_size <= _HELD else None
        check()
        try:
            _rewrite(file, data, status.st_size)
        except BaseException:
            if held is not None:
                with suppress(OSError):
                    _rewrite(file, held, status.st_size)
            raise
        if os.fstat(file.fileno()).st_mode != status.st_mode:  # writing takes setuid away
            with suppress(PermissionError):
                os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))


@contextmanager
def _spare(place: Spot, data: bytes) -> Generator[None]:
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(_draft(place, data))
        yield


def _rewrite(file: FileIO, data: bytes, size: int) -> None:
    """Makes `data` the content of an open file of `size` bytes. Room is taken first: a full disk is met before a byte
    has changed."""
    fd = file.fileno()
    if len(data) > size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, size, len(data) - size)
    file.seek(0)
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
    os.ftruncate(fd, len(data))
    os.fsync(fd)
