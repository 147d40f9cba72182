"""Confined processes: how they end, what outlives its shell, and that all of it can be reached and ended."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deepagent.agent.backends.processes import MARK, Family
from deepagent.agent.sandbox.bounds import Bounds
from deepagent.agent.sandbox.engine import Command, Engine
from hard_inputs import hard_input
from sandbox_world import World

_SURVIVORS = {
    "background": "sleep 300 &",
    "no-hangup": "nohup sleep 300 > /dev/null 2>&1 &",
    "session": "setsid sleep 300 > /dev/null 2>&1 &",
    "given-away": "(setsid sh -c 'sleep 300 & sleep 300 & wait' > /dev/null 2>&1 &)",
    "without-mark": "env -i /usr/bin/setsid /bin/sleep 300 > /dev/null 2>&1 &",
    "deaf": "setsid sh -c \"trap '' TERM HUP; sleep 300; sleep 300\" > /dev/null 2>&1 &",
    "daemon": "(setsid sh -c '(setsid sleep 300 &) &' > /dev/null 2>&1 < /dev/null &)",
}


@contextmanager
def started(world: World, engine: Engine, script: str) -> Generator[tuple[subprocess.Popen[bytes], Family]]:
    """A command as the shell starts it; whatever is left of it at the end is killed."""
    argv = ("bash", "-c", script)
    wrapped = engine.wrap(Command(argv=argv, cwd=world.root, bounds=world.bounds(), environ=world.environ))
    environ = {**world.environ, MARK: secrets.token_hex()}
    with subprocess.Popen(
        wrapped.argv,
        cwd=world.root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=wrapped.fds,
        start_new_session=True,
    ) as process:
        wrapped.close()
        family = Family(session=process.pid, mark=environ[MARK])
        try:
            yield process, family
        finally:
            family.signal(signal.SIGKILL)


def gone(family: Family, seconds: float = 3.0) -> bool:
    """Whether all of it ends within a time."""
    end = time.monotonic() + seconds
    while family.running() and time.monotonic() < end:
        time.sleep(0.01)
    return not family.running()


@hard_input(
    "Sandbox",
    "children that go on without their shell (`setsid`, `nohup`, double fork, no environment, deaf to SIGTERM)",
    "stay confined, are found, and are ended",
)
@pytest.mark.parametrize("script", _SURVIVORS.values(), ids=_SURVIVORS)
def test_what_outlives_its_shell_goes_on_and_can_be_ended(shared_world: World, engine: Engine, script: str) -> None:
    with started(shared_world, engine, script) as (process, family):
        assert process.wait(5) == 0
        time.sleep(0.1)
        assert family.running()
        family.signal(signal.SIGTERM)
        if "trap" in script:
            assert not gone(family, 0.2)
            family.signal(signal.SIGKILL)
        assert gone(family)


def test_a_command_is_ended_from_outside_with_its_children(shared_world: World, engine: Engine) -> None:
    with started(shared_world, engine, "echo ready; sleep 300 | cat") as (process, family):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        family.signal(signal.SIGTERM)
        assert gone(family)
        assert process.wait(5) != 0


def test_nothing_is_left_of_what_ended(shared_world: World, engine: Engine) -> None:
    with started(shared_world, engine, "true") as (process, family):
        assert process.wait(5) == 0
        assert gone(family)


@pytest.mark.parametrize("code", [0, 1, 7, 126, 255])
def test_exit_codes_come_out(shared_world: World, engine: Engine, code: int) -> None:
    assert shared_world.run(engine, f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE])
def test_a_death_by_signal_is_told(shared_world: World, engine: Engine, number: signal.Signals) -> None:
    ended = shared_world.run(engine, f"kill -{number:d} $$").returncode
    assert ended == (128 + number if engine.name == "bubblewrap" else -number)


def test_signals_do_what_they_do_elsewhere(shared_world: World, engine: Engine) -> None:
    assert shared_world.run(engine, "yes | head -1; echo ${PIPESTATUS[0]}").stdout == "y\n141\n"


def test_a_signal_to_everybody_stays_within(shared_world: World, engine: Engine) -> None:
    witness = subprocess.Popen((*shared_world.prefix, "sleep", "300"))
    try:
        if engine.name == "landlock" and os.geteuid() == 0:
            pytest.skip("as root this would end the machine if it failed")
        shared_world.run(engine, "kill -KILL -1")
        assert witness.poll() is None
    finally:
        witness.kill()
        witness.wait()


def test_output_and_its_order_come_out(shared_world: World, engine: Engine) -> None:
    script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done"
    assert shared_world.run(engine, script).stdout == "".join(f"out {i}\nerr {i}\n" for i in (1, 2, 3))


def test_a_program_that_is_missing_is_told_of(shared_world: World, engine: Engine) -> None:
    command = Command(argv=("/no/such/program",), cwd=shared_world.root, bounds=Bounds(writable=()), environ={})
    wrapped = engine.wrap(command)
    ran = subprocess.run(wrapped.argv, check=False, capture_output=True, pass_fds=wrapped.fds, cwd=shared_world.root)
    wrapped.close()
    assert ran.returncode not in {0, None}
    assert b"No such file" in ran.stderr


def test_a_private_folder_goes_with_its_command(shared_world: World, engine: Engine) -> None:
    bounds = Bounds(writable=(), hidden=shared_world.bounds().hidden)
    script = 'mkdir "$TMPDIR/a" && echo kept > "$TMPDIR/a/b" && cat "$TMPDIR/a/b" && echo "$TMPDIR"'
    command = Command(
        argv=("bash", "-c", script), cwd=shared_world.root, bounds=bounds, environ=shared_world.environ, private=True
    )
    wrapped = engine.wrap(command)
    ran = subprocess.run(
        wrapped.argv,
        check=False,
        capture_output=True,
        text=True,
        env=dict(shared_world.environ),
        pass_fds=wrapped.fds,
        cwd=shared_world.root,
    )
    wrapped.close()
    kept, folder = ran.stdout.splitlines()
    assert kept == "kept"
    assert folder == "/dev/shm" or not Path(folder).exists()
    assert not Path("/dev/shm/a").exists()
