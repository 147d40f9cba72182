"""What file tools may ask for. A backend knows no model, no approval and no token.

Paths are strings as the model wrote them, absolute or relative to the working directory; a backend resolves them,
links included, and raises `BackendError` for anything outside what it serves. Every failure is a `BackendError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol


class BackendError(Exception):
    """Something that the model can be told, in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """What stands at a path. `path` is fit to be shown and to be given back."""

    path: str
    kind: Literal["file", "directory", "other"]
    size: int
    """Bytes; for a directory the number of its entries."""
    modified: float
    """Seconds since the epoch."""
    link: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One line that grep found. `line` counts from 1; `text` has no line end."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found, and what it left out."""

    matches: tuple[Match, ...]
    files: int
    """Files with a match."""
    skipped: int = 0
    """Files or folders that could not be read."""
    incomplete: str | None = None
    """Why the search stopped early (limit, time), or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """A command that has run."""

    output: bytes
    """Both streams in order of arrival, at most the kept head and tail."""
    exit_code: int | None
    """None where it was ended by a signal or the time limit."""
    signal: int | None = None
    timed_out: bool = False
    left_running: bool = False
    """A child of the command still holds its output open."""
    dropped: int = 0
    """Bytes between head and tail that were not kept in `output`."""
    seconds: float = 0.0


class Backend(Protocol):
    """Files and a shell, somewhere."""

    def resolve(self, path: str) -> str:
        """The path that all spellings of it share, as approvals and the log name it. Raises `BackendError`."""
        ...

    async def stat(self, path: str) -> FileInfo | None:
        """What stands at `path`, or None."""
        ...

    async def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """`size` bytes from byte `start` of a regular file; None reads to the end."""
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Makes `data` the content of `path`, its folders with it; modes and links stay as they are."""
        ...

    async def list(self, path: str) -> tuple[FileInfo, ...]:
        """The entries of a folder, sorted by name."""
        ...

    async def glob(self, pattern: str, path: str, *, limit: int) -> tuple[tuple[str, ...], bool]:
        """Up to `limit` files below `path` that match, newest first, and whether there were more."""
        ...

    async def grep(
        self, pattern: str, path: str, *, glob: str | None, literal: bool, ignore_case: bool, limit: int
    ) -> Found:
        """Up to `limit` matching lines below `path`."""
        ...

    async def execute(self, command: str, *, limit: float, on_output: Callable[[bytes], None] | None) -> Executed:
        """Runs a shell command in the working directory for at most `limit` seconds; `on_output` gets each chunk."""
        ...
