"""The user's own editor over a run, in a real terminal: the run goes on, and all of it is on the screen afterwards."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deepagent.agent.sessions import session_ids
from tui_stage import call, entries_of, script, workspace_here
from tui_terminal import DEEPAGENT, Terminal

pytestmark = pytest.mark.usefixtures("workspace")

EDITOR = """#!/bin/sh
trap : INT
echo THE EDITOR
until [ -e "$HOME/leave" ]; do sleep 0.05; done
printf ' and edited' >> "$1"
"""
STEPS = (
    {"text": "word " * 60, "pace": 0.01, "calls": [call("execute", command="touch made")]},
    {"text": "It is made."},
)


@pytest.fixture
def terminal(isolated: Path) -> Iterator[Terminal]:
    """The program, writing an answer, while the user's editor has the terminal."""
    editor = isolated / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    terminal = Terminal((DEEPAGENT, "-m", script(Path.cwd(), *STEPS)), env={"VISUAL": str(editor)})
    terminal.sees("Loaded", "Esc: nothing to stop")
    terminal.write("begin\r")
    terminal.sees("word word")
    terminal.write("a draft\x07")
    terminal.until(lambda: b"THE EDITOR" in terminal.raw)
    yield terminal
    terminal.close()


def answers() -> int:
    """How many answers are in the log."""
    (session,) = session_ids(workspace_here().storage())
    return sum(entry.kind == "message" and entry.message.role == "assistant" for entry in entries_of(session))


def test_a_run_goes_on_under_the_editor_and_its_question_waits(terminal: Terminal, isolated: Path) -> None:
    terminal.until(answers)
    time.sleep(0.5)
    terminal.resize(100, 30)
    terminal.write("\x03")  # for the editor alone
    written = len(terminal.raw)
    time.sleep(0.3)
    assert b"Allow" not in terminal.raw[:written]
    (isolated / "leave").touch()
    terminal.sees("❯ a draft and edited", "word word", "Allow execute?", "$ touch made")
    terminal.write("\x15")
    terminal.sees("Esc: say no")
    time.sleep(0.5)
    terminal.write("y")
    terminal.sees("It is made.", "Esc: nothing to stop")
    terminal.write("\x04")
    assert terminal.wait() == 0
    assert terminal.restored


@pytest.mark.long
def test_the_program_can_be_ended_under_the_editor(terminal: Terminal) -> None:
    terminal.signal(signal.SIGTERM)
    assert terminal.wait() == 143
    assert terminal.restored
    (session,) = session_ids(workspace_here().storage())
    assert entries_of(session)[-1].kind == "ended"
