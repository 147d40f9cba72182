"""Attempts to break out, in the real sandboxes: all are refused, or named in what the sandbox says it cannot keep.

Each attempt is also made without a sandbox, where it has to succeed; otherwise its failure would say nothing.
"""

from __future__ import annotations

import functools
import os
import pty
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from deepagent.agent.sandbox.engine import Engine, SandboxError
from hard_inputs import hard_input
from sandbox_escapes import ESCAPES, LEFT_BEHIND, Escape
from sandbox_world import SECRET, User, World, engine_for, world

_NAMES = tuple(escape.name for escape in (*ESCAPES, *LEFT_BEHIND))
_DRIVER = """
py() { "$PYTHON" -I -S -c "$1"; }; export -f py
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What came of all attempts in one sandbox, by one user."""

    escaped: frozenset[str]
    output: Mapping[str, str]
    last: str
    """The end of the output."""
    lacks: frozenset[str]


@functools.cache
def attempted(engine_name: str, user: User) -> Results | str:
    """Makes all attempts; a text says why that is not possible here."""
    if user == "nobody" and (os.geteuid() != 0 or not shutil.which("setpriv")):
        return "only root can become another user"
    with world(user, _NAMES) as made, _belongings(made) as complete:
        engine: Engine | None = None
        if engine_name:
            try:
                engine = engine_for(engine_name, complete)
            except (OSError, SandboxError) as error:
                return f"{engine_name} does not work here: {error}"
        return _attempt(complete, engine, user)


def _attempt(made: World, engine: Engine | None, user: User) -> Results:
    chosen = [each for each in ESCAPES if each.user in {"", user} and (each.control or engine is not None)]
    before = made.outside_state()
    with made.acting():
        bounds = made.bounds()
    ran = made.run(engine, _DRIVER + "".join(map(_call, (*chosen, *LEFT_BEHIND))), bounds=bounds)
    time.sleep(0.5)
    after = made.outside_state()
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    codes = dict(line.split()[1:] for line in ran.stdout.splitlines() if line.startswith("=== "))
    late = {each.name for each in LEFT_BEHIND}
    return Results(
        escaped=frozenset(
            {name for name, code in codes.items() if code == "0" and name not in late}
            | {name for name in codes if (made.root / f"got-{name}").exists()}
            | {
                name
                for name in codes
                if any(Path(path).parts[0] in {name, f"{name}.d", f"{name}.d-2"} for path in changed)
            }
            | made.contacts
        ),
        output=_by_attempt(ran.stdout),
        last=ran.stdout[-2_000:],
        lacks=frozenset(engine.lacks(bounds) if engine else ()),
    )


def _call(each: Escape) -> str:
    """The lines of bash that make an attempt and tell what came of it."""
    quoted = each.script.replace("'", "'\\''")
    place = f"CASE={each.name} FILE=$OUT/{each.name} DIR=$OUT/{each.name}.d"
    attempt = f"{place} timeout 10 bash -c '{quoted}' 2>&1 < /dev/null"
    return f'echo == begins {each.name}; {attempt}; echo "=== {each.name} $?"\n'


def _by_attempt(output: str) -> dict[str, str]:
    """What was said in each attempt."""
    parts = output.split("== begins ")[1:]
    return {part.split(maxsplit=1)[0]: part for part in parts}


@contextmanager
def _belongings(made: World) -> Generator[World]:
    """What other programs of the user have besides files: shared memory, a terminal."""
    shared = Path(f"/dev/shm/{made.base.name}")
    shared.write_text(SECRET)
    os.chown(shared, made.uid, -1)
    controller, terminal = pty.openpty()
    os.chown(os.ttyname(terminal), made.uid, -1)
    said = subprocess.run((*made.prefix, "ipcmk", "-M", "64"), check=True, capture_output=True, text=True).stdout
    segment = said.split()[-1]
    try:
        more = {"SHM": str(shared), "SEGMENT": segment, "TERMINAL": os.ttyname(terminal)}
        yield replace(made, environ={**made.environ, **more})
    finally:
        subprocess.run(("ipcrm", "-m", segment), check=True)
        shared.unlink()
        os.close(controller)
        os.close(terminal)


def results(engine: str, user: User) -> Results:
    found = attempted(engine, user)
    if isinstance(found, str):
        pytest.skip(found)
    return found


_USERS: tuple[User, ...] = ("me", "nobody")
_ATTEMPTS = [
    pytest.param(each, user, id=f"{each.name}-{user}", marks=[pytest.mark.long] if user == "nobody" else [])
    for each in (*ESCAPES, *LEFT_BEHIND)
    for user in _USERS
    if each.user in {"", user}
]


@hard_input(
    "Sandbox",
    "160 attempts to break out: files, links, `/proc`, namespaces, secrets, processes, network, sockets, git, our data",
    "are refused in both engines, as root and without rights, or named among what the engine cannot keep",
)
@pytest.mark.parametrize("engine", ["bubblewrap", "landlock"])
@pytest.mark.parametrize(("escape", "user"), _ATTEMPTS)
def test_an_attempt_is_refused_or_named(escape: Escape, user: User, engine: str) -> None:
    found = results(engine, user)
    assert f"=== {escape.name} " in found.output.get(escape.name, ""), found.last
    assert (escape.name in found.escaped) == (engine in escape.lacks), found.output.get(escape.name)
    assert escape.lacks.get(engine, "") in {"", *found.lacks}


_CONTROLS = [
    pytest.param(*each.values, id=each.id, marks=[pytest.mark.long] if each.values[1] == "nobody" else [])
    for each in _ATTEMPTS
    if cast(Escape, each.values[0]).control
]


@pytest.mark.parametrize(("escape", "user"), _CONTROLS)
def test_without_a_sandbox_the_attempt_succeeds(escape: Escape, user: User) -> None:
    found = results("", user)
    assert escape.name in found.escaped, found.output.get(escape.name)


@pytest.mark.parametrize("engine", ["bubblewrap", "landlock"])
def test_nothing_is_named_that_is_kept(engine: str) -> None:
    found = results(engine, "me")
    page = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text(encoding="utf-8")
    assert all(f"| {lack} |" in page for lack in found.lacks)
    assert found.lacks == {each.lacks[engine] for each in ESCAPES if engine in each.lacks}
