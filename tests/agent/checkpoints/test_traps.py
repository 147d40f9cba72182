"""Nothing that a repository brings is run by us: not when an agent starts, not by a checkpoint, an undo or a diff."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from checkpoint_desk import Desk
from deepagent.agent.git import GitError, changes, make_repository, state
from git_traps import git, lose_a_blob, set_traps
from hard_inputs import hard_input


def set_all(repo: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, lost: str = "") -> Path:
    """Traps in the repository, in the search path, and in the environment; `lost` names a file to be fetched."""
    (repo / "b.bin").write_text("x")
    git(repo, "add", "b.bin")
    git(repo, "commit", "--quiet", "--message", "second")
    mark = set_traps(repo, folder)
    for name in ("a.txt", "b.bin"):
        (repo / name).write_text("changed\n")
    subprocess.run(("git", "-c", "filter.p.required=false", "diff"), cwd=repo, check=False, capture_output=True)
    assert "core.fsmonitor" in mark.read_text(), "the traps are set"
    if lost:
        lose_a_blob(repo, lost, mark)
        subprocess.run(
            ("git", "cat-file", "-p", f"HEAD:{lost}"), cwd=repo, check=False, timeout=20, capture_output=True
        )
        assert "fetch" in mark.read_text().split(), "what is lost would be fetched"
    mark.unlink()
    monkeypatch.chdir(repo)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}{os.environ['PATH']}")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_ASKPASS", "GIT_EDITOR"):
        monkeypatch.setenv(name, str(folder / "trap"))
    return mark


@hard_input(
    "Git and undo",
    "hooks, fsmonitor, filters, textconv, pager, aliases, `./git`",
    "none is run by checkpoints, undo or `/diff`",
)
def test_checkpoints_undoing_and_diffs_run_nothing(
    desk: Callable[..., Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk()
    mark = set_all(at.folder, tmp_path, monkeypatch)
    before = at.state()
    at.call(None, lambda: (at.folder / "a.txt").write_text("again\n"))
    at.write("c.bin", "c")
    for scope in ("turn", "session", "worktree"):
        assert at.files.changes(scope).diff
    at.files.undo()
    assert at.state() == before
    at.files.redo()
    assert not mark.exists(), mark.read_text()


@hard_input("Git and undo", "a missing content with a promisor remote that is a program", "nothing is fetched")
def test_nothing_is_fetched(desk: Callable[..., Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A content that is missing could be had from a remote, whose address is a program."""
    at = desk()
    mark = set_all(at.folder, tmp_path, monkeypatch, lost="a.txt")
    at.call(None, lambda: (at.folder / "a.txt").write_text("again\n"))
    assert at.files.undo().written == ("a.txt",)
    state(at.folder)
    with pytest.raises(GitError):
        changes(at.folder)
    assert not mark.exists(), mark.read_text()


async def test_an_agent_that_starts_and_works_runs_nothing(
    stage: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Desk(tmp_path / "work")
    at.close()
    mark = set_all(at.folder, tmp_path, monkeypatch)
    write = {"name": "write_file", "arguments": {"path": "new.txt", "content": "x"}}
    play = stage({"calls": [write, {"name": "execute", "arguments": {"command": "echo 1 > b.bin"}}]}, {"text": "done"})
    await play.run()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - see `stage`
    assert not mark.exists(), mark.read_text()


def test_nothing_of_a_repository_within_is_run(
    desk: Callable[..., Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed as a submodule, and git would ask it how it stands."""
    at = desk()
    inner = at.folder / "inner"
    git(at.folder, "init", "--quiet", str(inner))
    (inner / "a.txt").write_text("one\n")
    git(inner, "add", "a.txt")
    git(inner, "commit", "--quiet", "--message", "first")
    git(at.folder, "add", "inner")
    git(at.folder, "commit", "--quiet", "--message", "second")
    mark = set_all(inner, tmp_path, monkeypatch)
    monkeypatch.chdir(at.folder)
    assert state(at.folder) is not None
    changes(at.folder)
    at.call(None, lambda: (inner / "a.txt").write_text("two\n"))
    at.write("b.txt", "b\n")
    at.files.undo()
    assert not mark.exists(), mark.read_text()


def test_a_command_cannot_lead_us_to_settings_of_its_own(
    desk: Callable[..., Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`.git/commondir` makes git read another folder's configuration."""
    at = desk()
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("one\n")
    make_repository(other, "first")
    mark = set_all(other, tmp_path, monkeypatch)
    (at.folder / ".git" / "commondir").write_text(str(other / ".git"))
    monkeypatch.chdir(at.folder)
    state(at.folder)
    at.call(None, lambda: (at.folder / "a.txt").write_text("two\n"))
    with suppress(GitError):
        changes(at.folder)
    assert at.files.undo().written == ("a.txt",)
    assert not mark.exists(), mark.read_text()
