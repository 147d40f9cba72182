"""Running commands: nothing waits, nothing is left, nothing fills the memory."""

from __future__ import annotations

import asyncio
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.backends.output import EDGE, Kept
from deepagent.agent.backends.protocol import BackendError, Executed
from hard_inputs import hard_input

MakeBackend = Callable[..., LocalBackend]


async def _run(backend: LocalBackend, command: str, limit: float = 20) -> Executed:
    return await backend.execute(command, limit=limit, on_output=None)


def _running(mark: str) -> list[int]:
    """Processes with `mark` among their arguments."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and mark in process.cmdline():
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


async def _until(happened: Callable[[], bool]) -> bool:
    for _ in range(200):
        if happened():
            return True
        await asyncio.sleep(0.02)
    return False


async def _gone(mark: str) -> bool:
    return await _until(lambda: not _running(mark))


async def test_both_streams_in_order_and_the_exit_code(backend: LocalBackend) -> None:
    ran = await _run(backend, "echo one; echo two >&2; echo three; exit 3")
    assert (ran.output, ran.exit_code, ran.signal, ran.timed_out) == (b"one\ntwo\nthree\n", 3, None, False)


async def test_a_full_error_stream_does_not_block(backend: LocalBackend) -> None:
    ran = await _run(backend, "head -c 1000000 /dev/zero | tr '\\0' e >&2; echo; echo out; exit 3")
    assert (len(ran.output), ran.output[-5:], ran.exit_code) == (1_000_005, b"\nout\n", 3)


@hard_input(
    "Commands",
    "a child that keeps the pipe open (`server &`)",
    "the answer comes when the shell ends; the child is a job",
)
async def test_a_background_child_does_not_hold_the_answer(backend: LocalBackend) -> None:
    began = time.monotonic()
    ran = await _run(backend, "sleep 61.25 & echo hi")
    assert time.monotonic() - began < 2
    assert (ran.output, ran.exit_code, ran.job) == (b"hi\n", 0, "1")
    assert _running("61.25")
    await backend.aclose()
    assert await _gone("61.25")


async def test_what_was_left_running_may_go_on_writing(backend: LocalBackend, workspace: Path) -> None:
    await _run(backend, "(for i in 1 2 3 4 5 6 7 8; do sleep 0.1; echo line; done; touch through) & true")
    assert await _until((workspace / "through").exists)


async def test_a_child_without_output_is_left_running_too(backend: LocalBackend) -> None:
    ran = await _run(backend, "sleep 62.25 >/dev/null 2>&1 &")
    assert ran.job
    await backend.aclose()
    assert await _gone("62.25")


async def test_a_plain_command_leaves_nothing(backend: LocalBackend) -> None:
    assert not (await _run(backend, "echo hi | cat")).job


@hard_input("Commands", "pipes, subshells, ignored signals at the time limit", "all are ended")
@pytest.mark.parametrize(
    "command",
    [
        "bash -c 'echo before; sleep 63.25 | cat'",
        "echo before; trap '' TERM; sleep 63.25; sleep 63.25",
        "echo before; set -m; sleep 63.25 & wait",
        "echo before; (trap '' TERM; exec sleep 63.25) & sleep 63.25",
    ],
)
async def test_a_time_limit_ends_all_and_keeps_the_output(command: str, make_backend: MakeBackend) -> None:
    backend = make_backend()
    backend._shell.grace = 0.3
    began = time.monotonic()
    ran = await _run(backend, command, limit=0.5)
    assert time.monotonic() - began < 3
    assert (ran.output, ran.timed_out, ran.exit_code) == (b"before\n", True, None)
    assert await _gone("63.25")


@hard_input("Commands", "a child in a session of its own (`setsid`, `nohup`)", "is ended with its job")
@pytest.mark.parametrize(("escape", "time"), [("setsid", "67.1"), ("setsid nohup", "67.2"), ("setsid setsid", "67.3")])
async def test_a_child_that_left_the_session_is_ended_too(escape: str, time: str, backend: LocalBackend) -> None:
    ran = await _run(backend, f"{escape} sleep {time} >/dev/null 2>&1 & echo hi")
    assert (ran.output, ran.job) == (b"hi\n", "1")
    assert await _until(lambda: bool(_running(time)))
    assert (await backend.end("1")).state == "ended"
    assert await _gone(time)


async def test_a_time_limit_ends_who_left_the_session(make_backend: MakeBackend) -> None:
    backend = make_backend()
    backend._shell.grace = 0.3
    ran = await _run(backend, "(setsid sleep 68.25 &) ; sleep 68.25", limit=0.5)
    assert (ran.timed_out, ran.job) == (True, "")
    assert await _gone("68.25")


async def test_a_cancelled_command_is_ended(backend: LocalBackend) -> None:
    task = asyncio.create_task(_run(backend, "sleep 64.25 | cat; sleep 64.25"))
    assert await _until(lambda: bool(_running("64.25")))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _gone("64.25")


@hard_input("Commands", "`read`, `cat`, an interpreter that waits for input", "end at once")
async def test_nothing_is_waited_for(backend: LocalBackend) -> None:
    began = time.monotonic()
    assert (await _run(backend, "read x; echo got $?")).output == b"got 1\n"
    assert (await _run(backend, "cat")).exit_code == 0
    assert (await _run(backend, f"{shlex.quote(sys.executable)} -c 'input()'")).exit_code == 1
    ran = await _run(backend, "exec 3</dev/tty")
    assert ran.exit_code != 0
    assert time.monotonic() - began < 5


@hard_input("Commands", "a pager, an editor, a password", "are not opened, not asked for")
async def test_git_neither_pages_nor_asks(backend: LocalBackend, workspace: Path) -> None:
    script = (
        "git init -q . && git config user.email a@b.c && git config user.name n && git config core.pager 'less -+F'"
        " && for i in $(seq 30); do git commit -q --allow-empty -m line-$i; done && git log --oneline"
    )
    ran = await _run(backend, script)
    assert ran.output.count(b"line-") == 30
    amended = await _run(backend, "git commit --allow-empty --amend && git log -1 --format=%s", limit=5)
    assert amended.output.endswith(b"line-30\n")
    ran = await _run(backend, "git -c credential.helper= ls-remote http://127.0.0.1:9/x.git; env | grep -i askpass")
    assert b"SSH_ASKPASS_REQUIRE=never" in ran.output


@hard_input("Commands", "`env` with provider keys in the environment", "the keys are not there")
@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "my_service_api_key", "HF_TOKEN", "DEEPAGENT_TOKEN", "ODD_NAME"])
async def test_keys_are_not_inherited(name: str, make_backend: MakeBackend) -> None:
    environ = {**os.environ, name: "very-secret", "GITHUB_TOKEN": "own-token", "MY_SETTING": "kept"}
    backend = make_backend(environ=environ, hidden_env=("ODD_NAME",))
    ran = await _run(backend, "env; tr '\\0' '\\n' </proc/self/environ")
    assert b"very-secret" not in ran.output
    assert b"MY_SETTING=kept" in ran.output
    assert b"GITHUB_TOKEN=own-token" in ran.output
    assert b"TERM=dumb" in ran.output and b"NO_COLOR=1" in ran.output and b"\nPAGER=cat" in ran.output


async def test_endless_output_stays_small(backend: LocalBackend) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 200_000_000
    ran = await _run(backend, f"echo first; yes 123456789 | head -c {size}; echo last")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
    assert len(ran.output) == 2 * EDGE
    assert ran.dropped == size + len("first\nlast\n") - 2 * EDGE
    assert ran.output.startswith(b"first\n1234")
    assert ran.output.endswith(b"last\n")
    assert ran.dropped_at == EDGE


async def test_output_is_told_as_it_comes(backend: LocalBackend) -> None:
    seen: list[tuple[float, bytes]] = []
    began = time.monotonic()
    ran = await backend.execute(
        "echo one; sleep 0.4; echo two", limit=5, on_output=lambda data: seen.append((time.monotonic() - began, data))
    )
    assert b"".join(data for _, data in seen) == ran.output == b"one\ntwo\n"
    assert seen[-1][0] - seen[0][0] > 0.2


async def test_a_signal_is_told(backend: LocalBackend) -> None:
    ran = await _run(backend, "kill -KILL $$")
    assert (ran.exit_code, ran.signal) == (None, signal.SIGKILL)


async def test_each_command_begins_in_the_working_directory(make_backend: MakeBackend, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    backend = make_backend(workspace, workspace / "sub")
    await _run(backend, "cd /")
    ran = await _run(backend, "pwd")
    assert ran.output.decode().strip() == str(workspace / "sub") == ran.directory


async def test_what_cannot_be_started_is_an_error(make_backend: MakeBackend, workspace: Path) -> None:
    backend = make_backend()
    for command in ("echo " + "x" * 3_000_000, "a\0b"):
        with pytest.raises(BackendError, match="could not be started"):
            await _run(backend, command)
    (workspace / "sub").mkdir()
    backend = make_backend(workspace, workspace / "sub")
    (workspace / "sub").rmdir()
    with pytest.raises(BackendError, match="could not be started"):
        await _run(backend, "pwd")


async def test_many_commands_leak_nothing(backend: LocalBackend) -> None:
    await _run(backend, "true")
    before = psutil.Process().num_fds()
    for _ in range(30):
        await _run(backend, "echo hi")
    assert psutil.Process().num_fds() <= before
    assert not psutil.Process().children()


async def test_commands_run_side_by_side(backend: LocalBackend) -> None:
    began = time.monotonic()
    ran = await asyncio.gather(*(_run(backend, f"sleep 0.5; echo {at}") for at in range(4)))
    assert [item.output for item in ran] == [b"%d\n" % at for at in range(4)]
    assert time.monotonic() - began < 1.8


def test_the_loop_may_be_on_any_thread(workspace: Path) -> None:
    script = (
        "import asyncio, threading, os; from pathlib import Path\n"
        "from deepagent.agent.backends.local import LocalBackend\n"
        "async def main():\n"
        "    b = LocalBackend(Path('.'), Path('.'), data=Path('.deepagents'), environ=os.environ)\n"
        "    print((await b.execute('echo hi', limit=5, on_output=None)).output)\n"
        "t = threading.Thread(target=lambda: asyncio.run(main())); t.start(); t.join()\n"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("b'hi\\n'\n", "")


@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
def test_kept_output_is_its_beginning_and_its_end(size: int) -> None:
    text = bytes(at % 251 for at in range(20_000))
    kept = Kept(edge=3_000)
    for at in range(0, len(text), size):
        kept.add(text[at : at + size])
    assert kept.result() == (text[:3_000] + text[-3_000:], 14_000, 3_000)


def test_short_output_is_kept_whole() -> None:
    kept = Kept(edge=10)
    kept.add(b"0123456789abcdefghij")
    assert kept.result() == (b"0123456789abcdefghij", 0, 10)
