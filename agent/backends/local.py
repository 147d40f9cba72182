"""The backend of this machine: real files, a real shell.

Puts together what lies beside it: `paths` says what may be reached, `files` reads and writes, `search` finds, `shell`
runs. Work that may block goes to worker threads; every failure becomes a `BackendError` with one sentence.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Collection, Mapping
from copy import copy
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from ..sandbox.bounds import USUAL, Grant
from . import files
from .environment import command_environment, program, shell
from .ignore import passed_over
from .jobs import JobInfo
from .memory import FileMemory
from .output import OpenSink
from .paths import Paths, Place
from .protocol import BackendError, Executed, FileInfo, Found, Listed, Match
from .scan import Request
from .search import Run, Searcher
from .shell import Shell

T = TypeVar("T")

SEARCH_SECONDS = 20.0
"""How long one search may take."""
_SENTENCES = {
    errno.EACCES: "permission is denied",
    errno.EPERM: "permission is denied",
    errno.EISDIR: "it is a directory",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EEXIST: "a part of the path is not a directory",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "it goes through too many links",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
}


class LocalBackend:
    """Files below a workspace and a shell; implements `protocol.Backend`."""

    def __init__(
        self,
        root: Path,
        cwd: Path,
        *,
        extra: tuple[Path, ...] = (),
        data: Path,
        environ: Mapping[str, str],
        hidden_env: Collection[str] = (),
        search_seconds: float = SEARCH_SECONDS,
    ) -> None:
        """`root` is the workspace, `extra` are further folders or files that may be reached, `data` holds our data
        folders; commands get `environ` without provider keys and the variables `hidden_env`."""
        self._paths = Paths(root, cwd, extra=extra, data=data)
        self._searcher = Searcher(ripgrep=program("rg", environ, self._paths.root), seconds=search_seconds)
        self._shell = Shell(
            program=shell(environ, self._paths.root),
            cwd=self._paths.cwd,
            environ=command_environment(environ, hidden_env),
        )
        self._memory = FileMemory()

    def sibling(self) -> LocalBackend:
        """The same place for another agent, which has seen nothing yet. Closing either ends the commands of both."""
        other = copy(self)
        other._memory = FileMemory()
        return other

    @property
    def memory(self) -> FileMemory:
        return self._memory

    def resolve(self, path: str) -> str:
        return self._paths.resolve(path).name

    async def stat(self, path: str) -> FileInfo | None:
        return await self._do("read", path, lambda at: files.info(at.real, at.shown))

    async def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        return await self._do("read", path, lambda at: files.read(at.real, start, size))

    async def fingerprint(self, path: str) -> str | None:
        return await self._do("read", path, lambda at: files.fingerprint(at.real))

    async def write(self, path: str, data: bytes, *, expected: str | None = None) -> str:
        if self._paths.resolve(path).ours:
            raise BackendError(f"{path} belongs to the session's own record, which tools may read but not change")
        return await self._do("written", path, lambda at: files.write(at.real, data, expected))

    async def list(self, path: str) -> tuple[FileInfo, ...]:
        return await self._do("listed", path, lambda at: files.entries(at.real, at.shown))

    async def glob(self, pattern: str, path: str, *, limit: int) -> Listed:
        request = await self._do("searched", path, lambda at: self._request(at, None))
        found, run = await self._searcher.files(request, pattern)
        newest = await asyncio.to_thread(_newest, found, limit)
        return Listed(
            paths=tuple(self._paths.at(file).shown for file in newest),
            total=len(found),
            skipped=run.skipped,
            incomplete=_incomplete(run, self._searcher.seconds),
        )

    async def grep(
        self, pattern: str, path: str, *, glob: str | None, literal: bool, ignore_case: bool, limit: int
    ) -> Found:
        if not pattern or any(c in pattern for c in "\n\r\0"):
            raise BackendError("The pattern must be one line of text that is not empty")
        request = await self._do("searched", path, lambda at: self._request(at, pattern, literal, ignore_case))
        hits, run = await self._searcher.lines(request, glob, limit)
        more = f"there are more than {limit} lines" if len(hits) > limit else None
        shown = {hit.path: self._paths.at(hit.path).shown for hit in hits[:limit]}
        return Found(
            matches=tuple(
                Match(path=shown[hit.path], line=hit.line, text=hit.text, column=hit.column, cut=hit.cut)
                for hit in hits[:limit]
            ),
            files=len(shown),
            skipped=run.skipped,
            incomplete=more or _incomplete(run, self._searcher.seconds),
        )

    async def execute(
        self,
        command: str,
        *,
        limit: float,
        on_output: Callable[[bytes], None] | None,
        open_sink: OpenSink | None = None,
        grant: Grant = USUAL,
    ) -> Executed:
        return await self._shell.run(command, limit, on_output, open_sink=open_sink, grant=grant)

    async def start(self, command: str, *, open_sink: OpenSink | None = None, grant: Grant = USUAL) -> JobInfo:
        return await self._shell.start(command, open_sink=open_sink, grant=grant)

    async def jobs(self) -> tuple[JobInfo, ...]:
        return await self._shell.jobs()

    async def end(self, id: str) -> JobInfo:
        return await self._shell.end(id)

    async def aclose(self) -> None:
        await self._shell.aclose()

    def _request(self, at: Place, pattern: str | None, literal: bool = False, ignore_case: bool = False) -> Request:
        """What to ask of the search engine. Blocks: it looks at the ignore files above the place."""
        at.real.stat()
        base = at.base if at.base.is_dir() else at.base.parent  # a single file may be served, too
        return Request(
            base=str(base),
            target=str(at.real),
            pattern=pattern,
            literal=literal,
            ignore_case=ignore_case,
            everything=at.ours or passed_over(base, at.real),
            hidden=() if at.ours else self._paths.data_below(base),
        )

    async def _do(self, verb: str, path: str, work: Callable[[Place], T]) -> T:
        """Does `work` at the place that `path` means, on a worker thread."""
        place = self._paths.resolve(path)
        try:
            return await asyncio.to_thread(work, place)
        except BackendError as error:
            raise type(error)(f"{path} cannot be {verb}. {error}") from error
        except FileNotFoundError:
            raise BackendError(f"{path} does not exist{_similar(place.real)}") from None
        except (OSError, MemoryError) as error:
            reason = _SENTENCES.get(getattr(error, "errno", 0) or 0, getattr(error, "strerror", "") or str(error))
            raise BackendError(f"{path} cannot be {verb}: {reason}") from error


def _newest(found: list[Path], limit: int) -> list[Path]:
    def modified(path: Path) -> float:
        try:
            return path.lstat().st_mtime
        except OSError:
            return 0.0

    return sorted(found, key=lambda path: (-modified(path), path.parts))[:limit]


def _incomplete(run: Run, seconds: float) -> str | None:
    return f"the time of {seconds:g} s was up" if run.stopped == "time" else None


def _similar(missing: Path) -> str:
    """Names beside a missing file that it may have been meant."""
    try:
        names = os.listdir(missing.parent)  # noqa: PTH208 - names are all that is needed
    except OSError:
        return f"; nor does the folder {missing.parent.name}" if not missing.parent.exists() else ""
    close = get_close_matches(missing.name, names[:2000], n=3, cutoff=0.7)
    return f"; beside it: {', '.join(close)}" if close else ""
