"""A terminal for measurements: keeps what a process writes, and when, and knows what the process costs.

Nothing is emulated: what is looked for are bytes. For Linux, as memory and processor time come from `/proc`.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from types import TracebackType

KEYS = [chr(code) for code in (*range(0x100, 0x180), *range(0x391, 0x3A2), *range(0x410, 0x450), *range(0x531, 0x557))]
"""Keys whose characters stand nowhere else on a screen, so that each is recognized when it is painted."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE = 120.0


class Terminal:
    """A process and its terminal, of 120 × 40 cells; the process is killed when the block ends."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._side, other = os.openpty()
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.raw = bytearray()
        """All that the process wrote."""
        self.began = perf_counter()
        """When the process was started."""
        self._process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, cwd=cwd, env=dict(env), start_new_session=True
        )
        os.close(other)
        self._proc = Path(f"/proc/{self._process.pid}")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._side)

    # What it writes

    def read(self, seconds: float) -> bool:
        """Takes what comes within so many seconds, as soon as it comes; False where nothing does."""
        if not select.select([self._side], [], [], max(0.0, seconds))[0]:
            return False
        data = b""
        with suppress(OSError):  # the process has ended
            data = os.read(self._side, 1 << 20)
        if not data:
            sys.exit(f"the process ended too early:\n{self.raw[-2000:].decode(errors='replace')}")
        self.raw += data
        return True

    def until(self, mark: bytes, start: int = 0) -> float:
        """Waits until `mark` was written, from `start` on. When that was."""
        end = perf_counter() + _PATIENCE
        while self.raw.find(mark, start) < 0:
            start = max(start, len(self.raw) - len(mark))
            if not self.read(end - perf_counter()):
                sys.exit(f"{mark.decode()!r} never came:\n{self.raw[-2000:].decode(errors='replace')}")
        return perf_counter()

    def quiet(self, seconds: float) -> None:
        """Waits until nothing was written for so long."""
        end = perf_counter() + _PATIENCE
        while self.read(seconds):
            if perf_counter() > end:
                sys.exit("the screen never came to rest")

    def bytes_in(self, seconds: float) -> int:
        """How much is written in so many seconds."""
        before, end = len(self.raw), perf_counter() + seconds
        while (left := end - perf_counter()) > 0:
            self.read(left)
        return len(self.raw) - before

    # What is typed

    def write(self, text: str) -> None:
        """Types."""
        os.write(self._side, text.encode())

    def type_keys(self, *, every: float, done: Callable[[], bool]) -> list[float]:
        """Types a key each `every` seconds until `done`. How long each took to be painted, in seconds, in order.

        A key is due by the clock, whether or not the one before it was painted.
        """
        due, waiting, times = perf_counter(), dict[str, tuple[float, int]](), dict[str, float]()
        keys = (key for key in KEYS if self.raw.find(key.encode()) < 0)
        stopped = False
        while waiting or not stopped:
            if not stopped and perf_counter() >= due:
                key = next(keys, "")
                waiting |= {key: (due, len(self.raw))} if key else {}
                self.write(key)
                due += every
                stopped = done() or not key
            if not self.read(_PATIENCE if stopped else due - perf_counter()):
                if stopped:
                    sys.exit(f"{''.join(waiting)!r} was typed and never painted")
                continue
            now = perf_counter()
            seen = [key for key, (_, start) in waiting.items() if self.raw.find(key.encode(), start) >= 0]
            times |= {key: now - waiting.pop(key)[0] for key in seen}
        return [times[key] for key in KEYS if key in times]

    # What it costs

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far, in steps of a hundredth."""
        fields = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory(self) -> tuple[float, float]:
        """What the process holds now, and at most so far, in MiB."""
        status = dict(line.split(":", 1) for line in (self._proc / "status").read_text().splitlines())
        now, peak = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
        return now, peak
