"""Which paths a backend reaches, and what it calls them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.backends.paths import Paths, printable
from deepagent.agent.backends.protocol import BackendError, Search
from hard_inputs import hard_input

MakeBackend = Callable[..., LocalBackend]


async def _grep(backend: LocalBackend, pattern: str, path: str = ".") -> list[str]:
    found = await backend.grep(Search(pattern=pattern, literal=True), path)
    return [match.path for match in found.matches]


def _operations(backend: LocalBackend, path: str) -> dict[str, Callable[[], Awaitable[object]]]:
    """Everything that can be done with a path."""
    return {
        "stat": lambda: backend.stat(path),
        "read": lambda: backend.read(path),
        "fingerprint": lambda: backend.fingerprint(path),
        "write": lambda: backend.write(path, b"x"),
        "list": lambda: backend.list(path),
        "glob": lambda: backend.glob("*", path, limit=5),
        "grep": lambda: _grep(backend, "secret", path),
    }


OPERATIONS = ("stat", "read", "fingerprint", "write", "list", "glob", "grep")
OUTSIDE = (
    "link/x.txt",
    "link/new/x.txt",
    "link",
    "../out/x.txt",
    "sub/../../out/x.txt",
    "file-link",
    "dangling",
    "far",
)


@hard_input("Files", "`..`, links and links in new folders that lead outside", "refused by all file tools")
@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_nothing_outside_is_reached(operation: str, path: str, backend: LocalBackend, workspace: Path) -> None:
    outside = workspace.parent / "out"
    outside.mkdir()
    (outside / "x.txt").write_text("secret")
    (workspace / "sub").mkdir()
    (workspace / "link").symlink_to(outside)
    (workspace / "file-link").symlink_to(outside / "x.txt")
    (workspace / "dangling").symlink_to(outside / "new.txt")
    (workspace / "far").symlink_to("sub/../../out/x.txt")
    with pytest.raises(BackendError, match="outside"):
        await _operations(backend, path)[operation]()
    assert sorted(p.name for p in outside.iterdir()) == ["x.txt"]
    assert (outside / "x.txt").read_text() == "secret"


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_absolute_path_outside_is_refused(operation: str, backend: LocalBackend) -> None:
    with pytest.raises(BackendError, match="outside"):
        await _operations(backend, "/etc/hostname")[operation]()


async def test_links_within_the_workspace_work(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "real/a.txt").write_text("one\n")
    (workspace / "link").symlink_to("real")
    assert await backend.read("link/a.txt") == b"one\n"
    await backend.write("link/b.txt", b"two")
    assert (workspace / "real/b.txt").read_text() == "two"
    assert backend.resolve("link/a.txt") == backend.resolve(str(workspace / "real/a.txt")) == "real/a.txt"
    assert await _grep(backend, "one", "link") == ["real/a.txt"]


async def test_a_search_does_not_follow_links(backend: LocalBackend, workspace: Path) -> None:
    outside = workspace.parent / "out"
    outside.mkdir()
    (outside / "x.txt").write_text("secret")
    (workspace / "link").symlink_to(outside)
    (workspace / "x.txt").symlink_to(outside / "x.txt")
    assert await _grep(backend, "secret") == []
    assert (await backend.glob("*", ".", limit=5)).paths == ()


@hard_input("Files", "names such as `report..final.md` and `[...slug]`", "are names like any other")
@pytest.mark.parametrize(
    "name", ["v1..2.txt", "report..final.md", "..hidden", "app/[...slug]/page.tsx", "a b", "~x", "-n"]
)
async def test_unusual_names_are_names(name: str, backend: LocalBackend, workspace: Path) -> None:
    await backend.write(name, b"hit\n")
    assert (workspace / name).read_bytes() == b"hit\n"
    assert await backend.read(name) == b"hit\n"
    assert await _grep(backend, "hit", name) == [name]
    assert (await backend.glob(name, ".", limit=5)).paths == (name,)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("a\ud800", "no file name"),
        ("~", "`~` is not expanded"),
        ("~/x", "`~` is not expanded"),
        ("x" * 300, "too long"),
        ("loop", "too many links"),
        ("file/below", "not exist|not a directory"),
        ("nothing", "does not exist"),
    ],
)
async def test_a_path_that_is_none_is_explained(path: str, reason: str, backend: LocalBackend, workspace: Path) -> None:
    (workspace / "file").write_text("")
    (workspace / "loop").symlink_to("loop")
    with pytest.raises(BackendError, match=reason):
        await backend.read(path)


@hard_input("Files", "a ring of links", "is explained, not followed for ever")
async def test_a_long_chain_of_links_ends(backend: LocalBackend, workspace: Path) -> None:
    for number in range(1500):
        (workspace / f"chain-{number}").symlink_to(f"chain-{number + 1}")
    with pytest.raises(BackendError, match="too many links"):
        await backend.read("chain-0")


async def test_a_missing_file_comes_with_names_like_it(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "invoice.py").write_text("")
    with pytest.raises(BackendError, match=r"beside it: invoice\.py"):
        await backend.read("invioce.py")
    with pytest.raises(BackendError, match="nor does the folder src"):
        await backend.read("src/invoice.py")


async def test_a_literal_tilde_folder_can_be_used(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "~").mkdir()
    (workspace / "~/x").write_text("here")
    assert await backend.read("./~/x") == b"here"
    assert await backend.read(str(workspace / "~/x")) == b"here"


async def test_names_in_a_subfolder(make_backend: MakeBackend, workspace: Path) -> None:
    (workspace / "pkg/deep").mkdir(parents=True)
    (workspace / "pkg/a.py").write_text("hit")
    (workspace / "top.py").write_text("hit")
    backend = make_backend(workspace, workspace / "pkg")
    assert backend.resolve("a.py") == backend.resolve("../pkg/a.py") == "pkg/a.py"
    assert backend.resolve(".") == "pkg"
    assert backend.resolve("..") == "."
    assert await _grep(backend, "hit", "..") == ["a.py", "../top.py"]
    assert [entry.path for entry in await backend.list("..")] == ["../pkg", "../top.py"]
    assert [entry.path for entry in await backend.list(".")] == ["a.py", "deep"]


async def test_further_folders_are_served(make_backend: MakeBackend, workspace: Path) -> None:
    other = workspace.parent / "other"
    other.mkdir()
    (other / "a.txt").write_text("hit")
    backend = make_backend(extra=(other,))
    assert await backend.read(str(other / "a.txt")) == b"hit"
    assert await backend.read("../other/a.txt") == b"hit"
    assert backend.resolve("../other/a.txt") == str(other / "a.txt")
    assert await _grep(backend, "hit", str(other)) == [str(other / "a.txt")]
    with pytest.raises(BackendError, match="outside"):
        await backend.read(str(workspace.parent / "third"))


async def test_a_single_file_may_be_served(make_backend: MakeBackend, isolated: Path) -> None:
    (isolated / "AGENTS.md").write_text("hit\n")
    (isolated / "key").write_text("hit\n")
    backend = make_backend(extra=(isolated / "AGENTS.md",))
    path = str(isolated / "AGENTS.md")
    assert await backend.read(path) == b"hit\n"
    assert await _grep(backend, "hit", path) == [path]
    assert (await backend.glob("*.md", path, limit=3)).paths == (path,)
    await backend.write(path, b"new\n")
    for other in ("key", ".", "AGENTS.md/x"):
        with pytest.raises(BackendError):
            await backend.write(str(isolated / other), b"x")


async def test_a_sibling_has_seen_nothing(backend: LocalBackend) -> None:
    backend.memory.remember("a", "1")
    other = backend.sibling()
    other.memory.remember("b", "2")
    assert (other.memory.seen("a"), backend.memory.seen("b")) == (None, None)
    await other.write("a", b"x")
    assert await backend.read("a") == b"x"


def test_our_data_in_another_case_is_ours(workspace: Path) -> None:
    paths = Paths(workspace, workspace, extra=(), data=workspace / ".deepagents")
    assert paths.at(workspace / ".DeepAgents/Sessions/x").ours
    assert not paths.at(workspace / ".deepagents/sessionsx").ours


def _relative(path: Path, folder: Path) -> str:
    return os.path.relpath(path, folder)


def _with_data(data: Path) -> None:
    for name in ("sessions/s.jsonl", "conversation_history/s.md", "large_tool_results/s/1-execute.txt"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("hit\n")


@pytest.mark.parametrize("level", ["project", "user"])
@pytest.mark.parametrize("cwd", [".", "pkg/deep"])
async def test_our_data_is_read_when_named_and_only_then(
    level: str, cwd: str, make_backend: MakeBackend, workspace: Path, isolated: Path
) -> None:
    data = workspace / ".deepagents" if level == "project" else isolated / ".deepagents/projects/1a2b"
    (workspace / "pkg/deep").mkdir(parents=True)
    (workspace / "pkg/own.txt").write_text("hit\n")
    (workspace / ".gitignore").write_text(".deepagents/\n")
    _with_data(data)
    backend = make_backend(workspace, workspace / cwd, data=data)
    named = ".deepagents/large_tool_results/s/1-execute.txt"
    spellings = [named, f"./{named}", str(workspace / named), str(data / "large_tool_results/s/1-execute.txt")]
    for spelling in [*spellings, _relative(workspace / named, workspace / cwd)]:
        assert await backend.read(spelling) == b"hit\n", spelling
        assert backend.resolve(spelling) == named
        assert await _grep(backend, "hit", spelling) == [named]
    assert await _grep(backend, "hit", ".deepagents/large_tool_results") == [named]
    assert (await backend.glob("*.md", ".deepagents/conversation_history", limit=9)).total == 1
    assert [entry.path for entry in await backend.list(".deepagents/sessions")] == [".deepagents/sessions/s.jsonl"]
    for everything in (str(workspace), _relative(workspace, workspace / cwd)):
        assert {Path(path).name for path in await _grep(backend, "hit", everything)} == {"own.txt"}
        listed = await backend.glob("**", everything, limit=99)
        assert {Path(path).name for path in listed.paths} == {"own.txt", ".gitignore"}


async def test_our_data_is_passed_over_without_any_ignore_file(backend: LocalBackend, workspace: Path) -> None:
    _with_data(workspace / ".deepagents")
    (workspace / ".deepagents/AGENTS.md").write_text("hit\n")
    assert await _grep(backend, "hit") == [".deepagents/AGENTS.md"]
    assert await _grep(backend, "hit", ".deepagents") == [".deepagents/AGENTS.md"]


@hard_input("Files", "a write into the record of the session", "refused")
@pytest.mark.parametrize(
    "path", ["sessions/s.jsonl", "sessions/new.jsonl", "checkpoints/x", "../.deepagents/sessions/y"]
)
async def test_tools_do_not_write_our_data(path: str, backend: LocalBackend, workspace: Path) -> None:
    _with_data(workspace / ".deepagents")
    with pytest.raises(BackendError, match="own record"):
        await backend.write(f".deepagents/{path}", b"x")
    (workspace / "way").symlink_to(".deepagents/sessions")
    with pytest.raises(BackendError, match="own record"):
        await backend.write("way/s.jsonl", b"x")
    assert (workspace / ".deepagents/sessions/s.jsonl").read_text() == "hit\n"
    await backend.write(".deepagents/AGENTS.md", b"fine")


async def test_a_link_that_came_with_the_project_does_not_lead_out(
    make_backend: MakeBackend, workspace: Path, isolated: Path
) -> None:
    (isolated / "key").write_text("secret")
    (workspace / ".deepagents").mkdir()
    (workspace / ".deepagents/sessions").symlink_to(isolated)
    (workspace / ".deepagents/large_tool_results").mkdir()
    (workspace / ".deepagents/large_tool_results/x").symlink_to(isolated / "key")
    backend = make_backend()
    for path in ("sessions/key", "large_tool_results/x"):
        with pytest.raises(BackendError, match=r"leads out|outside"):
            await backend.read(f".deepagents/{path}")
    data = isolated / ".deepagents/projects/1"
    (data / "sessions").mkdir(parents=True)
    (data / "sessions/x").symlink_to(isolated / "key")
    with pytest.raises(BackendError, match=r"leads out|outside"):
        await make_backend(data=data).read(".deepagents/sessions/x")
    with pytest.raises(BackendError, match="outside"):
        await make_backend(data=data).read(str(data / "deepagent.toml"))


def test_a_name_fits_on_a_line() -> None:
    assert printable("a\nb\x1b[31m") == r"a\nb\x1b[31m"
    assert printable(os.fsdecode(b"caf\xe9")) == r"caf\xe9"
    assert printable("日本 [x].txt") == "日本 [x].txt"
