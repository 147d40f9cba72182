"""What is kept of a command's output: its beginning and its end, in bounded memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

EDGE = 5 * 1024 * 1024
"""Bytes kept of the beginning, and of the end."""
_BLOCK = 64 * 1024
"""Bytes that are gathered before a new block of the end is begun: output may come byte by byte."""


@dataclass(slots=True, kw_only=True)
class Kept:
    """The first and the last `edge` bytes of all that was added."""

    edge: int = EDGE
    _dropped: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: deque[bytearray] = field(default_factory=deque[bytearray])
    _tail_size: int = 0

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
