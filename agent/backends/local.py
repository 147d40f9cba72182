"""The backend of this machine: real files, a real shell.

Puts together what lies beside it: `paths` says what may be reached, `files` reads and writes, `search` finds, `shell`
runs. Work that may block goes to worker threads; every failure becomes a `BackendError` with one sentence.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable, Collection, Mapping
from copy import copy
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from ..sandbox.bounds import USUAL, Grant
from ..sandbox.sandbox import Sandbox
from . import files
from .environment import command_environment, program, shell
from .ignore import passed_over
from .jobs import JobInfo
from .memory import FileMemory
from .output import OpenSink
from .paths import Paths, Place
from .protocol import BackendError, Executed, FileInfo, Found, Listed, Match, Search
from .scan import Request
from .search import Run, Searcher
from .shell import Shell
from .spot import regular

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
        sandbox: Sandbox | None = None,
    ) -> None:
        """`root` is the workspace, `extra` are further folders or files that may be reached, `data` holds our data
        folders; commands get `environ` without provider keys and the variables `hidden_env`, in `sandbox`."""
        self._paths = Paths(root, cwd, extra=extra, data=data)
        self._searcher = Searcher(ripgrep=program("rg", environ, self._paths.root), seconds=search_seconds)
        self._shell = Shell(
            program=shell(environ, self._paths.root),
            cwd=self._paths.cwd,
            environ=command_environment(environ, hidden_env),
            sandbox=sandbox,
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
        newest, total, run = await self._searcher.files(request, pattern, limit)
        return Listed(
            paths=tuple(self._paths.at(Path(file)).shown for file in newest),
            total=total,
            skipped=run.skipped,
            incomplete=_incomplete(run, self._searcher.seconds),
        )

    async def grep(self, search: Search, path: str) -> Found:
        if not search.pattern or any(c in search.pattern for c in "\n\r\0"):
            raise BackendError("The pattern must be one line of text that is not empty")
        request = await self._do("searched", path, lambda at: self._request(at, search))
        found, run = await self._searcher.lines(request, search)
        more = f"there are more than {search.limit} {'files' if search.files else 'lines'}" if found.more else None
        shown = {path: self._paths.at(Path(path)).shown for path in found.counts}
        return Found(
            matches=tuple(
                Match(
                    path=shown[hit.path],
                    line=hit.line,
                    text=hit.text,
                    column=hit.column,
                    cut=hit.cut,
                    context=hit.context,
                )
                for hit in sorted(found.hits, key=lambda hit: (_order(hit.path), hit.line))
            ),
            counts=tuple(
                (shown[path], number) for path, number in sorted(found.counts.items(), key=lambda c: _order(c[0]))
            ),
            skipped=run.skipped,
            binary=len(found.binary),
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

    def _request(self, at: Place, search: Search | None) -> Request:
        """What to ask of the search engine. Blocks: it looks at the ignore files above the place."""
        status = at.real.stat()
        if not stat.S_ISDIR(status.st_mode):
            regular(status.st_mode)
        base = at.base if at.base.is_dir() else at.base.parent  # a single file may be served, too
        return Request(
            base=str(base),
            target=str(at.real),
            pattern=search.pattern if search else None,
            literal=search is not None and search.literal,
            ignore_case=search is not None and search.ignore_case,
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


def _order(path: str) -> list[str]:
    """Folders in the order of their names, and what lies in one together."""
    return path.split("/")


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
