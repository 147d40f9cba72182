"""Standard input and output that are closed, full, binary or huge."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from deepagent.context.messages import Pointer, UserMessage, text_of
from process_program import DEEPAGENT, Program, assert_well_formed

HELLO = {"text": "Hello."}
WITH_FULL_DEVICE = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


def asked(program: Program) -> UserMessage:
    """What the newest session was asked."""
    return next(message for message in program.messages() if isinstance(message, UserMessage))


def shell(program: Program, line: str, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a line of the shell in which `$@` is the program and its arguments."""
    command = ("bash", "-c", line, "bash", DEEPAGENT, *args)
    return subprocess.run(command, cwd=program.repo, env=program.environ, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("given", "prompt"),
    [
        (b"a diff\n", "review this\n\na diff\n"),
        pytest.param(b" \n\t", "review this", marks=pytest.mark.long),
        (b"\xff\xfe\0caf\xe9", "review this\n\n\ufffd\ufffd\0caf\ufffd"),
    ],
    ids=["text", "nothing", "binary"],
)
def test_standard_input_is_appended_to_the_prompt(program: Program, given: bytes, prompt: str) -> None:
    done = program.run("-p", "review this", "-m", program.script(HELLO), stdin=given)
    assert (done.code, done.out, done.err) == (0, "Hello.\n", "")
    assert text_of(asked(program)) == prompt


def test_a_huge_prompt_goes_to_a_file(program: Program) -> None:
    text = "".join(f"line {number} of a long request\n" for number in range(70_000))
    done = program.run("-p", "-m", program.script(HELLO), stdin=text.encode())
    assert (done.code, done.out) == (0, "Hello.\n")
    (pointer,) = asked(program).content
    assert isinstance(pointer, Pointer)
    assert (program.repo / pointer.path).read_text() == text
    assert len(pointer.shown) < 4_000


def test_an_endless_prompt_is_refused(program: Program) -> None:
    done = shell(program, '"$@" </dev/zero', "-p", "-m", program.script(HELLO))
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"standard input holds more than 67,108,864 bytes" in done.stderr


def test_bytes_of_an_argument_that_are_no_text_become_replacement_characters(program: Program) -> None:
    prompt = os.fsdecode(b"caf\xe9 \xed\xa0\x80")
    assert program.run("-p", prompt, "-m", program.script(HELLO)).out == "Hello.\n"
    assert text_of(asked(program)) == "caf\ufffd \ufffd\ufffd\ufffd"


@pytest.mark.parametrize(
    ("line", "code", "out"),
    [
        ('"$@" <&-', 0, b"Hello.\n"),
        pytest.param('"$@" >&-', 0, b"", marks=pytest.mark.long),
        pytest.param('"$@" 2>&- >/dev/null', 0, b"", marks=pytest.mark.long),
        ('"$@" <&- >&- 2>&-', 0, b""),
        pytest.param('"$@" >/dev/full', 1, b"", marks=WITH_FULL_DEVICE),
        ('PYTHONIOENCODING=ascii "$@"', 0, b"Hello.\n"),
    ],
    ids=["no input", "no output", "no errors", "none", "full", "ascii"],
)
def test_streams_that_are_closed_or_full(program: Program, line: str, code: int, out: bytes) -> None:
    model = program.script({"text": "Gr\u00fcezi."} if "ascii" in line else HELLO)
    done = shell(program, line, "-p", "hi", "-m", model)
    assert (done.returncode, done.stdout) == (code, b"Gr\\xfcezi.\n" if "ascii" in line else out)
    expected = b"deepagent: standard output takes nothing more: No space left on device\n" if code else b""
    assert done.stderr == expected
    assert len(program.messages()) == 2


def test_errors_never_take_the_place_of_output(program: Program) -> None:
    done = shell(program, '"$@" 2>&-', "-p", "hi", "-m", "scripted:missing.yaml")
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_reader_that_leaves_early_ends_the_run_in_order(program: Program) -> None:
    steps = {"text": "{{position}}", "calls": [{"name": "glob", "arguments": {"pattern": "{{position}}"}}]}
    model = program.script({**steps, "repeat": 200, "delay": 0.01}, HELLO)
    line = '"$@" | head -n 1; exit "${PIPESTATUS[0]}"'
    done = shell(program, line, "-p", "hi", "-m", model, "--output-format", "stream-json")
    assert (done.returncode, done.stdout.count(b"\n")) == (1, 1)
    assert done.stderr == b"deepagent: standard output takes nothing more: Broken pipe\n"
    assert_well_formed(program.log())
    assert program.log().entries[-1].kind == "ended"
    assert len(program.messages()) < 100


def test_a_listing_that_is_cut_off_is_no_error_to_read_about(program: Program) -> None:
    names = "\n".join(f"{n} = {n}" for n in range(3))
    (program.repo / "AGENTS.md").write_text(names)
    done = shell(program, '"$@" | true; exit "${PIPESTATUS[0]}"', "config")
    assert done.stderr == b""
    assert done.returncode in (0, 1), "the reader may have been faster than the writer"


def test_what_a_terminal_would_act_on_does_not_reach_it_through_standard_error(program: Program) -> None:
    error = {"kind": "bad_request", "message": "no \x1b]0;title\x07 \x1b[31mred"}
    done = program.inside("-p", "hi", "-m", program.script({"error": error}))
    assert done.code == 1
    assert "\x1b" not in done.err and "\x07" not in done.err
    assert "red" in done.err


@WITH_FULL_DEVICE
def test_the_debug_file_may_be_full(program: Program) -> None:
    done = program.inside("-p", "hi", "-m", program.script(HELLO), "--debug", "/dev/full")
    assert (done.code, done.out, done.err) == (0, "Hello.\n", "")


def test_a_terminal_that_shows_no_screen_is_told_of(program: Program) -> None:
    own, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [DEEPAGENT],
            cwd=program.repo,
            env={**program.environ, "TERM": "dumb"},
            stdin=terminal,
            stdout=terminal,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(own)
        os.close(terminal)
    said = b"deepagent: this terminal cannot show the screen (TERM=dumb): run it with -p\n"
    assert (done.returncode, done.stderr) == (2, said)
