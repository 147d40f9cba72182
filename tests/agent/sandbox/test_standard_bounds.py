"""The standard bounds: of each kind of workspace and repository, and of what lies at home."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from deepagent.agent.sandbox.bounds import Bounds
from deepagent.agent.sandbox.engine import make_places
from deepagent.agent.sandbox.places import CACHES, HIDDEN_AT_HOME, HIDDEN_BY_VARIABLE, HIDDEN_IN_SYSTEM
from deepagent.agent.sandbox.repository import GitPlaces, git_places
from deepagent.agent.sandbox.sockets import outside_sockets
from deepagent.agent.sandbox.standard import standard_bounds
from deepagent.agent.sandbox.variables import variables
from deepagent.agent.workspace import find_workspace
from hard_inputs import hard_input


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder in which everything can be put."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def bounds(root: Path, home: Path, *extra: Path, **environ: str) -> Bounds:
    settings = {"HOME": str(home), "PATH": "/no/such/folder", **environ}
    return standard_bounds(find_workspace(root, environ=settings), settings, extra)


def git(folder: Path, *args: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "protocol.file.allow=always")
    subprocess.run(("git", *who, *args), cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_workspace_and_temporary_folders_are_writable(workspace: Path, home: Path) -> None:
    found = bounds(workspace, home, TMPDIR=str(home.parent / "tmp"))
    assert {workspace, Path("/tmp").resolve(), home.parent / "tmp"} <= set(found.writable)
    assert found.may_write(workspace / "x")
    assert not found.may_write(home / "x")
    assert not found.may_write(Path("/etc/x"))
    assert not found.network


@pytest.mark.parametrize("start", [".", ".."])
def test_a_folder_that_holds_the_home_is_not_writable(home: Path, start: str) -> None:
    found = bounds((home / start).resolve(), home)
    assert not found.may_write(home / ".bashrc")
    assert (home / start).resolve() not in found.writable
    with_extra = bounds((home / start).resolve(), home, home, Path("/"))
    assert not with_extra.may_write(home / ".bashrc")


def test_further_folders_are_worked_in(workspace: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "more")
    assert bounds(workspace, home, tmp_path / "link").may_write(tmp_path / "more" / "x")


def test_our_own_folders_are_closed(workspace: Path, home: Path) -> None:
    for folder in (workspace / ".deepagents", workspace / "ours", home / ".deepagents"):
        folder.mkdir()
    found = bounds(workspace, home)
    for path in (workspace / ".deepagents" / "sessions" / "x", home / ".deepagents" / "trust.json"):
        assert not found.may_write(path)
    inside = bounds(workspace, home, DEEPAGENT_HOME=str(workspace / "ours"))
    assert not inside.may_write(workspace / "ours" / "credentials.toml")


def test_secrets_that_are_there_are_hidden(workspace: Path, home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".aws").mkdir()
    (home / ".config" / "gh").mkdir(parents=True)
    (home / ".deepagents").mkdir()
    (home / ".deepagents" / "credentials.toml").touch()
    (home / "elsewhere").mkdir()
    (home / ".kube").symlink_to(home / "elsewhere")
    hidden = set(bounds(workspace, home).hidden)
    names = {".ssh", ".aws", ".config/gh", ".deepagents/credentials.toml", "elsewhere"}
    assert {home / name for name in names} <= hidden
    assert home / ".netrc" not in hidden


def test_a_secret_may_lie_where_a_variable_says(workspace: Path, home: Path) -> None:
    (home / "kube").touch()
    (home / "other").touch()
    hidden = bounds(workspace, home, KUBECONFIG=f"{home / 'kube'}:{home / 'other'}", HISTFILE=os.devnull).hidden
    assert {home / "kube", home / "other"} <= set(hidden)
    assert Path(os.devnull) not in hidden


def test_whoever_works_in_a_secret_place_sees_it(home: Path) -> None:
    (home / ".ssh" / "work").mkdir(parents=True)
    assert home / ".ssh" not in bounds(home / ".ssh" / "work", home).hidden


def test_settings_of_npm_are_hidden_if_a_key_is_in_them(workspace: Path, home: Path) -> None:
    settings = home / ".npmrc"
    settings.write_text("registry=http://localhost\n")
    assert settings not in bounds(workspace, home).hidden
    settings.write_text("//localhost/:_authToken=x\n")
    found = bounds(workspace, home)
    assert settings in found.hidden
    assert variables(found, {"HOME": str(home)}).set["npm_config_userconfig"] == os.devnull


def test_caches_are_writable_and_what_runs_by_itself_is_not(workspace: Path, home: Path) -> None:
    for name in (".cargo/registry", ".cargo/bin", ".npm/_cacache", ".npm/_npx", ".cache/pip", ".cache/pre-commit"):
        (home / name).mkdir(parents=True)
    found = bounds(workspace, home)
    assert all(found.may_write(home / name / "x") for name in (".cargo/registry", ".npm/_cacache", ".cache/pip"))
    closed = (".cargo/bin", ".npm/_npx", ".cache/pre-commit", ".cache", ".cargo", ".npm")
    assert not any(found.may_write(home / name / "x") for name in closed)
    assert bounds(workspace, home, CARGO_HOME=str(home / "c"), PATH=_with(home, "cargo")).may_write(home / "c/git/x")


def _with(home: Path, tool: str) -> str:
    folder = home / "bin"
    folder.mkdir()
    (folder / tool).write_text("")
    (folder / tool).chmod(0o755)
    return str(folder)


def test_places_are_made_if_that_is_possible(workspace: Path, home: Path) -> None:
    wanted = Bounds(
        writable=(workspace, home / "new", Path("/proc/impossible")),
        read_only=(workspace / ".deepagents", Path("/elsewhere")),
        hidden=(home / "gone",),
    )
    made = make_places(wanted)
    assert made == Bounds(writable=(workspace, home / "new"), read_only=(workspace / ".deepagents",))
    assert (home / "new").is_dir()


def test_hooks_and_settings_of_a_repository_are_closed(repo: Path, home: Path) -> None:
    found = bounds(repo, home)
    for name in ("hooks/pre-commit", "config", "info/attributes"):
        assert not found.may_write(repo / ".git" / name)
    for name in ("index.lock", "HEAD", "objects/aa/x", "refs/heads/x", "COMMIT_EDITMSG"):
        assert found.may_write(repo / ".git" / name)


def test_settings_by_worktree_are_closed_where_git_obeys_them(repo: Path) -> None:
    assert repo / ".git" / "config.worktree" not in git_places(repo).read_only
    git(repo, "config", "extensions.worktreeConfig", "true")
    assert repo / ".git" / "config.worktree" in git_places(repo).read_only


def test_a_linked_worktree_may_write_what_a_commit_needs(repo: Path, tmp_path: Path, home: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    found = bounds(tmp_path / "linked", home)
    own = repo / ".git" / "worktrees" / "linked"
    for path in (own / "index.lock", repo / ".git/objects/x", repo / ".git/refs/x", repo / ".git/logs/refs/x"):
        assert found.may_write(path)
    closed = (own / "commondir", own / "gitdir", repo / ".git/hooks/x", repo / ".git/config")
    assert not any(found.may_write(path) for path in (*closed, tmp_path / "linked" / ".git"))


def test_submodules_are_closed_like_repositories(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repo), "origin")
    git(repo, "submodule", "--quiet", "add", "--name", "a/b", str(tmp_path / "origin"), "sub")
    closed = git_places(repo).read_only
    module = repo / ".git" / "modules" / "a" / "b"
    assert {module / "hooks", module / "config", repo / "sub" / ".git"} <= set(closed)
    assert git_places(repo / "sub") == GitPlaces(
        writable=(module,), read_only=(repo / "sub" / ".git", module / "hooks", module / "config", module / "info")
    )


def test_many_submodules_are_closed_as_one(repo: Path) -> None:
    for number in range(30):
        folder = repo / ".git" / "modules" / str(number)
        folder.mkdir(parents=True)
        (folder / "HEAD").touch()
    assert repo / ".git" / "modules" in git_places(repo).read_only
    assert len(git_places(repo).read_only) < 10


@hard_input(
    "Sandbox", "a `.git` file that came with a folder and points to somebody's repository", "opens nothing there"
)
@pytest.mark.parametrize("target", ["victim/.git", "victim", "victim/.git/worktrees/x", "/", "missing", ""])
def test_a_pointer_that_came_with_a_folder_opens_nothing(repo: Path, tmp_path: Path, target: str) -> None:
    victim = tmp_path / "victim"
    repo.rename(victim)
    git(victim, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "x")
    (victim / ".git" / "worktrees" / "other").rename(victim / ".git" / "worktrees" / "x")
    posing = tmp_path / "posing"
    posing.mkdir()
    (posing / ".git").write_text(f"gitdir: {tmp_path / target if target else ''}\n")
    assert git_places(posing).writable == ()
    assert posing / ".git" in git_places(posing).read_only


def test_a_link_to_another_repository_opens_nothing(repo: Path, tmp_path: Path) -> None:
    posing = tmp_path / "posing"
    posing.mkdir()
    (posing / ".git").symlink_to(repo / ".git")
    assert git_places(posing).writable == ()


def test_hooks_behind_a_link_close_all_of_git(repo: Path, tmp_path: Path) -> None:
    hooks = repo / ".git" / "hooks"
    hooks.rename(tmp_path / "shared")
    hooks.symlink_to(tmp_path / "shared")
    assert repo / ".git" in git_places(repo).read_only


def test_sockets_of_this_machine_are_found(tmp_path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        door.listen()
        assert tmp_path / "door" in outside_sockets({})
    assert tmp_path / "door" in outside_sockets({"SSH_AUTH_SOCK": str(tmp_path / "door")})
    assert tmp_path / "gone" not in outside_sockets({"DOCKER_HOST": f"unix://{tmp_path / 'gone'}"})


def test_ways_to_other_programs_are_taken_out_of_the_environment() -> None:
    environ = {"HOME": "/h", "SSH_AUTH_SOCK": "/s", "DBUS_SESSION_BUS_ADDRESS": "x", "TMUX": "y", "PATH": "/bin"}
    found = variables(Bounds(writable=()), environ)
    assert set(found.unset) == {"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "TMUX"}
    assert "npm_config_fetch_retries" in found.set
    assert "npm_config_fetch_retries" not in variables(Bounds(writable=(), network=True), environ).set


def test_the_documentation_names_every_place() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text(encoding="utf-8")
    secrets = (*HIDDEN_AT_HOME, *HIDDEN_BY_VARIABLE, *(name for name in HIDDEN_IN_SYSTEM if "ssh_host" not in name))
    assert [name for name in secrets if f"`{name}`" not in page] == []
    assert [cache.tool for cache in CACHES if cache.tool not in page] == []
