"""`execute`, and what is made of a program's output."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest
from deepagent.agent import result_file
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.backends.terminal import plain
from deepagent.agent.tool import ToolResult
from hard_inputs import hard_input
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

Call = Callable[..., Awaitable[ToolResult]]


class Bench(Protocol):
    """What the fixture `bench` is."""

    backend: LocalBackend
    shown: bytearray

    async def call(self, tool: str, /, **arguments: JsonValue) -> ToolResult: ...


async def test_output_and_exit_code(bench: Bench, workspace: Path) -> None:
    result = await bench.call("execute", command="echo out; echo err >&2; exit 3")
    assert result.text == f"out\nerr\n[exit code 3; directory {workspace}]"
    assert (result.summary, result.is_error) == ("exit 3 · err", False)
    log = dict(result.log)
    assert (log["command"], log["exit_code"], log["timed_out"]) == ("echo out; echo err >&2; exit 3", 3, False)
    assert bytes(bench.shown) == b"out\nerr\n"


async def test_the_summary_of_a_failed_check(call: Call) -> None:
    result = await call("execute", command="echo many lines; echo '=== 1 failed, 212 passed in 3.2s ==='; exit 1")
    assert result.summary == "exit 1 · 1 failed, 212 passed in 3.2s"
    assert (await call("execute", command="echo a; echo b")).summary == "exit 0 · 2 lines"


async def test_no_output(call: Call, workspace: Path) -> None:
    result = await call("execute", command="true")
    assert (result.text, result.summary) == (f"[exit code 0; directory {workspace}]", "exit 0 · 0 lines")


@hard_input("Commands", "a command that runs into its time limit", "is ended; what it wrote is there")
async def test_a_time_limit_leaves_what_was_written(call: Call) -> None:
    began = time.monotonic()
    result = await call("execute", command="echo before; sleep 300 | cat", timeout=0.5)
    assert time.monotonic() - began < 4
    assert result.text.startswith("before\n[ended after the time limit of 0.5 s; directory ")
    assert result.log["exit_code"] is None


async def test_a_signal_has_a_name(call: Call) -> None:
    result = await call("execute", command="kill -SEGV $$")
    assert result.text.startswith("[ended by signal 11 (SIGSEGV); directory ")


async def test_what_is_left_running_is_told(bench: Bench) -> None:
    result = await bench.call("execute", command="sleep 65.25 & echo hi")
    assert result.text.startswith("hi\n[exit code 0; something it started still runs as job 1; directory ")


@hard_input("Commands", "output that is no text, in the locale C", "`�` for each byte, nothing fails")
async def test_bytes_that_are_no_text(call: Call, bench: Bench, workspace: Path) -> None:
    bench.backend = LocalBackend(
        workspace, workspace, data=workspace / ".deepagents", environ={**os.environ, "LC_ALL": "C"}
    )
    result = await bench.call("execute", command=r"printf '\xff\xfe\x80ok'")
    assert result.text.startswith("\ufffd\ufffd\ufffdok\n[exit code 0")


async def test_a_progress_bar_leaves_its_last_state(call: Call) -> None:
    command = r"for i in $(seq 5000); do printf '\r\033[32m%5d/5000\033[0m done' $i; done; echo"
    result = await call("execute", command=command)
    assert result.text.split("\n")[0] == " 5000/5000 done"
    assert len(result.text) < 200


@hard_input(
    "Commands",
    "a long output with colours and a secret",
    "is in a file while it comes, without colours and secret",
)
async def test_a_long_output_is_in_a_file_byte_for_byte(bench: Bench, tmp_path: Path) -> None:
    line = r"\033[32m€%d\033[0m\tsk-very-secret\n"
    result = await bench.call("execute", command=f"for i in $(seq 20000); do printf '{line}' $i; done; exit 3")
    whole = "".join(f"€{i}\t[secret KEY]\n" for i in range(1, 20001))
    stored = result.stored
    assert stored is not None
    assert (tmp_path / "data" / "project" / stored.path.removeprefix("kept/")).read_text() == whole
    assert (stored.lines, stored.bytes) == (20_000, len(whole.encode()))
    assert stored.sha256 == hashlib.sha256(whole.encode()).hexdigest()
    assert whole.startswith(stored.head) and whole.endswith(stored.tail)
    assert result.text.startswith("[exit code 3; directory ")
    assert result.summary == "exit 3 · €20000\t[secret KEY]"


@hard_input("Commands", "megabytes of a progress bar in colours", "its last state is left")
async def test_a_progress_bar_of_megabytes_leaves_its_last_state(call: Call) -> None:
    command = (
        r"printf start; for i in $(seq 40000); do printf '\r\033[32m%7d/40000 is done\033[0m' $i; done; echo ' end'"
    )
    stored = (await call("execute", command=command)).stored
    assert stored is not None
    assert stored.head == "  40000/40000 is done end\n"


@hard_input("Commands", "output beyond what may be stored", "beginning and end are shown, and what is missing is told")
async def test_what_could_not_be_stored_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_file, "LIMIT", 1_000_000)
    result = await bench.call("execute", command="yes | head -c 3000000; echo the end")
    assert result.stored is not None
    assert result.stored.bytes <= 1_000_000
    assert result.stored.tail.endswith("y\nthe end\n")
    assert "; the end of the output is not in the file: only the first 1,000,000 bytes are stored; " in result.text


async def test_a_command_in_the_background_is_listed_read_and_ended(bench: Bench, tmp_path: Path) -> None:
    command = "echo sk-very-secret; while :; do sleep 66.25; done"
    result = await bench.call("execute", command=command, background=True)
    assert result.text.startswith("[secret KEY]\n[job 1: running for 0 s; the whole output: kept/large_tool_results/s/")
    assert (await bench.call("jobs")).text == f"1: running for 0 s: {command}"
    assert (await bench.call("jobs", id="#1")).text.startswith("[secret KEY]\n[job 1: running")
    ended = await bench.call("jobs", id="1", end=True)
    assert ended.summary.startswith("job 1 · ended by signal 15")
    assert (await bench.call("jobs")).text.startswith("1: ended by signal 15")
    assert "no job '7'" in (await bench.call("jobs", id="7")).text
    assert (await bench.call("jobs", end=True)).is_error


async def test_one_that_fails_at_once_is_told_at_once(bench: Bench) -> None:
    result = await bench.call("execute", command="echo no such port >&2; exit 4", background=True)
    assert result.text.startswith("no such port\n[job 1: ended with exit code 4 after 0 s")


async def test_what_a_left_child_writes_later_can_be_read(bench: Bench) -> None:
    result = await bench.call("execute", command="(sleep 0.4; echo late) & echo early")
    assert result.text.startswith("early\n[exit code 0; something it started still runs as job 1")
    text = ""
    for _ in range(100):
        text = (await bench.call("jobs", id="1")).text
        if text.startswith("late\n[job 1: ended with exit code 0"):
            return
        await asyncio.sleep(0.02)
    pytest.fail(text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"command": " \n"}, "empty"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "ls", "timeout": 0}, "timeout must be"),
        ({"command": "ls", "timeout": 9_999}, "timeout must be"),
        ({"command": "ls", "timeout": "x"}, "timeout: Input should be a valid number"),
        ({"command": ["ls"]}, "command: Input should be a valid string"),
    ],
)
async def test_what_cannot_be_run_is_answered(arguments: dict[str, JsonValue], text: str, call: Call) -> None:
    result = await call("execute", **arguments)
    assert result.is_error
    assert text in result.text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        (b"10%\r20%\r30%\n", "30%\n"),
        (b"long text\rshort\n", "shorttext\n"),
        (b"long text\r\x1b[Kshort\n", "short\n"),
        (b"long text\x1b[2K\rshort\n", "short\n"),
        (b"abc\b\bX\n", "aXc\n"),
        (b"|\b/\b-\b\\\bok\n", "ok\n"),
        (b"tab\there \x07bell\n", "tab\there bell\n"),
        (b"\x1b(B\x1b[mtext\x1b[?25l", "text"),
        (b"\x1bP1;2q data \x1b\\after", "after"),
        ("ünï\r日本\n".encode(), "日本ï\n"),
        (b"[x] [/dim] {y}\n", "[x] [/dim] {y}\n"),
    ],
)
def test_what_a_terminal_would_show(output: bytes, text: str) -> None:
    assert plain(output) == text


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\b", b"\x1b[K", b"\x1b[1K", b"\x1b[31m", b"\x1b", b"\n", b"\xff"]))
)
def test_no_control_code_is_left(pieces: list[bytes]) -> None:
    text = plain(b"".join(pieces))
    assert not set(text) & {"\x1b", "\x08", "\r"}
    assert text.count("\n") == pieces.count(b"\n")


def test_a_huge_line_of_updates_is_quick() -> None:
    began = time.monotonic()
    assert plain(b"x" * 1_000_000 + b"\ry" * 50_000) == "y"
    assert time.monotonic() - began < 2
