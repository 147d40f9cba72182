"""Which engine is chosen and what is said about it: only what a probe has shown."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from deepagent.agent.sandbox.bounds import Bounds, EngineName
from deepagent.agent.sandbox.bubblewrap import Bubblewrap
from deepagent.agent.sandbox.engine import Command, Engine, SandboxError, Wrapped
from deepagent.agent.sandbox.sandbox import Sandbox
from deepagent.agent.sandbox.seatbelt import Seatbelt, profile
from deepagent.agent.sandbox.seccomp import Sockets, socket_filter
from hard_inputs import hard_input
from sandbox_world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Promising:
    """An engine that says yes and does less."""

    around: tuple[str, ...] = ()
    engine: Engine | None = None
    open: bool = True
    name: EngineName = "bubblewrap"

    def title(self) -> str:
        return "promising 1.0"

    def wrap(self, command: Command) -> Wrapped:
        if self.engine is None:
            return Wrapped(argv=(*self.around, *command.argv))
        bounds = Bounds(writable=command.bounds.writable, network=self.open)
        return self.engine.wrap(Command(argv=command.argv, cwd=command.cwd, bounds=bounds, environ=command.environ))

    def lacks(self, bounds: Bounds) -> tuple[str, ...]:
        return ()


def sandbox(world: World, *engines: Engine) -> Sandbox:
    return Sandbox("auto", world.bounds, environ=world.environ, workspace=world.root, engines=engines)


def test_the_first_that_holds_is_chosen(shared_world: World, engine: Engine) -> None:
    state = sandbox(shared_world, engine).state()
    assert state.engine == engine.name
    assert state.reason.endswith("ran a probe")


def test_one_that_keeps_nothing_is_not_believed(shared_world: World) -> None:
    state = sandbox(shared_world, Promising()).state()
    assert state.engine is None
    assert "could write outside and read what is hidden and reach the network" in state.reason


@hard_input(
    "Sandbox", "an engine that starts commands but does not confine them", "is found out by a probe and not used"
)
@pytest.mark.parametrize("network", [True, False])
def test_one_that_keeps_less_is_not_believed(shared_world: World, engine: Engine, network: bool) -> None:
    state = sandbox(shared_world, Promising(engine=engine, open=network)).state()
    assert state.engine is None
    missing = "read what is hidden and reach the network" if network else "read what is hidden"
    assert f"a probe could {missing})" in state.reason


def test_reasons_of_those_before_are_told(shared_world: World, engine_named: Callable[[str], Engine]) -> None:
    missing, broken = Bubblewrap(program=None), Promising(around=("/bin/false",))
    state = sandbox(shared_world, missing, broken, engine_named("landlock")).state()
    assert state.engine == "landlock"
    assert state.reason.startswith(
        "bubblewrap is not installed; promising 1.0 does not work here (it ended with 1); Land"
    )


def test_a_program_that_is_none_is_told_of(shared_world: World, tmp_path: Path) -> None:
    for program in ("/bin/true", str(tmp_path / "missing"), "/etc/passwd"):
        state = sandbox(shared_world, Bubblewrap(program=program)).state()
        assert state.engine is None
        assert "does not run" in state.reason


def test_an_old_one_is_not_used(shared_world: World, tmp_path: Path) -> None:
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.4.1\n")
    old.chmod(0o755)
    assert "too old" in sandbox(shared_world, Bubblewrap(program=str(old))).state().reason


def test_switched_off_nothing_is_tried(tmp_path: Path) -> None:
    def never() -> Bounds:
        raise AssertionError("nothing is to be looked at")

    state = Sandbox("off", never, environ={}, workspace=tmp_path).state()
    assert (state.engine, state.reason) == (None, "it is switched off")


def test_many_threads_make_one_probe(shared_world: World, engine: Engine) -> None:
    tried: list[Command] = []

    class Counting(Promising):
        def wrap(self, command: Command) -> Wrapped:
            tried.append(command)
            return engine.wrap(command)

    shared = sandbox(shared_world, Counting())
    threads = [threading.Thread(target=shared.state) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tried) == 1


def test_this_system_has_its_engines(shared_world: World) -> None:
    found = Sandbox("auto", shared_world.bounds, environ=shared_world.environ, workspace=shared_world.root).state()
    assert found.engine is not None or found.reason


def test_a_program_in_the_workspace_confines_nothing(shared_world: World) -> None:
    (shared_world.root / "bwrap").write_text("#!/bin/sh\necho bubblewrap 0.11.0\n")
    (shared_world.root / "bwrap").chmod(0o755)
    environ = {**shared_world.environ, "PATH": str(shared_world.root)}
    found = Sandbox("auto", shared_world.bounds, environ=environ, workspace=shared_world.root).state()
    assert "bubblewrap is not installed" in found.reason


def test_nothing_is_left_of_a_probe(shared_world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    folder = shared_world.base / "probes"
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert sandbox(shared_world, engine).state().engine
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(sys.platform == "darwin", reason="there it is")
def test_seatbelt_is_for_another_system() -> None:
    with pytest.raises(SandboxError, match="no sandbox-exec"):
        Seatbelt().title()


def test_the_profile_for_seatbelt() -> None:
    bounds = Bounds(
        writable=(Path("/w"), Path('/with "quote\\')),
        read_only=(Path("/w/.git/hooks"),),
        hidden=(Path("/home/.ssh"),),
    )
    lines = profile(bounds, {}).splitlines()
    assert lines[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
    order = [
        '(allow file-write* (subpath "/w"))',
        '(deny file-write* (subpath "/w/.git/hooks"))',
        '(deny file-write-unlink (literal "/w/.git"))',
        '(deny file-read* file-write* (subpath "/home/.ssh"))',
    ]
    assert [line for line in lines if line in order] == order
    assert '(allow file-write* (subpath "/with \\"quote\\\\"))' in lines
    assert "(deny network*)" in lines
    assert "(deny network*)" not in profile(Bounds(writable=(), network=True), {})


def test_a_filter_is_made_only_for_machines_whose_numbers_are_known() -> None:
    some = Sockets(internet=False, local=False)
    assert len({socket_filter(machine, some) for machine in ("x86_64", "aarch64", "riscv64")}) == 3
    assert socket_filter("sparc64", some) == b""
    for machine in ("x86_64", "aarch64", "riscv64"):
        code = socket_filter(machine, Sockets(internet=True, local=True))
        assert len(code) % 8 == 0
        assert len(code) // 8 < 4096
