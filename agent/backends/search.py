"""Finding files and lines: ripgrep where it is installed, `scan` where it is not, with the same results.

Either runs as a process that is ended when enough was found, when time is up and when the caller gives up. What may
be searched is decided in `paths`, what is passed over in `ignore`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal

from .excerpt import excerpt
from .ignore import PASSED_OVER, parents_interfere
from .patterns import matcher, name_part
from .protocol import BackendError
from .scan import Request

_CHUNK = 256 * 1024
_RECORD = 64 * 1024 * 1024
"""Bytes of one line or message of an engine; what is longer is passed over."""
_ERRORS = 1024 * 1024
"""Bytes of an engine's complaints that are counted."""

Command = Sequence[str]
Stop = Literal["time", "enough"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line that matched: where it is, and what of it to show (see `protocol.Match`)."""

    path: Path
    line: int
    column: int
    text: str
    cut: bool


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of an engine: how long it may take, and what is known of how it went."""

    seconds: float
    stopped: Stop | None = None
    skipped: int = 0
    """Complaints about what could not be read."""
    refusal: str | None = None
    """What the engine said if it refused the pattern."""
    summed_up: bool = False
    """The engine has said that it is through."""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    async def go(self, command: Command, cwd: Path, take: Callable[[IO[bytes]], None]) -> None:
        """Runs `command` while `take` reads its output on a worker thread. Ends it when cancelled."""
        timer = asyncio.get_running_loop().call_later(self.seconds, self.stop, "time")
        try:
            await asyncio.to_thread(self._go, command, cwd, take)
        finally:
            timer.cancel()
            self.stop("enough")

    def _go(self, command: Command, cwd: Path, take: Callable[[IO[bytes]], None]) -> None:
        with tempfile.TemporaryFile() as errors:
            with subprocess.Popen(
                command, cwd=cwd, bufsize=0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            ) as self._process:
                if self.stopped:  # while the process was being made
                    self._process.kill()
                assert self._process.stdout is not None
                take(self._process.stdout)
            errors.seek(0)
            said = errors.read(_ERRORS)
        if self._process.returncode == 2 and not self.summed_up and not self.stopped:  # as ripgrep says "wrong usage"
            self.refusal = said.decode("utf-8", "replace").strip()
        else:
            self.skipped += sum(1 for line in said.splitlines() if line.strip())

    def stop(self, why: Stop) -> None:
        """Ends the engine."""
        self.stopped = self.stopped or why
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """Searches with the best engine that is there."""

    ripgrep: str | None
    """Absolute path of the program, or None."""
    seconds: float
    """How long one search may take."""

    async def files(self, request: Request, pattern: str) -> tuple[list[Path], Run]:
        """Files below the target whose path relative to it matches a glob."""
        fits = matcher(pattern)
        found: list[Path] = []

        def take(stream: IO[bytes]) -> None:
            for record in _records(stream, b"\0"):
                path = _decoded(record)
                if fits.fullmatch(_relative(path, request.target)):
                    found.append(Path(path))

        run = await self._run(replace(request, pattern=None, name=name_part(pattern)), lambda _: take)
        return found, run

    async def lines(self, request: Request, glob: str | None, limit: int) -> tuple[list[Hit], Run]:
        """Lines that match, at most one more than `limit`; a file in which a NUL is met gives none."""
        fits = matcher(glob) if glob else None
        reader = _Lines(
            limit=limit, wanted=lambda path: not fits or bool(fits.fullmatch(_relative(path, request.target)))
        )
        name = name_part(glob) if glob else None
        run = await self._run(replace(request, name=name), lambda run: lambda stream: reader.take(stream, run))
        run.skipped += request.target in reader.binary
        return sorted(reader.hits, key=lambda hit: (hit.path.parts, hit.line)), run

    async def _run(self, request: Request, take: Callable[[Run], Callable[[IO[bytes]], None]]) -> Run:
        refusals: list[str] = []
        for command in self._commands(request):
            run = Run(seconds=self.seconds)
            await run.go(command, Path(request.base), take(run))
            if run.refusal is None:
                return run
            refusals.append(run.refusal)
        raise BackendError(f"The pattern is not accepted. {refusals[0]}")

    def _commands(self, request: Request) -> Iterator[Command]:
        """The engines to try in turn: Python takes expressions that ripgrep does not."""
        top = request.target == request.base
        if self.ripgrep and (top or request.everything or not parents_interfere(Path(request.base))):
            yield _ripgrep(self.ripgrep, request, parents=not top)
        yield [sys.executable, "-P", "-m", f"{__package__}.scan", json.dumps(asdict(request))]


def _ripgrep(program: str, request: Request, *, parents: bool) -> list[str]:
    flags = ["--no-config", "--hidden", "--no-require-git", "--no-ignore-global", "--no-ignore-messages"]
    flags += ["--sort", "path", "--crlf"]
    flags += ["--no-ignore"] if request.everything else [] if parents else ["--no-ignore-parent"]
    passed_over = {".git"} if request.everything else PASSED_OVER
    for name in (*sorted(passed_over), *(f"/{_plain(folder)}" for folder in request.hidden)):
        flags += ["--glob", f"!{name}"]
    if request.name:  # a type, since a --glob would bring back what the ignore files take away
        flags += ["--type-add", f"wanted:{request.name}", "--type", "wanted"]
    if request.pattern is None:
        return [program, *flags, "--files", "--null", "--", request.target]
    flags += ["--ignore-case"] if request.ignore_case else []
    flags += ["--fixed-strings"] if request.literal else []
    return [program, *flags, "--json", "--regexp", request.pattern, "--", request.target]


def _plain(path: str) -> str:
    return "".join(f"\\{c}" if c in r"*?[]{}!\\" else c for c in path)


@dataclass(slots=True, kw_only=True)
class _Lines:
    """Reads what an engine says of lines."""

    limit: int
    wanted: Callable[[str], bool]
    hits: list[Hit] = field(default_factory=list[Hit])
    binary: set[str] = field(default_factory=set[str])
    _file: list[Hit] = field(default_factory=list[Hit])
    """Of the file at hand: whether it is binary is said at its end."""

    def take(self, stream: IO[bytes], run: Run) -> None:
        """Reads until the stream ends or there is enough."""
        for record in _records(stream, b"\n"):
            message = json.loads(record)
            match message["type"]:
                case "match":
                    self._match(message["data"], run)
                case "end":
                    self._end(message["data"])
                case "summary":
                    run.summed_up = True
                case _:
                    pass
        self.hits += self._file

    def _match(self, data: Mapping[str, Any], run: Run) -> None:
        path = _decoded(_bytes(data["path"]))
        if self.wanted(path) and len(self.hits) + len(self._file) <= self.limit:
            self._file.append(_hit(Path(path), data))
            if len(self.hits) + len(self._file) > self.limit:
                run.stop("enough")

    def _end(self, data: Mapping[str, Any]) -> None:
        if data["binary_offset"] is None:
            self.hits += self._file
        else:
            self.binary.add(_decoded(_bytes(data["path"])))
        self._file = []


def _hit(path: Path, data: Mapping[str, Any]) -> Hit:
    line = _bytes(data["lines"]).removesuffix(b"\n").removesuffix(b"\r")
    begin, text = excerpt(line, data["submatches"][0]["start"] if data["submatches"] else 0)
    offset = int(data.get("offset", 0))
    return Hit(
        path=path,
        line=data["line_number"],
        column=offset + begin + 1,
        text=text.decode("utf-8", "replace"),
        cut=begin + len(text) < len(line),
    )


def _bytes(value: Mapping[str, str]) -> bytes:
    """Text as ripgrep writes it into JSON: as it is, or in base64 where it is no UTF-8."""
    return value["text"].encode("utf-8", "surrogateescape") if "text" in value else base64.b64decode(value["bytes"])


def _decoded(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _relative(path: str, target: str) -> str:
    """`path` below `target`; its name alone if it is the target."""
    return path.rpartition("/")[2] if path == target else path[len(target.rstrip("/")) + 1 :]


def _records(stream: IO[bytes], separator: bytes) -> Iterator[bytes]:
    """What stands before each separator; a record that is too long is passed over."""
    pending: list[bytes] = []
    size = 0
    while chunk := stream.read(_CHUNK):
        first, *rest = chunk.split(separator)
        pending.append(first)
        size += len(first)
        if not rest:
            if size > _RECORD:
                pending.clear()
            continue
        if size <= _RECORD:
            yield b"".join(pending)
        yield from rest[:-1]
        pending, size = [rest[-1]], len(rest[-1])
