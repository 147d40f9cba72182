"""The input in a real terminal: keys and pastes as bytes, and the user's own editor."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAM = """
import json, time
from pathlib import Path
from textual import on
from textual.app import App
from deepagent.cli.tui.driver import TerminalDriver
from deepagent.cli.tui.prompt import Prompt, PromptArea

class Program(App):
    def compose(self):
        yield PromptArea()

    @on(Prompt.Sent)
    def note(self, message):
        with Path("sent.jsonl").open("a") as file:
            file.write(json.dumps([message.text, time.process_time()]) + "\\n")
        if message.text == "quit":
            self.exit()

Program(driver_class=TerminalDriver).run()
"""
EDITOR = """#!/bin/sh
grep -q fail "$1" && exit 3
printf ' and edited' >> "$1"
"""


class Terminal:
    """A program in a terminal of its own, whose output is read all the time."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._side, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._other = other
        self.before = self.settings
        self.shown = b""
        editor = cwd / "editor"
        editor.write_text(EDITOR)
        editor.chmod(0o755)
        environ = {**os.environ, "TERM": "xterm-256color", "VISUAL": f"'{editor}'"}
        command = [sys.executable, "-W", "error", "-c", PROGRAM]
        self.process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, cwd=cwd, env=environ)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while self.process.poll() is None:
            if select.select([self._side], [], [], 0.05)[0]:
                self.shown += os.read(self._side, 65536)

    def write(self, data: bytes) -> None:
        """Types."""
        while data:
            data = data[os.write(self._side, data) :]

    def until(self, so: Callable[[], bool]) -> None:
        """Waits."""
        end = time.monotonic() + 30
        while not so():
            assert time.monotonic() < end, self.shown[-2000:]
            assert self.process.poll() is None, self.shown[-2000:]
            time.sleep(0.01)

    def sent(self) -> list[tuple[str, float]]:
        """What was sent, and the processor time in seconds until then."""
        path = self._cwd / "sent.jsonl"
        text = path.read_text() if path.exists() else ""
        return [tuple(json.loads(line)) for line in text.splitlines() if line.endswith("]")]

    def sends(self, data: bytes) -> tuple[str, float]:
        """Types something that sends exactly one text."""
        count = len(self.sent())
        self.write(data)
        self.until(lambda: len(self.sent()) > count)
        time.sleep(0.05)
        assert len(self.sent()) == count + 1
        return self.sent()[-1]

    @property
    def settings(self) -> list[object]:
        """How the terminal is set."""
        return termios.tcgetattr(self._other)

    def close(self) -> None:
        """Ends the program if it still runs."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        os.close(self._other)
        os.close(self._side)


@pytest.fixture
def terminal(workspace: Path) -> Iterator[Terminal]:
    it = Terminal(workspace)
    try:
        it.until(lambda: "❯".encode() in it.shown)
        yield it
    finally:
        it.close()


def test_bytes_of_a_terminal(terminal: Terminal) -> None:
    text = ("0123456789 abcdef\n" * 120_000)[:2_000_000]
    _, begun = terminal.sends(b"first\r")
    sent, ended = terminal.sends(b"\x1b[200~" + text.encode() + b"\x1b[201~\r")
    assert sent == text.strip("\n")
    assert ended - begun < 1

    escapes = b"a\x1b\nsecond line of more than thirty-two characters\rthird \x1b[201 \x1b[A"
    sent, _ = terminal.sends(b"\x1b[200~" + escapes + b"\x1b[201~" + b"!\r")
    assert sent == "a\nsecond line of more than thirty-two characters\nthird [201 [A!"

    assert terminal.sends(b"a\x1b\rb\nc\\\rd\x7fe\x01f\r")[0] == "a\nb\nc\nfe"
    assert terminal.sends(b"\xff\xfeok\r")[0].endswith("ok")
    assert terminal.sends("日本👍\r".encode())[0] == "日本👍"

    terminal.write(b"draft\x07")
    terminal.until(lambda: b"and edited" in terminal.shown)
    assert terminal.sends(b"\r")[0] == "draft and edited"
    terminal.write(b"fail\x07")
    terminal.until(lambda: b"exit code 3" in terminal.shown)
    assert terminal.sends(b"\r")[0] == "fail"

    terminal.write(b"x")
    time.sleep(0.3)
    before = len(terminal.shown)
    time.sleep(1.2)
    assert len(terminal.shown) == before

    terminal.write(b"\x7fquit\r")
    assert terminal.process.wait(30) == 0
    assert terminal.settings == terminal.before
