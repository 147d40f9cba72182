"""Finding files and lines: ripgrep where it is installed, `scan` where it is not, with the same results.

Either runs as a process that is ended when enough was found, when time is up and when the caller gives up, and that may
take only so much memory. What it says is read in `hits`; what may be searched is decided in `paths`, what is passed
over in `ignore`.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from heapq import nsmallest
from pathlib import Path
from typing import IO, Literal, Protocol, TypeVar

from .file_types import patterns_of
from .hits import Lines, decoded, records
from .ignore import PASSED_OVER, parents_interfere
from .patterns import matcher, name_part
from .protocol import BackendError, Search
from .scan import Request

_MEMORY = 1024 * 1024 * 1024
"""Bytes that an engine may take: ripgrep holds a whole line, and there are files of one line."""
_ERRORS = 1024 * 1024
"""Bytes of an engine's complaints that are counted."""

Command = Sequence[str]
Stop = Literal["time", "enough"]


class Reader(Protocol):
    """What takes an engine's output; a new one for each engine that is tried."""

    @property
    def summed_up(self) -> bool:
        """The engine has said that it is through."""
        ...

    def take(self, stream: IO[bytes], enough: Callable[[], None]) -> None:
        """Reads until the stream ends; `enough` ends the engine."""
        ...


R = TypeVar("R", bound=Reader)


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of an engine: how long it may take, and what is known of how it went."""

    seconds: float
    stopped: Stop | None = None
    skipped: int = 0
    """Complaints about what could not be read."""
    refusal: str | None = None
    """What the engine said if it refused the pattern, or fell."""
    fell: bool = False
    """It was ended by none of us: by the system, for want of memory."""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    async def go(self, command: Command, cwd: Path, reader: Reader) -> None:
        """Runs `command` while `reader` takes its output on a worker thread. Ends it when cancelled."""
        timer = asyncio.get_running_loop().call_later(self.seconds, self.stop, "time")
        try:
            await asyncio.to_thread(self._go, command, cwd, reader)
        finally:
            timer.cancel()
            self.stop("enough")

    def _go(self, command: Command, cwd: Path, reader: Reader) -> None:
        with tempfile.TemporaryFile() as errors:
            with subprocess.Popen(
                command, cwd=cwd, bufsize=0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            ) as self._process:
                _bound(self._process.pid)
                if self.stopped:  # while the process was being made
                    self._process.kill()
                assert self._process.stdout is not None
                reader.take(self._process.stdout, lambda: self.stop("enough"))
            errors.seek(0)
            said = errors.read(_ERRORS)
        code = self._process.returncode
        self.fell = code < 0 and not self.stopped
        if self.fell or (code == 2 and not reader.summed_up and not self.stopped):  # 2 is ripgrep's "wrong usage"
            self.refusal = said.decode("utf-8", "replace").strip()
        else:
            self.skipped += sum(1 for line in said.splitlines() if line.strip())

    def stop(self, why: Stop) -> None:
        """Ends the engine."""
        self.stopped = self.stopped or why
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()


def _bound(pid: int) -> None:
    """Bounds the memory of a process where the system can; what it has mapped from files does not count."""
    if hasattr(resource, "prlimit"):
        with suppress(OSError):  # it is gone already
            resource.prlimit(pid, resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


@dataclass(slots=True, kw_only=True)
class _Files:
    """Keeps the newest of the files that an engine lists."""

    limit: int
    wanted: Callable[[str], bool]
    newest: list[str] = field(default_factory=list[str])
    total: int = 0
    summed_up: bool = False

    def take(self, stream: IO[bytes], enough: Callable[[], None]) -> None:
        self.newest = [path for *_, path in nsmallest(self.limit, self._ranked(stream))]

    def _ranked(self, stream: IO[bytes]) -> Iterator[tuple[float, list[str], str]]:
        for record in records(stream, b"\0"):
            path = decoded(record)
            if self.wanted(path):
                self.total += 1
                yield -_modified(path), path.split("/"), path


def _modified(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """Searches with the best engine that is there."""

    ripgrep: str | None
    """Absolute path of the program, or None."""
    seconds: float
    """How long one search may take."""

    async def files(self, request: Request, pattern: str, limit: int) -> tuple[list[str], int, Run]:
        """The newest files below the target whose path relative to it matches a glob, and how many there are."""
        wanted = _wanted(request.target, pattern, None)
        plain = name_part(pattern)
        names = (plain,) if plain else ()
        request = replace(request, pattern=None, names=names)
        found, run = await self._run(request, lambda: _Files(limit=limit, wanted=wanted))
        return found.newest, found.total, run

    async def lines(self, request: Request, search: Search) -> tuple[Lines, Run]:
        """Lines that match. Raises `BackendError` for a kind of files that is not known."""
        plain = name_part(search.glob) if search.glob else None
        names = patterns_of(search.kind) if search.kind else (plain,) if plain else ()
        around = 0 if search.files else search.context
        request = replace(request, names=names, context=around, files=search.files)
        wanted = _wanted(request.target, search.glob, search.kind)
        return await self._run(
            request,
            lambda: Lines(limit=search.limit, around=around, files=search.files, wanted=wanted, target=request.target),
        )

    async def _run(self, request: Request, make: Callable[[], R]) -> tuple[R, Run]:
        refusals: list[str] = []
        for command in self._commands(request):
            run, reader = Run(seconds=self.seconds), make()
            await run.go(command, Path(request.base), reader)
            if run.refusal is None:
                return reader, run
            if not run.fell:
                refusals.append(run.refusal)
        if not refusals:
            raise BackendError("The search took too much memory. Narrow the path or the glob")
        raise BackendError(f"The pattern is not accepted. {refusals[0]}")

    def _commands(self, request: Request) -> Iterator[Command]:
        """The engines to try in turn: Python takes expressions that ripgrep does not, and lines of any length."""
        top = request.target == request.base
        if self.ripgrep and (top or request.everything or not parents_interfere(Path(request.base))):
            yield _ripgrep(self.ripgrep, request, parents=not top)
        yield [sys.executable, "-P", "-m", f"{__package__}.scan", json.dumps(asdict(request))]


def _wanted(target: str, glob: str | None, kind: str | None) -> Callable[[str], bool]:
    """Whether a path found at or below `target` is wanted."""
    fits = matcher(glob) if glob else None
    names = [matcher(pattern) for pattern in patterns_of(kind)] if kind else []

    def wanted(path: str) -> bool:
        below = path.rpartition("/")[2] if path == target else path[len(target.rstrip("/")) + 1 :]
        return (not fits or bool(fits.fullmatch(below))) and (not names or any(n.fullmatch(below) for n in names))

    return wanted


def _ripgrep(program: str, request: Request, *, parents: bool) -> list[str]:
    flags = ["--no-config", "--hidden", "--no-require-git", "--no-ignore-global", "--no-ignore-messages"]
    flags += ["--sort", "path", "--crlf", "--no-mmap"]  # of what is mapped, only a part is looked at for NUL
    flags += ["--no-ignore"] if request.everything else [] if parents else ["--no-ignore-parent"]
    passed_over = {".git"} if request.everything else PASSED_OVER
    for name in (*sorted(passed_over), *(f"/{_plain(folder)}" for folder in request.hidden)):
        flags += ["--glob", f"!{name}"]
    for name in request.names:  # a type, since a --glob would bring back what the ignore files take away
        flags += ["--type-add", f"wanted:{name}"]
    flags += ["--type", "wanted"] if request.names else []
    if request.pattern is None:
        return [program, *flags, "--files", "--null", "--", request.target]
    flags += ["--ignore-case"] if request.ignore_case else []
    flags += ["--fixed-strings"] if request.literal else []
    flags += ["--context", str(request.context)] if request.context else []
    return [program, *flags, "--json", "--regexp", request.pattern, "--", request.target]


def _plain(path: str) -> str:
    return "".join(f"\\{c}" if c in r"*?[]{}!\\" else c for c in path)
