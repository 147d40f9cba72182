"""The real program over a slow link, and within tmux."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tui_stage import call, script
from tui_terminal import DEEPAGENT, Terminal

pytestmark = [pytest.mark.usefixtures("workspace"), pytest.mark.long]

_SLOW = 6_000
"""Bytes a second: less than two frames of a full screen."""
_LONG = {"text": "word and more " * 500, "pace": 0.004}


def test_over_a_slow_link_a_key_waits_for_no_more_than_two_frames() -> None:
    terminal = Terminal([DEEPAGENT, "-m", script(Path.cwd(), _LONG)], size=(100, 30), rate=_SLOW)
    try:
        terminal.sees("Loaded", "Esc: nothing to stop")
        terminal.write("go\r")
        terminal.sees("word and more", "Esc: stop the run")
        time.sleep(3)  # at full speed it would have written ten times as much by now
        before = len(terminal.raw)
        terminal.write("typed")
        terminal.sees("typed")
        assert len(terminal.raw) - before < 4 * _SLOW
        terminal.sees("Esc: nothing to stop")
        assert "word and more" in terminal.text
        terminal.write("\x15\x04")
        assert terminal.wait() == 0
        assert terminal.restored
    finally:
        terminal.close()


@contextmanager
def tmux(*command: str) -> Generator[Callable[..., str]]:
    """A tmux server of its own with the command in its one window; what it yields runs tmux commands in it."""
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux")
    base = ["tmux", "-S", str(Path.cwd() / "tmux.socket"), "-f", "/dev/null"]

    def run(*args: str) -> str:
        environ = {name: value for name, value in os.environ.items() if name != "TMUX"}
        return subprocess.run((*base, *args), check=True, capture_output=True, text=True, env=environ).stdout

    run("new-session", "-d", "-x", "100", "-y", "30", shlex.join(command))
    try:
        yield run
    finally:
        run("kill-server")


def sees(run: Callable[..., str], *texts: str) -> str:
    """Waits until the pane shows all texts."""
    end = time.monotonic() + 30
    while not all(text in (shown := run("capture-pane", "-p")) for text in texts):
        assert time.monotonic() < end, f"waits for {texts}\n{shown}"
        time.sleep(0.05)
    return shown


def test_within_tmux_it_is_steered_resized_and_copied_from() -> None:
    wait = call("execute", command="until [ -e go ]; do sleep 0.02; done")
    model = script(Path.cwd(), {"text": "I wait.", "calls": [wait]}, _LONG, {"text": "The last answer."})
    with tmux(DEEPAGENT, "--yolo", "-m", model) as run:
        run("set-option", "-g", "set-clipboard", "on")
        run("set-option", "-g", "allow-passthrough", "on")
        sees(run, "Loaded", "Esc: nothing to stop")
        run("send-keys", "begin", "Enter")
        sees(run, "until [ -e go ]", "Esc: stop the run")
        run("send-keys", "be quick", "Enter")
        sees(run, "joins after the running tools: be quick")
        Path("go").touch()
        sees(run, "word and more")
        for width, height in ((60, 15), (160, 50), (80, 24)):
            run("resize-window", "-x", str(width), "-y", str(height))
        shown = sees(run, "word and more", "Esc: nothing to stop")
        assert max(map(len, shown.splitlines())) <= 80
        run("send-keys", "and now?", "Enter")
        sees(run, "The last answer.")
        run("send-keys", "/copy", "Enter")
        end = time.monotonic() + 10
        while "The last answer." not in run("list-buffers"):
            assert time.monotonic() < end, run("list-buffers")
            time.sleep(0.05)
        assert run("show-buffer") == "The last answer."
