"""What is said of repositories: every kind of them, and none that can make us run its programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
import pytest
from deepagent.agent.git import DIFF_BYTES, GitError, GitState, changes, make_repository, state
from git_traps import git, set_traps
from hard_inputs import hard_input


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit of `a.txt`."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    make_repository(folder, "first")
    return folder


def test_a_clean_repository_is_its_branch(repo: Path) -> None:
    assert state(repo) == GitState(branch="main")
    assert changes(repo) == ""


def test_changes_are_counted_by_file(repo: Path) -> None:
    (repo / "b.txt").write_text("two\n")
    git(repo, "add", "b.txt")
    (repo / "a.txt").write_text("changed\n")
    (repo / "new 1").write_text("")
    (repo / "folder").mkdir()
    (repo / "folder" / "x").write_text("")
    (repo / "folder" / "y").write_text("")
    found = state(repo)
    assert found == GitState(branch="main", changed=2, untracked=2)
    assert found
    assert found.label == "main +2 ~2"


def test_a_diff_has_what_is_staged_and_what_is_not_and_names_the_rest(repo: Path) -> None:
    (repo / "b.txt").write_text("staged\n")
    git(repo, "add", "b.txt")
    (repo / "a.txt").write_text("changed\n")
    (repo / "neu\x1b[2J.txt").write_text("secret")
    text = changes(repo)
    assert "+staged" in text
    assert "-one\n+changed" in text
    assert text.endswith("Untracked files:\n  neu\x1b[2J.txt")
    assert "secret" not in text
    assert "Untracked" not in changes(repo, untracked=False)


def test_a_file_name_of_two_lines_stays_one_line(repo: Path) -> None:
    (repo / "a\n+++ b").write_text("")
    assert changes(repo) == "Untracked files:\n  a␊+++ b"


def test_before_the_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=trunk")
    (tmp_path / "a.txt").write_text("one\n")
    assert state(tmp_path) == GitState(branch="trunk", untracked=1)
    git(tmp_path, "add", "a.txt")
    assert state(tmp_path) == GitState(branch="trunk", changed=1)
    assert "+one" in changes(tmp_path)


def test_a_detached_head_is_a_short_hash(repo: Path) -> None:
    git(repo, "checkout", "--quiet", "--detach")
    found = state(repo)
    assert found is not None
    assert git(repo, "rev-parse", "HEAD").startswith(found.branch)
    assert len(found.branch) == 7


def test_a_worktree_and_a_submodule_have_states_of_their_own(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "a.txt").write_text("x")
    assert state(tmp_path / "side") == GitState(branch="side", changed=1)
    outer = tmp_path / "outer"
    outer.mkdir()
    make_repository(outer, "empty")
    git(outer, "submodule", "--quiet", "add", str(repo), "inner")
    (outer / "inner" / "a.txt").write_text("x")
    assert state(outer / "inner") == GitState(branch="main", changed=1)
    assert state(outer) == GitState(branch="main", changed=2), "the new submodule and .gitmodules, not what is in it"


def test_a_subfolder_speaks_of_its_repository(repo: Path) -> None:
    (repo / "sub").mkdir()
    (repo / "a.txt").write_text("x")
    assert state(repo / "sub") == GitState(branch="main", changed=1)


@pytest.mark.parametrize("kind", ["plain", "missing", "bare", "corrupt", "file", "broken head"])
def test_what_is_no_work_tree_has_no_state(repo: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    match kind:
        case "missing":
            folder.rmdir()
        case "bare":
            git(folder, "init", "--quiet", "--bare")
        case "corrupt":
            (folder / ".git").mkdir()
            (folder / ".git" / "HEAD").write_bytes(b"\xff\0")
        case "file":
            (folder / ".git").write_text("gitdir: /nowhere\n")
        case "broken head":
            folder = repo
            (repo / ".git" / "HEAD").write_text("no\n")
        case _:
            pass
    assert state(folder) is None
    with pytest.raises(GitError):
        changes(folder)


def test_a_broken_index_or_object_raises_nothing_else(repo: Path) -> None:
    (repo / ".git" / "index").write_bytes(b"DIRC" + bytes(40))
    assert state(repo) is None
    with pytest.raises(GitError, match="index"):
        changes(repo)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_somebody_else_is_not_looked_at(repo: Path) -> None:
    for path in (repo, repo / ".git"):
        os.chown(path, 65534, 65534)
    assert state(repo) is None
    with pytest.raises(GitError, match="dubious ownership"):
        changes(repo)


def test_nothing_that_a_repository_brings_is_run(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks, monitors, filters, textconv, diff programs, pagers, and a `git` in the folder."""
    (repo / "b.bin").write_text("x")
    git(repo, "add", "b.bin")
    git(repo, "commit", "--quiet", "--message", "second")
    mark = set_traps(repo, tmp_path)
    (repo / "a.txt").write_text("changed\n")
    (repo / "b.bin").write_text("y")
    for args in (("diff",), ("diff", "--no-ext-diff"), ("status",)):
        command = ("git", "-c", "filter.p.required=false", *args)
        subprocess.run(command, cwd=repo, check=False, capture_output=True)
    ran = set(mark.read_text().split())
    assert {"core.fsmonitor", "filter.a-b.c.clean", "filter.p.process", "diff.x.textconv", "diff.x.command"} <= ran, (
        "the traps are set"
    )
    mark.unlink()
    monkeypatch.chdir(repo)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(tmp_path / "trap"))
    assert state(repo) == GitState(branch="main", changed=2, untracked=2)
    text = changes(repo)
    assert "+changed" in text
    assert "-x\n\\ No newline at end of file\n+y" in text
    assert not mark.exists(), mark.read_text()


def test_variables_that_point_elsewhere_are_not_followed(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    assert state(repo) == GitState(branch="main")


@hard_input("Git and undo", "a branch or file called `--upload-pack=x`", "it is data")
@pytest.mark.parametrize("name", ["--upload-pack=x", "bold]$x{y", "ünï😀", "a/b.c"])
def test_names_are_data(repo: Path, name: str) -> None:
    git(repo, "update-ref", f"refs/heads/{name}", "HEAD")
    git(repo, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    (repo / name.replace("/", "_")).write_text("")
    found = state(repo)
    assert found == GitState(branch=name, untracked=1)


def test_a_slow_git_is_ended_and_the_branch_is_told_all_the_same(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.run(("which", "git"), check=True, capture_output=True, text=True).stdout.strip()
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\ncase "$*" in *" status "*) sleep 60 & wait;; esac\nexec {real} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    found = state(repo, seconds=0.6)
    assert found == GitState(branch="main", changed=None, untracked=None)
    assert found
    assert found.label == "main"
    assert not [child for child in psutil.Process().children(recursive=True) if child.status() != "zombie"]
    sleeping = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "60"]]
    assert not [p for p in sleeping if p.environ().get("HOME") == os.environ["HOME"]]


def test_without_git_there_is_no_state(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "relative")
    assert state(repo) is None
    with pytest.raises(GitError, match="not installed"):
        changes(repo)


@hard_input("Git and undo", "100 refreshes of the footer", "no process and no descriptor stays")
def test_many_questions_leave_nothing_behind(repo: Path) -> None:
    process = psutil.Process()
    state(repo)
    before = process.num_fds()
    for _ in range(100):
        state(repo)
    for _ in range(10):
        changes(repo)
    assert process.num_fds() == before
    assert not process.children()


def test_a_huge_diff_is_cut(repo: Path) -> None:
    (repo / "a.txt").write_text("0123456789abcdef\n" * 200_000)
    text = changes(repo)
    assert len(text) < DIFF_BYTES + 200
    assert text.endswith("… cut here: the diff is longer than 2 MB")


def test_many_untracked_files_are_counted_and_the_first_named(repo: Path) -> None:
    for number in range(1_100):
        (repo / f"{number:04}").write_text("")
    assert state(repo) == GitState(branch="main", untracked=1_100)
    lines = changes(repo).splitlines()
    assert len(lines) == 1_002
    assert lines[-1].strip() == "… and 100 more"
