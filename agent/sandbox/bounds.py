"""What a confined command may reach. Plain data: how it is enforced is the engines' business."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of one command. Paths are absolute and real; who writes through a link writes where it leads."""

    writable: tuple[Path, ...]
    """Folders and files that may be written; all else is read-only."""
    read_only: tuple[Path, ...] = ()
    """Places within `writable` that stay closed for writing, whether or not they exist."""
    hidden: tuple[Path, ...] = ()
    """Files and folders that can be neither read nor listed."""
    network: bool = False
    """Whether anything but local sockets of its own can be reached."""


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
    """For a write: the folder that would have to be writable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """Which sandbox is active, for people."""

    engine: Literal["bubblewrap", "landlock", "seatbelt"] | None
    """None: commands run unconfined, or in strict mode not at all."""
    reason: str
    """Why this one or none, in one sentence, such as `bubblewrap 0.8.0 ran a probe`."""
    lacks: tuple[str, ...] = ()
    """What this engine cannot keep from commands, in a few words each."""
