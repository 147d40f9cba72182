"""What is kept of a command's output: a short one whole, of a long one beginning and end, and all of it in a file.

Output comes on the thread that reads it (`pump`) and is asked for on another; a lock lies between. Where the file is,
and that no secret gets into it, is the business of whoever hands in the `Sink`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ...context.stored import Stored
from .terminal import Screen, plain

EDGE = 512 * 1024
"""Bytes kept of the beginning, and of the end, where there is no file for the whole."""
WHOLE = 256 * 1024
"""Bytes up to which output is kept whole, in memory."""
TAIL = 64 * 1024
"""Bytes or characters shown of an end."""
_BLOCK = 64 * 1024
"""Bytes that are gathered before a new block of the end is begun: output may come byte by byte."""


class Sink(Protocol):
    """A file that takes a long text while it comes."""

    @property
    def path(self) -> str:
        """Where it lies, as `read_file` takes it."""
        ...

    @property
    def tail(self) -> str:
        """How it ends so far."""
        ...

    def add(self, text: str) -> None:
        """Takes the next piece. Raises nothing: what cannot be stored is told in the end."""
        ...

    def close(self) -> Stored:
        """What has become of it; all is on the disk then."""
        ...


OpenSink = Callable[[], Sink]
"""Makes the file at the moment when it is needed. Raises `OSError` or `BackendError`."""


@dataclass(slots=True, kw_only=True)
class Kept:
    """The first and the last `edge` bytes of all that was added."""

    edge: int = EDGE
    _dropped: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: deque[bytearray] = field(default_factory=deque[bytearray])
    _tail_size: int = 0

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return len(self._head) + self._tail_size

    def add(self, data: bytes) -> None:
        """Takes the next piece of output."""
        room = self.edge - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            if not self._tail or len(self._tail[-1]) >= _BLOCK:
                self._tail.append(bytearray())
            self._tail[-1] += rest
            self._tail_size += len(rest)
            while self._tail_size - len(self._tail[0]) >= self.edge:
                self._tail_size -= len(self._tail[0])
                self._dropped += len(self._tail.popleft())

    def result(self) -> tuple[bytes, int, int]:
        """What is kept, how many bytes are missing in it, and where they would stand."""
        tail = b"".join(self._tail)
        surplus = max(0, len(tail) - self.edge)
        return bytes(self._head) + tail[surplus:], self._dropped + surplus, len(self._head)


class Output:
    """All that one command writes. Not more than `WHOLE` bytes are in memory once there is a file."""

    def __init__(self, open_sink: OpenSink | None, *, whole: int = WHOLE) -> None:
        """`open_sink` makes the file when there are more than `whole` bytes; without it only the edges are kept."""
        self._lock = threading.Lock()
        self._kept = Kept()
        self._screen = Screen()
        self._open = open_sink
        self._whole = whole
        self._sink: Sink | None = None
        self._closed = False

    @property
    def sink(self) -> Sink | None:
        """The file, if there is one."""
        return self._sink

    def add(self, data: bytes) -> None:
        """Takes the next piece. What comes after `close` is thrown away."""
        with self._lock:
            if self._closed:
                return
            if self._sink is None:
                self._kept.add(data)
                if self._kept.size > self._whole:
                    self._begin()
            else:
                self._sink.add(self._screen.feed(data))

    def tail(self) -> str:
        """The end of what has come, as a terminal would show it; at least its last line, if it is not too long."""
        with self._lock:
            if self._sink is not None:
                return self._sink.tail + self._screen.pending
            return plain(self._kept.result()[0][-TAIL:])

    def _begin(self) -> None:
        """From now on all goes to the file, with what has come so far; if none can be made, the edges must do."""
        make, self._open = self._open, None
        if make is None:
            return
        try:
            self._sink = make()
        except Exception:  # noqa: BLE001 - a command is not lost because its output cannot be stored
            return
        self._sink.add(self._screen.feed(self._kept.result()[0]))
        self._kept = Kept()

    def close(self) -> tuple[Kept, Stored | None]:
        """What has come up to now: the file if there is one, else what is in memory."""
        with self._lock:
            self._closed = True
            if self._sink is None:
                return self._kept, None
            self._sink.add(self._screen.feed(b"", end=True))
            return self._kept, self._sink.close()
