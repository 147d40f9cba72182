"""What a confined command may reach. Plain data: how it is enforced is the engines' business."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

EngineName = Literal["bubblewrap", "landlock", "seatbelt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of one command. Paths are absolute and real; who writes through a link writes where it leads.

    Where a place lies in a writable and in a read-only folder, the inner one counts. What is hidden stays so.
    """

    writable: tuple[Path, ...]
    """Folders and files that may be written; all else is read-only. A missing folder is made."""
    read_only: tuple[Path, ...] = ()
    """Places within `writable` that stay closed for writing. A missing one is made, as an empty folder: what is not
    there cannot be kept closed."""
    hidden: tuple[Path, ...] = ()
    """Files and folders that can be neither read nor listed."""
    network: bool = False
    """Whether anything but local sockets of its own can be reached."""

    def within(self, grant: Grant) -> Bounds:
        """The bounds of a command that has a grant. A granted folder is writable, also one that was closed."""
        if grant.reading:
            return replace(self, writable=(), read_only=(), network=False)
        granted = tuple(path.resolve() for path in grant.writable)
        return replace(
            self,
            writable=(*self.writable, *granted),
            read_only=tuple(path for path in self.read_only if path not in granted),
            network=self.network or grant.network,
        )

    def may_write(self, path: Path) -> bool:
        """Whether a real path may be written."""
        inner = max(map(depth, enclosing(self.writable, path)), default=0)
        closed = max(map(depth, enclosing(self.read_only, path)), default=0)
        return inner > closed and not self.hides(path)

    def hides(self, path: Path) -> bool:
        """Whether a real path is hidden."""
        return bool(enclosing(self.hidden, path))

    def inner(self) -> tuple[Path, ...]:
        """The read-only places that lie in a writable folder: those that need a wall of their own."""
        return tuple(path for path in self.read_only if enclosing(self.writable, path.parent))


def enclosing(places: tuple[Path, ...], path: Path) -> tuple[Path, ...]:
    """Those of `places` that are `path` or hold it."""
    holders = {path, *path.parents}
    return tuple(place for place in places if place in holders)


def depth(path: Path) -> int:
    """How many names lead to a path from the root, which has one."""
    return len(path.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """How one call is confined, where not as usual."""

    network: bool = False
    """With network."""
    writable: tuple[Path, ...] = ()
    """Further folders that may be written."""
    reading: bool = False
    """Nothing may be written but a private temporary folder: for commands that run without being asked about."""
    off: bool = False
    """Not confined at all."""


USUAL = Grant()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that the sandbox kept a command from, as far as its output tells."""

    kind: Literal["write", "read", "network", "other"]
    subject: str = ""
    """The path or host as the output names it; may be empty."""
    folder: Path | None = None
    """For a write: the folder that would have to be writable, or the file if it is one that is kept closed. None where
    that would be a folder around the home folder: too much to be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """Which sandbox is active, for people."""

    engine: EngineName | None
    """None: commands run unconfined, or in strict mode not at all."""
    reason: str
    """Why this one or none, in one sentence, such as `bubblewrap 0.8.0 ran a probe`."""
    lacks: tuple[str, ...] = ()
    """What this engine cannot keep from commands, in a few words each."""
