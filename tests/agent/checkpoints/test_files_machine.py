"""Random histories of files: tools, commands and somebody else at work, undone and redone in any order."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from checkpoint_desk import Desk, State
from deepagent.context.control import CannotDo
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

NAMES = st.sampled_from(["a.txt", "d/x", "d/y", "d/e/z", "-f", "with\nline"])
TEXTS = st.sampled_from(["", "1\n", "2\r\n", "3", "\0"])
WHATS = st.sampled_from(["write", "write", "append", "remove", "chmod", "link", "folder", "move"])
EXECUTABLE = 0o100
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


class Machine(RuleBasedStateMachine):
    """One session; `foreign` is what somebody else has done last, and nobody may lose it."""

    @initialize()
    def begin(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        os.environ["DEEPAGENT_HOME"] = str(Path(self.scratch.name) / "home")
        self.desk = Desk(Path(self.scratch.name) / "work")
        self.desk.turn()
        self.git = self.users_own()
        self.foreign: dict[bytes, tuple[int, bytes] | None] = {}

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            self.desk.close()
            del os.environ["DEEPAGENT_HOME"]
            self.scratch.cleanup()

    def users_own(self) -> dict[str, bytes]:
        git = self.desk.folder / ".git"
        return {str(path.relative_to(git)): path.read_bytes() for path in sorted(git.rglob("*")) if path.is_file()}

    def change(self, name: str, what: str, text: str) -> None:
        """Does something to a file, if that can be done to what is there."""
        path = self.desk.folder / name
        with suppress(OSError):
            match what:
                case "write":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    if path.is_symlink():
                        path.unlink()
                    path.write_bytes(text.encode())
                case "append":
                    if not path.is_symlink():
                        path.write_bytes(path.read_bytes() + b"+")
                case "remove":
                    path.unlink()
                case "chmod":
                    if not path.is_symlink():
                        path.chmod(0o644 if path.stat().st_mode & EXECUTABLE else 0o755)
                case "link":
                    path.unlink(missing_ok=True)
                    path.symlink_to(f"to{text.strip(chr(0))}")
                case "move":
                    here, there = self.desk.folder / "d", self.desk.folder / "m"
                    (here if here.exists() else there).rename(there if here.exists() else here)
                case _:
                    path.unlink()
                    path.mkdir()
                    (path / "in").write_bytes(text.encode())

    @rule()
    def turn(self) -> None:
        self.desk.turn()

    @rule(name=NAMES, text=TEXTS)
    def tool(self, name: str, text: str) -> None:
        before = self.desk.state()
        self.desk.call(name, lambda: self.change(name, "write", text))
        self.forget(before)

    @rule(changes=st.lists(st.tuples(NAMES, WHATS, TEXTS), min_size=1, max_size=4))
    def command(self, changes: list[tuple[str, str, str]]) -> None:
        before = self.desk.state()
        self.desk.call(None, lambda: [self.change(*change) for change in changes])
        self.forget(before)

    def forget(self, before: State) -> None:
        """What the session changed itself is not somebody else's last word any more."""
        now = self.desk.state()
        for name in {*before, *now}:
            if before.get(name) != now.get(name):
                self.foreign.pop(name, None)

    @rule(name=NAMES, what=WHATS, text=TEXTS)
    def somebody_else(self, name: str, what: str, text: str) -> None:
        before = self.desk.state()
        self.change(name, what, f"mine {text}")
        now = self.desk.state()
        for one in {*before, *now}:
            if before.get(one) != now.get(one):
                self.foreign[one] = now.get(one)

    @rule()
    def reopen(self) -> None:
        self.desk.reopen()

    @rule()
    def undo_and_redo(self) -> None:
        before = self.desk.state()
        try:
            self.desk.files.undo()
        except CannotDo:
            assert self.desk.state() == before
            return
        self.desk.files.redo()
        assert self.desk.state() == before

    @rule()
    def undo(self) -> None:
        with suppress(CannotDo):
            preview = self.desk.files.undo(preview=True)
            report = self.desk.files.undo()
            assert {*report.written, *report.removed} <= {*preview.written, *preview.removed}

    @rule()
    def redo(self) -> None:
        with suppress(CannotDo):
            self.desk.files.redo()

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        messages = [message.id for message in self.desk.session.requests()]
        if messages:
            self.desk.files.rewind(messages[data.draw(st.integers(0, len(messages) - 1))])

    @invariant()
    def nothing_of_somebody_elses_is_lost(self) -> None:
        if hasattr(self, "desk"):
            now = self.desk.state()
            for name, state in self.foreign.items():
                assert state is None or now.get(name) == state, name

    @invariant()
    def the_repository_is_untouched(self) -> None:
        if hasattr(self, "desk"):
            assert self.users_own() == self.git


@pytest.mark.parametrize("examples", [8, pytest.param(250, marks=pytest.mark.long)])
def test_random_histories(examples: int) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=SLOW),
    )
