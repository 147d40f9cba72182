"""Reads what a command writes, on a thread of its own: however much comes, and wherever it goes, the loop is free."""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress

_CHUNK = 256 * 1024
_LIVE = 64 * 1024
"""Bytes that are shown at a time at most; older ones of a flood are left out."""
_PERIOD = 0.03
"""Seconds between two showings."""

OnOutput = Callable[[bytes], None]


class Pump(threading.Thread):
    """Takes everything from a pipe until its end, or until it is stopped."""

    def __init__(self, reader: int, take: OnOutput, show: OnOutput | None) -> None:
        """`reader` is closed in the end. `take` gets all, on this thread; `show` gets what a person can follow, on the
        running loop."""
        super().__init__(daemon=True, name="deepagent-output")
        self.ended = asyncio.Event()
        """The pipe has come to its end."""
        self._reader = reader
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._show = show
        self._fresh = bytearray()
        self._lock = threading.Lock()
        self._shown = self._loop.time()
        self._woken, self._waker = os.pipe()
        self._stopping = False
        self.start()

    def divert(self, take: OnOutput) -> None:
        """From now on another function gets what comes, and nothing is shown."""
        self._take, self._show = take, None

    def stop(self) -> None:
        """Ends the reading, whoever still holds the pipe."""
        if not self._stopping:
            self._stopping = True
            os.close(self._waker)

    def run(self) -> None:
        try:
            with suppress(OSError):
                self._read()
        finally:
            os.close(self._reader)
            os.close(self._woken)
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._finish)

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._woken in ready:
                return
            data = os.read(self._reader, _CHUNK)
            if not data:
                return
            self._take(data)
            if self._show is not None:
                self._announce(data)

    def _announce(self, data: bytes) -> None:
        with self._lock:
            waiting = bool(self._fresh)
            self._fresh += data
            if len(self._fresh) > 2 * _LIVE:
                del self._fresh[:-_LIVE]
        if not waiting:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._plan)

    def _plan(self) -> None:
        wait = self._shown + _PERIOD - self._loop.time()
        if wait <= 0:
            self.flush()
        else:
            self._loop.call_later(wait, self.flush)

    def flush(self) -> None:
        """Shows what has come and was not shown yet."""
        with self._lock:
            data, self._fresh = bytes(self._fresh[-_LIVE:]), bytearray()
        self._shown = self._loop.time()
        if data and self._show is not None:
            self._show(data)

    def _finish(self) -> None:
        self.flush()
        self.stop()
        self.ended.set()
