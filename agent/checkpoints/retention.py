"""How long states of files are kept: their room on the disk has a bound, whatever sessions do."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..git.objects import make_ready
from ..git.process import GitError, environment, run
from ..git.shadow import locked
from .store import Store

_DAY = 86_400.0
_OID = re.compile(r"[0-9a-f]{40}\n?")
_LOOSE, _PACKS = 4_000, 30
"""Objects in a file each, and packs, from which on they are put together."""
_GONE = 100
"""Changes that are let go from which on the room that they took is given back."""
_YOUNG = 3_600
"""Seconds for which what nothing refers to stays: another session may be about to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What stays."""

    days: float = 30
    """States older than that go."""
    sets: int = 2_000
    """The newest changes that stay, each that of one call of a tool."""
    bytes: int = 1024 * 1024 * 1024
    """Room on the disk; where there is more, the older half goes."""
    seconds: float = 8
    """For putting together; what is not done then is done next time."""


def tidy(store: Store, keep: Keep | None = None, *, now: float | None = None) -> None:
    """Lets go what is too old or too much, and puts the rest together where that is due. Raises `GitError`."""
    keep = keep or Keep()
    end = time.monotonic() + keep.seconds
    if not store.folder.is_dir():
        return
    with locked(store.folder, 0, wait=False):
        gone = _expire(store, keep, now or time.time())
        if full := _size(store.folder) > keep.bytes:
            _halve(store)
        loose, packs = _count(store.folder)
        if full or gone > _GONE or loose > _LOOSE or packs > _PACKS:
            _pack(store, end)


def forget(folder: Path, session: str) -> None:
    """Lets go what one session did to files. What nothing else holds leaves the disk with the next `tidy`."""
    shutil.rmtree(folder / "refs" / "checkpoints" / session, ignore_errors=True)


def _expire(store: Store, keep: Keep, now: float) -> int:
    """Removes refs that are old, too many, or broken; how many."""
    refs = sorted(_ages(store), reverse=True)
    gone = 0
    for number, (written, ref) in enumerate(refs):
        if number >= keep.sets or now - written > keep.days * _DAY or not _sound(ref):
            ref.unlink(missing_ok=True)
            gone += 1
    return gone


def _halve(store: Store) -> None:
    refs = sorted(_ages(store))
    for _, ref in refs[: (len(refs) + 1) // 2]:
        ref.unlink(missing_ok=True)


def _ages(store: Store) -> Iterator[tuple[float, Path]]:
    for ref in store.refs():
        with suppress(FileNotFoundError):
            yield ref.stat().st_mtime, ref


def _sound(ref: Path) -> bool:
    """A crash can leave a file empty; git would stop at it."""
    with suppress(OSError, UnicodeError):
        return _OID.fullmatch(ref.read_text()) is not None
    return False


def _size(folder: Path) -> int:
    return sum(entry.stat().st_size for place in _object_folders(folder) for entry in place if entry.is_file())


def _count(folder: Path) -> tuple[int, int]:
    """Objects in a file each, and packs."""
    names = [Path(entry.path) for place in _object_folders(folder) for entry in place]
    packs = sum(name.suffix == ".pack" for name in names)
    return sum(len(name.parent.name) == 2 for name in names), packs


def _object_folders(folder: Path) -> Iterator[list[os.DirEntry[str]]]:
    for place in _entries(folder / "objects"):
        if place.is_dir():
            yield _entries(Path(place.path))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _pack(store: Store, end: float) -> None:
    """Lets git put together what refs and index hold, and remove the rest. It can be ended at any time."""
    make_ready(store.folder)
    environ = {**environment(), "GIT_DIR": str(store.folder)}
    quiet = ("-c", "gc.auto=0", "-c", "core.sharedRepository=0600", "-c", "pack.writeBitmapIndex=false")
    for command in (
        ("repack", "-a", "-d", "-q", "--window=0"),
        ("prune", f"--expire={_YOUNG}.seconds.ago"),
    ):
        said = run(store.folder, (*quiet, *command), environ, end=end, limit=4096)
        if said.code:
            raise GitError(said.reason)
        if said.code is None:
            return
