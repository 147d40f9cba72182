"""Earlier prompts: a file of JSON lines in the user's folder, for all projects.

The file is only appended to. Whatever stands in it – torn lines, foreign objects, control codes – is passed over or
cleaned; a file that cannot be read or written costs the memory of earlier prompts, never the prompt.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from .pastes import clean

KEPT = 1_000
"""Prompts kept in memory."""
_READ = 4 * 1024 * 1024
"""Bytes at the end of the file that are read."""
_WRITTEN = 100_000
"""Characters of the longest prompt that is written; a longer one is remembered while the program runs."""
_SEARCHED = 2_000
"""Characters at a prompt's beginning that a search looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A prompt that was sent before."""

    text: str
    workspace: str


class History:
    """The prompts of one user, those of one workspace first."""

    def __init__(self, path: Path, workspace: str, mask: Callable[[str], str] = str) -> None:
        """`mask` takes known secrets out of what is written; what is remembered in this run stays as it was."""
        self._path = path
        self._workspace = workspace
        self._mask = mask
        self._earlier: dict[str, Earlier] | None = None
        """By text, oldest first."""

    def add(self, text: str) -> None:
        """Remembers a prompt, and writes it down."""
        self.remember(text)
        if len(text) <= _WRITTEN:
            self._write(self._mask(text))

    def remember(self, text: str) -> None:
        """Remembers a text for this run only."""
        earlier = self._all()
        earlier.pop(text, None)
        earlier[text] = Earlier(text=text, workspace=self._workspace)
        if len(earlier) > KEPT:
            del earlier[next(iter(earlier))]

    def texts(self) -> list[str]:
        """All prompts once: this workspace's, then the others', newest first each."""
        newest = list(reversed(self._all().values()))
        return [one.text for one in sorted(newest, key=lambda one: one.workspace != self._workspace)]

    def search(self, query: str) -> list[str]:
        """Prompts that hold `query` near their beginning, in the order of `texts`; capitals do not matter."""
        wanted = query.casefold()
        return [text for text in self.texts() if wanted in text[:_SEARCHED].casefold()]

    def _all(self) -> dict[str, Earlier]:
        if self._earlier is None:
            self._earlier = {}
            for one in _read(self._path):
                self._earlier.pop(one.text, None)
                self._earlier[one.text] = one
            for text in list(self._earlier)[:-KEPT]:
                del self._earlier[text]
        return self._earlier

    def _write(self, text: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"at": at, "workspace": self._workspace, "text": text}).encode() + b"\n"
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _opened(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
                size = os.fstat(fd).st_size
                torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                os.write(fd, b"\n" + line if torn else line)


@contextmanager
def _opened(path: Path, flags: int) -> Generator[int]:
    """A regular file's descriptor; raises `OSError` for all else, and waits for nothing."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(f"{path} is no file")
        yield fd
    finally:
        os.close(fd)


def _read(path: Path) -> Iterator[Earlier]:
    try:
        with _opened(path, os.O_RDONLY) as fd:
            start = max(0, os.fstat(fd).st_size - _READ)
            data = os.pread(fd, _READ, start)
    except OSError:
        return
    lines = data.split(b"\n")
    for line in lines[1:] if start else lines:
        if one := _parsed(line):
            yield one


def _parsed(line: bytes) -> Earlier | None:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, object], value)
    text, workspace = fields.get("text"), fields.get("workspace")
    if not isinstance(text, str) or not (shown := clean(text)).strip():
        return None
    return Earlier(text=shown, workspace=workspace if isinstance(workspace, str) else "")
