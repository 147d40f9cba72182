"""The real program in a real terminal: a talk, and the state in which it leaves the terminal."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.sessions import session_ids
from deepagent.context.messages import text_of
from tui_stage import call, entries_of, script, workspace_here
from tui_terminal import DEEPAGENT, Terminal

pytestmark = pytest.mark.usefixtures("workspace")

QUIET = 5.0
"""Seconds in which an idle screen must write nothing."""
WAITS = call("execute", command="until [ -e go ]; do sleep 0.02; done")


@pytest.fixture
def open_terminal() -> Iterator[Callable[..., Terminal]]:
    """Starts programs in terminals; what still runs ends with the test."""
    opened: list[Terminal] = []

    def start(*command: str, **options: Any) -> Terminal:
        opened.append(Terminal(command, **options))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def only_session() -> str:
    """The id of the one session of the workspace."""
    (session,) = session_ids(workspace_here().storage())
    return session


def asked(session: str) -> list[str]:
    """What the user said in a session."""
    messages = [entry.message for entry in entries_of(session) if entry.kind == "message"]
    return [text_of(message) for message in messages if message.role == "user"]


HOSTILE = "\x1b]52;c;aGk=\x07 [/b] \x1b[?1049l \x1b]8;;http://x\x1b\\ 日本語 "


def test_a_talk(open_terminal: Callable[..., Terminal]) -> None:
    steps = [
        {
            "text": f"I look. {HOSTILE}",
            "calls": [call("execute", command="printf '\\033]52;c;aGk=\\007'; echo made > a")],
        },
        {"text": "I clean up.", "calls": [call("execute", command="rm a")]},
        {"text": "It is made.", "calls": [WAITS]},
        {"text": "More words. " * 200 + "Tabs it is."},
        {"text": "word " * 400, "pace": 0.01},
    ]
    terminal = open_terminal(DEEPAGENT, "-m", script(Path.cwd(), *steps))
    terminal.write("make ")  # before there is anything to see
    terminal.sees("❯ make", "Loaded", "Esc: nothing to stop")
    terminal.write("it\r")
    answers(terminal, "printf", "y")
    answers(terminal, "rm a", "rno, not that\r")
    terminal.sees("denied: no, not that")
    answers(terminal, "until [", "y")
    assert Path("a").read_text() == "made\n"
    terminal.sees("Esc: stop the run")
    terminal.write("use tabs\r")
    terminal.sees("joins after the running tools: use tabs")
    Path("go").touch()
    terminal.sees("Tabs it is.", "Esc: nothing to stop")

    terminal.write("/compact\r")
    terminal.sees("compaction 1 ·")
    terminal.write("/compact undo\r")
    terminal.sees("compaction 1, taken back")

    terminal.write("write\r")
    terminal.sees("word word")
    for size in ((120, 40), (20, 5), (1, 1), (100, 30)):
        terminal.resize(*size)
        time.sleep(0.1)
    terminal.sees("word word", "Esc: stop the run")
    terminal.write("\x1b")
    terminal.sees("interrupted", "Esc: nothing to stop")
    assert max(len(line) for line in terminal.text.split("\n")) <= 100

    time.sleep(0.7)  # the draft is written half a second after the last key
    before = len(terminal.raw)
    time.sleep(QUIET)
    assert terminal.raw[before:] == b""

    terminal.write("\x04")
    assert terminal.wait() == 0
    assert terminal.restored
    assert terminal.raw.count(b"\x1b[?1049l") == 1
    assert b"\x1b]52" not in terminal.raw
    assert b"\x1b]8;" not in terminal.raw
    session = only_session()
    assert f"go on with: deepagent -r {session}" in terminal.left
    assert asked(session)[:3] == ["make it", "use tabs", "write"]


def answers(terminal: Terminal, question: str, keys: str) -> None:
    """Waits for a question and answers it, deliberately."""
    terminal.sees("Allow execute?", f"▌ $ {question}", "Esc: say no")
    time.sleep(0.5)
    terminal.write(keys[:1])
    if keys[1:]:
        terminal.sees("why not?")
        terminal.write(keys[1:])


@pytest.mark.long
def test_a_large_paste(open_terminal: Callable[..., Terminal]) -> None:
    model = script(Path.cwd(), {"text": "I have read it."})
    terminal = open_terminal(DEEPAGENT, "-m", model, "--context-window", "2000000")
    terminal.sees("Loaded", "not trusted")
    pasted = ("0123456789 abcdef\n" * 120_000)[:2_000_000]
    terminal.paste(pasted)
    terminal.sees("❯ [paste 1: 111,112 lines]")
    terminal.write("\r")
    terminal.sees("I have read it.", "Esc: nothing to stop")
    terminal.write("\x04")
    assert terminal.wait() == 0
    storage = workspace_here().storage()
    offloaded = [storage.read(name).decode() for name in storage.names(f"conversation_history/{only_session()}")]
    assert pasted.strip("\n") in (*offloaded, *asked(only_session()))


@pytest.mark.long
def test_killed_and_resumed(open_terminal: Callable[..., Terminal]) -> None:
    model = script(Path.cwd(), {"text": "I wait.", "calls": [WAITS]}, {"text": "Where was I?"})
    terminal = open_terminal(DEEPAGENT, "-m", model, "--yolo", "repair it")
    terminal.sees("❯ repair it", "until [ -e go ]")
    terminal.write("a draft")
    terminal.sees("❯ a draft")
    time.sleep(0.8)
    terminal.signal(signal.SIGKILL)
    terminal.wait()
    Path("go").touch()
    session = only_session()

    terminal = open_terminal(DEEPAGENT, "-m", model, "--yolo")
    terminal.sees("“repair it”", "stopped inside turn 1 (killed)", "❯ a draft")
    terminal.write("\x15\r")
    terminal.sees("❯ repair it", "I wait.", "interrupted")
    terminal.write("go on\r")
    terminal.sees("Where was I?")
    terminal.write("\x04")
    assert terminal.wait() == 0
    assert terminal.restored
    assert asked(session) == ["repair it", "go on"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.long)]
)
def test_ended_by_a_signal(open_terminal: Callable[..., Terminal], number: signal.Signals, code: int) -> None:
    model = script(Path.cwd(), {"text": "I wait.", "calls": [WAITS]})
    terminal = open_terminal(DEEPAGENT, "-m", model, "--yolo", "wait")
    terminal.sees("until [ -e go ]", "Esc: stop the run")
    terminal.signal(number)
    assert terminal.wait() == code
    assert terminal.restored
    assert entries_of(only_session())[-1].kind == "ended"


CRASHES = """
import os, sys
from deepagent.cli.tui.messages import UserText
def boom(self):
    secret = os.environ["OPENAI_API_KEY"]
    raise ZeroDivisionError("a bug [/b] \\x1b[?1049h " + secret)
UserText.compose = boom
from deepagent.cli.main import main
main()
"""


def test_a_crash_inside_a_widget(open_terminal: Callable[..., Terminal]) -> None:
    model = script(Path.cwd(), {"text": "Hello."})
    secret = "sk-test-0123456789abcdef"
    command = (sys.executable, "-c", CRASHES, "-m", model, "begin")
    terminal = open_terminal(*command, env={"OPENAI_API_KEY": secret}, size=(100, 50))
    assert terminal.wait() == 1
    assert terminal.restored
    assert "ZeroDivisionError: a bug [/b] ␛[?1049h [" in terminal.text
    assert "This is a bug of deepagent" in terminal.text
    assert "go on with: deepagent -r" in terminal.text
    assert secret.encode() not in terminal.raw


@pytest.mark.long
def test_put_to_sleep_and_woken(open_terminal: Callable[..., Terminal]) -> None:
    model = script(Path.cwd(), {"text": "Awake."})
    terminal = open_terminal("sh", "-i", env={"PS1": "shell> ", "ENV": ""})
    terminal.sees("shell>")
    before = terminal.settings
    terminal.write(f"{DEEPAGENT} -m {model}\n")
    terminal.sees("Loaded", "❯")
    terminal.write("a draft")
    terminal.sees("❯ a draft")
    terminal.write("\x1a")
    terminal.until(lambda: terminal.raw.rfind(b"shell> ") > terminal.raw.rfind(b"\x1b[?1049l") > 0)
    terminal.before = terminal.settings
    assert terminal.restored
    terminal.write("fg\n")
    terminal.until(lambda: terminal.raw.count(b"\x1b[?1049h") == 2)
    terminal.sees("❯ a draft", "Loaded")
    terminal.write(" and more\r")
    terminal.sees("❯ a draft and more", "Awake.")
    terminal.write("\x04")
    terminal.until(lambda: terminal.raw.rfind(b"shell> ") > terminal.raw.rfind(b"go on with") > 0)
    assert terminal.restored
    assert before[:4] == terminal.settings[:4]
    terminal.write("exit\n")
    assert terminal.wait() == 0


@pytest.mark.long
def test_the_demo(open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal(DEEPAGENT, "demo", size=(100, 30))
    terminal.sees("❯ The half-cent tests in tests/test_invoice.py fail.")
    allowed = 0
    while "All tests pass." not in terminal.text:
        if "Allow " in terminal.text and "Esc: say no" in terminal.text:
            time.sleep(0.5)
            terminal.write("y")
            allowed += 1
            terminal.until(lambda: "Esc: say no" not in terminal.text or "Allow edit_file" in terminal.text)
        time.sleep(0.1)
    assert allowed >= 5
    terminal.sees("demo", "compaction 1", "Plan 3/3")
    terminal.write("\x04")
    assert terminal.wait() == 0
    assert terminal.restored
    assert "go on with: deepagent -r" in terminal.left
