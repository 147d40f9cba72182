"""Regular expressions under guard: they are searched for in another process (`recall_worker`), which can be stopped."""

from __future__ import annotations

import os
import selectors
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

from .recall_query import Span

_BATCH = 32 * 1024
"""Bytes that are sent before answers are read: what a pipe holds, so that nobody waits for the other."""


class TooSlow(Exception):
    """The time is over; `done` texts of the batch had been looked at."""

    def __init__(self, done: int) -> None:
        super().__init__(f"{done} done")
        self.done = done


class RegexSearch:
    """Looks for a pattern in texts, until a moment of `time.monotonic`. A context manager."""

    def __init__(self, pattern: str, until: float) -> None:
        self._until = until
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("recall_worker.py"))],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._rest = b""
        self._send(pattern, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        with suppress(OSError):
            self._process.communicate()

    def search(self, texts: Sequence[str]) -> list[Span | None]:
        """Where the pattern first fits in each text. Raises `TooSlow`."""
        answers: list[Span | None] = []
        sent = held = 0
        for text in texts:
            held += self._send(text, len(answers))
            sent += 1
            if held >= _BATCH:
                answers += self._answers(sent - len(answers), len(answers))
                held = 0
        return answers + self._answers(sent - len(answers), len(answers))

    def _send(self, text: str, done: int) -> int:
        """Sends a text and gives its size; a long one waits until it is taken."""
        data = text.encode("utf-8", "replace")
        frame = struct.pack(">I", len(data)) + data
        assert self._process.stdin is not None
        fd = self._process.stdin.fileno()
        left = memoryview(frame)
        while left:
            self._wait(fd, selectors.EVENT_WRITE, done)
            try:
                left = left[os.write(fd, left) :]
            except BrokenPipeError as error:  # it ran out of memory, say
                raise TooSlow(done) from error
        return len(frame)

    def _answers(self, count: int, done: int) -> list[Span | None]:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        found: list[Span | None] = []
        while len(found) < count:
            *lines, self._rest = self._rest.split(b"\n")
            found += [None if line == b"-" else _span(line) for line in lines]
            if len(found) < count:
                self._wait(fd, selectors.EVENT_READ, done + len(found))
                data = os.read(fd, 65536)
                if not data:
                    raise TooSlow(done + len(found))
                self._rest += data
        return found

    def _wait(self, fd: int, event: int, done: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, event)
            if not selector.select(max(0.0, self._until - monotonic())):
                raise TooSlow(done)


def _span(line: bytes) -> Span:
    start, end = line.split()
    return int(start), int(end)
