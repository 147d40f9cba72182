"""A terminal of its own for a real process: what the process writes is kept as it came and shown by an emulator."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyte

DEEPAGENT = str(Path(sys.executable).with_name("deepagent"))
RESTORED = (
    b"\x1b[?2004l",
    b"\x1b[?1000l",
    b"\x1b[?1003l",
    b"\x1b[?1006l",
    b"\x1b[?1004l",
    b"\x1b[?1049l",
    b"\x1b[?25h",
)
"""What must be written last of each: no bracketed paste, no mouse, no focus reports, no second screen, a cursor."""
_ATTACH = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
"""Makes standard input the controlling terminal, as a terminal's own shell has it."""
_UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*u|\x1b\[\?[0-9;]*\$p")
"""What the emulator would print instead of passing it over."""
_PATIENCE = 30
_TICKS = 50
"""How often in a second a slow link lets something through."""


class Terminal:
    """A process and its terminal."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (80, 24),
        rate: int | None = None,
    ) -> None:
        """`rate`: bytes a second that get through, as on a slow link; None for all that come."""
        self._rate = rate
        self._side, self._other = pty.openpty()
        self._resize(*size)
        self.before = self.settings
        self.raw = b""
        """All that the process wrote."""
        self._shown = 0
        self._screen = pyte.HistoryScreen(*size, history=1_000)
        self._stream = pyte.ByteStream(self._screen)
        environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", **(env or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ATTACH, *command],
            stdin=self._other,
            stdout=self._other,
            stderr=self._other,
            env=environ,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while select.select([self._side], [], [], 0.05)[0] or self.process.poll() is None:
            with suppress(OSError):
                if select.select([self._side], [], [], 0.05)[0]:
                    self.raw += os.read(self._side, self._rate // _TICKS if self._rate else 65_536)
            if self._rate:
                time.sleep(1 / _TICKS)

    # What is seen

    @property
    def text(self) -> str:
        """What stands on the screen, a line a row."""
        new = self.raw[self._shown :]
        self._shown += len(new)
        self._stream.feed(_UNKNOWN.sub(b"", new))
        return "\n".join(line.rstrip() for line in self._screen.display)

    def sees(self, *texts: str) -> None:
        """Waits until all of these texts stand on the screen."""
        self.until(lambda: all(text in self.text for text in texts), f"waits for {texts}")

    def until(self, so: Callable[[], object], what: str = "") -> None:
        """Waits until `so`."""
        end = time.monotonic() + _PATIENCE
        while not so():
            assert time.monotonic() < end, f"{what}\n{self.text}"
            time.sleep(0.03)

    @property
    def left(self) -> str:
        """What the process wrote after it had left the second screen: it stays in the scrollback."""
        return self.raw[self.raw.rindex(b"\x1b[?1049l") :].decode()

    @property
    def settings(self) -> list[object]:
        """How the terminal is set."""
        return termios.tcgetattr(self._other)

    @property
    def restored(self) -> bool:
        """Whether the terminal is as it was before: its settings, and every mode that can be switched on."""
        assert self.settings == self.before
        for off in RESTORED:
            on = off[:-1] + (b"l" if off.endswith(b"h") else b"h")
            assert self.raw.rfind(off) > self.raw.rfind(on), off
        return True

    # What is done

    def write(self, data: str | bytes) -> None:
        """Types, or pastes."""
        left = data.encode() if isinstance(data, str) else data
        while left:
            left = left[os.write(self._side, left) :]

    def paste(self, text: str) -> None:
        """Pastes as a terminal does that was asked to mark it."""
        self.write(f"\x1b[200~{text}\x1b[201~")

    def resize(self, width: int, height: int) -> None:
        """Makes the terminal so large; the kernel tells the process."""
        _ = self.text
        self._screen.resize(height, width)
        self._resize(width, height)

    def _resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process alone."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit code, once the process has ended and all that it wrote is here."""
        code = self.process.wait(_PATIENCE)
        self._reader.join(_PATIENCE)
        return code

    def close(self) -> None:
        """Ends the process if it still runs."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(_PATIENCE)
        os.close(self._other)
        os.close(self._side)
