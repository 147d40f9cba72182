"""A name in an open folder, reached step by step and through no link; and what may be opened there: regular files.

Paths are resolved once (`paths`). A command that still runs could put a link in the place of a folder after that, and
so have a tool, which no sandbox holds, read or write elsewhere. What is done at a spot is the caller's business.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from .protocol import BackendError

_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""With `O_PATH` a folder needs no right to be read to be walked through, as usual."""
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A name in an open folder."""

    folder: int
    """Its descriptor: for `dir_fd`, not for reading."""
    name: str

    def beside(self, name: str) -> Spot:
        """Another name in the same folder."""
        return Spot(folder=self.folder, name=name)

    def stat(self) -> os.stat_result:
        """What stands there, a link not followed."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def open(self, flags: int, mode: int = 0o666) -> int:
        """A descriptor of what stands there; a link is refused, and a pipe not waited for."""
        flags |= os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(self.name, flags, mode, dir_fd=self.folder)

    def unlink(self) -> None:
        """Takes the name away if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.folder)


@contextmanager
def spot(real: Path, *, make: bool = False) -> Generator[Spot]:
    """The place of `real`, an absolute path without links; `make` makes folders that are missing.

    Raises `OSError`, `NotADirectoryError` also where a part has become a link.
    """
    folder = os.open("/", _STEP)
    try:
        for part in real.parts[1:-1]:
            below = _step(folder, part, make)
            os.close(folder)
            folder = below
        yield Spot(folder=folder, name=real.name or ".")
    finally:
        os.close(folder)


def _step(folder: int, part: str, make: bool) -> int:
    try:
        return os.open(part, _STEP, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # made by someone else in this moment
        os.mkdir(part, dir_fd=folder)
    return os.open(part, _STEP, dir_fd=folder)


def regular(mode: int) -> None:
    """Raises `BackendError` for anything but a regular file, `OSError` for a link."""
    if stat.S_ISLNK(mode):  # one that leads to itself, or that was put there in this moment
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(mode):
        raise BackendError(f"It is {_KINDS.get(stat.S_IFMT(mode), 'no regular file')}, not a regular file")


def open_regular(place: Spot, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file. Looks before it opens: to open some devices is to act."""
    regular(place.stat().st_mode)
    fd = place.open(flags)
    try:
        regular(os.fstat(fd).st_mode)
    except BackendError:
        os.close(fd)
        raise
    return fd


def reader(place: Spot) -> BufferedReader:
    """A regular file, open for reading."""
    return os.fdopen(open_regular(place), "rb")
