"""What file tools may ask for. A backend knows no model, no approval and no token.

Paths are strings as the model wrote them, absolute or relative to the working directory; a backend resolves them,
links included, and raises `BackendError` for anything outside what it serves. Every failure is a `BackendError`.
What an agent remembers of the files it saw is `memory.FileMemory`; a backend only carries it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from ...context.stored import Stored
from ..sandbox.bounds import USUAL, Grant, Refusal
from .jobs import JobInfo
from .memory import FileMemory
from .output import OpenSink


class BackendError(Exception):
    """Something that the model can be told, in one sentence."""


class ChangedError(BackendError):
    """The file is no longer the one that `write` was told to expect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """What stands at a path. `path` is fit to be shown and to be given back."""

    path: str
    kind: Literal["file", "directory", "other"]
    size: int
    """Bytes; for a directory the number of its entries, or -1 where they were not counted."""
    modified: float
    """Seconds since the epoch."""
    link: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What grep is to look for, and what it is to tell."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    glob: str | None = None
    """Only files whose path below the searched folder matches."""
    kind: str | None = None
    """Only files of this kind, such as `py` (`file_types`)."""
    context: int = 0
    """Lines to tell before and after each match."""
    files: bool = False
    """Tell only which files have matches, and how many."""
    limit: int = 100
    """Matches, or files, to tell at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One line that grep found. `line` counts from 1; `text` has no line end."""

    path: str
    line: int
    text: str
    column: int = 1
    """The byte of the line, from 1, at which `text` begins: above 1 where a long line was cut around the match."""
    cut: bool = False
    """The line goes on after `text`."""
    context: bool = False
    """It stands near a match, and is none itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found, and what it left out."""

    matches: tuple[Match, ...]
    """By path and line; empty where only files were asked for."""
    counts: tuple[tuple[str, int], ...]
    """Files with a match, and how many lines of each match."""
    skipped: int = 0
    """Files or folders that could not be read."""
    binary: int = 0
    """Files with a match that are no text, and so are not told."""
    incomplete: str | None = None
    """Why the search stopped early (limit, time), or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Files whose path matched, and what was left out."""

    paths: tuple[str, ...]
    """Newest first."""
    total: int
    """Files that matched, also those beyond the limit."""
    skipped: int = 0
    """Folders that could not be read."""
    incomplete: str | None = None
    """Why the search stopped before it had seen everything, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """A command that has run."""

    output: bytes
    """Both streams in order of arrival, at most the kept head and tail."""
    exit_code: int | None
    """None where it was ended by a signal or the time limit."""
    signal: int | None = None
    timed_out: bool = False
    job: str = ""
    """The number of the job, if something that the command started still runs."""
    stored: Stored | None = None
    """The file with all of the output, if it is long; `output` is empty then."""
    refused: tuple[Refusal, ...] = ()
    """What the sandbox kept it from."""
    dropped: int = 0
    """Bytes between head and tail that were not kept in `output`."""
    dropped_at: int = 0
    """Where in `output` they would stand."""
    seconds: float = 0.0
    directory: str = "."
    """Where it ran."""


class Backend(Protocol):
    """Files and a shell, somewhere."""

    @property
    def memory(self) -> FileMemory:
        """Which content of which file this agent has seen."""
        ...

    def resolve(self, path: str) -> str:
        """The path that all spellings of it share, as approvals and the log name it: relative to the workspace where
        it lies within (whatever the working directory is), else absolute. Raises `BackendError`."""
        ...

    async def stat(self, path: str) -> FileInfo | None:
        """What stands at `path`, or None."""
        ...

    async def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """`size` bytes from byte `start` of a regular file; None reads to the end."""
        ...

    async def fingerprint(self, path: str) -> str | None:
        """A text that changes when the content of the file does; None where there is no file."""
        ...

    async def write(self, path: str, data: bytes, *, expected: str | None = None) -> str:
        """Makes `data` the content of `path`, its folders with it; modes and links stay as they are.

        Returns the new fingerprint. Raises `ChangedError`, and writes nothing, if the file's fingerprint is no longer
        `expected`; an empty text expects that there is no file, None expects nothing.
        """
        ...

    async def list(self, path: str) -> tuple[FileInfo, ...]:
        """The entries of a folder, sorted by name."""
        ...

    async def glob(self, pattern: str, path: str, *, limit: int) -> Listed:
        """Up to `limit` files below `path` whose path relative to it matches, newest first."""
        ...

    async def grep(self, search: Search, path: str) -> Found:
        """Matching lines below `path`, by path and line."""
        ...

    async def execute(
        self,
        command: str,
        *,
        limit: float,
        on_output: Callable[[bytes], None] | None,
        open_sink: OpenSink | None = None,
        grant: Grant = USUAL,
    ) -> Executed:
        """Runs a shell command in the working directory for at most `limit` seconds; `on_output` gets what comes.

        Output that gets long goes to the file that `open_sink` makes; without it only its edges are kept.
        """
        ...

    async def start(self, command: str, *, open_sink: OpenSink | None = None, grant: Grant = USUAL) -> JobInfo:
        """Starts a shell command and does not wait for it."""
        ...

    async def jobs(self) -> tuple[JobInfo, ...]:
        """What was started without waiting, or left running by its shell; oldest first."""
        ...

    async def end(self, id: str) -> JobInfo:
        """Ends a job, with all that it started."""
        ...

    async def aclose(self) -> None:
        """Ends what commands left running."""
        ...
