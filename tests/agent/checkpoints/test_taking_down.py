"""What is taken down of a workspace: everything that can be brought back, and never more than is sure."""

from __future__ import annotations

import os
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from checkpoint_desk import Desk, done
from deepagent.agent.git.shadow import Limits
from hard_inputs import hard_input

Make = Callable[..., Desk]
MAYBE = "it may have been there before"
UNHIDDEN = f"the same command changed which files are ignored: {MAYBE}"


def users_own(folder: Path) -> dict[str, bytes]:
    """What of a repository belongs to the user: all but the objects, which nothing may add to either."""
    git = folder / ".git"
    found = {str(path.relative_to(git)): path.read_bytes() for path in git.rglob("*") if path.is_file()}
    assert found["HEAD"]
    return found


@hard_input(
    "Git and undo", "a stash, staged and untracked files", "checkpoints, undo and redo leave `.git` byte-identical"
)
def test_the_users_repository_is_not_touched(desk: Make) -> None:
    at = desk()
    at.run("echo s > staged; git add staged; echo w >> a.txt; git -c user.name=a -c user.email=a@b stash -q -u")
    at.run("echo t > staged2; git add staged2; echo u > untracked")
    before = users_own(at.folder)
    at.shell("echo x >> a.txt; rm untracked; echo y > staged2")
    at.files.undo()
    at.files.redo()
    at.files.changes("session")
    assert users_own(at.folder) == before
    assert ".deepagents" not in at.run("git status --short --ignored=no")


@hard_input(
    "Git and undo",
    "`autocrlf`, `eol=crlf`, `ident`, filters, `working-tree-encoding`",
    "contents are kept and brought back exactly; no filter runs",
)
@pytest.mark.parametrize("git", [True, False], ids=["repository", "folder"])
def test_contents_are_kept_byte_for_byte_whatever_attributes_say(desk: Make, git: bool, isolated: Path) -> None:
    at = desk(git=git)
    (isolated / ".gitconfig").write_text("[core]\nautocrlf = true\neol = crlf\nsafecrlf = true\n")
    data = b"one\r\ntwo\nthree\rfour $Id$ \xff\x00 end"
    rules = (
        "* text=auto eol=crlf ident\n*.u working-tree-encoding=UTF-16LE text\n*.f filter=lfs\n[attr]x filter=no\n* x\n"
    )
    (at.folder / ".gitattributes").write_text(rules)
    for name in ("a.bin", "b.u", "c.f"):
        (at.folder / name).write_bytes(data)
    before = at.state()
    at.shell("for f in a.bin b.u c.f; do printf '$Id: 1 $\\r\\nx\\n' > $f; done")
    after = at.state()
    at.files.undo()
    assert at.state() == before
    at.files.redo()
    assert at.state() == after


def test_ignored_files_are_left_out_and_those_in_the_repository_all_the_same_are_not(desk: Make) -> None:
    at = desk()
    at.run("printf '*.log\\n/build/\\n' > .gitignore; mkdir -p build .git/info; echo mine > .git/info/exclude")
    at.run("echo 1 > build/kept; git add -f build/kept; echo 1 > build/other; echo 1 > x.log; echo 1 > mine")
    at.shell("for f in build/kept build/other x.log mine seen; do echo 2 > $f; done")
    assert done(at.files.undo()) == (("build/kept",), ("seen",), {})
    assert (at.folder / "build/other").read_text() == "2\n"


def test_a_tools_own_file_is_kept_though_it_is_ignored(desk: Make) -> None:
    at = desk()
    (at.folder / ".gitignore").write_text("*.log\n")
    (at.folder / "x.log").write_text("1\n")
    at.write("x.log", "2\n")
    assert at.files.undo().written == ("x.log",)


@hard_input(
    "Git and undo",
    "a command un-ignores `.env`, or removes a nested `.git`",
    "undo never removes what may have been there before",
)
@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("rm .gitignore", {".env": MAYBE}),
        ("echo changed > .env; sed -i d .gitignore; echo new > new", {".env": UNHIDDEN}),
        ("echo '!.env' >> .gitignore; echo changed > .env; echo new > new", {".env": UNHIDDEN, "new": UNHIDDEN}),
        ("echo > .git/info/exclude; echo changed > mine", {"mine": UNHIDDEN}),
        ("rm -rf sub/.git; echo changed > sub/f", {"sub/f": MAYBE, "sub/g": MAYBE}),
    ],
)
def test_files_that_only_came_to_light_are_never_removed(desk: Make, command: str, left: dict[str, str]) -> None:
    at = desk()
    at.run("echo .env > .gitignore; echo mine > .git/info/exclude; echo key > .env; echo m > mine")
    at.run("mkdir sub; git init -q sub; echo f > sub/f; echo g > sub/g; sleep 0.05")
    at.shell(command)
    report = at.files.undo()
    assert done(report)[2] == left
    assert all((at.folder / name).exists() for name in (".env", "mine", "sub/f", "sub/g"))
    assert (at.folder / ".gitignore").read_text() == ".env\n"


def test_a_new_ignore_file_does_not_stand_in_the_way_of_what_came_with_it(desk: Make) -> None:
    at = desk()
    at.shell("mkdir app; echo target/ > app/.gitignore; echo main > app/main; mkdir app/target; echo o > app/target/o")
    assert done(at.files.undo()) == ((), ("app/.gitignore", "app/main"), {})
    assert (at.folder / "app/target/o").exists()


def test_nested_repositories_and_submodules_are_not_looked_into(desk: Make) -> None:
    at = desk()
    at.run("mkdir inner; git init -q inner; echo 1 > inner/x")
    at.shell("echo 2 > inner/x; echo 3 > inner/y; echo 2 > b.txt")
    assert done(at.files.undo()) == ((), ("b.txt",), {})
    assert (at.folder / "inner/x").read_text() == "2\n"


@hard_input(
    "Git and undo",
    "a command changes a file over the bound",
    "it is left and named, and so is one that shrinks or grows past it",
)
def test_large_files_are_not_kept_and_named_when_they_change(desk: Make) -> None:
    at = desk(limits=Limits(file_bytes=1024 * 1024))
    at.run("for f in large still shrinks; do head -c 2000000 /dev/zero > $f; done; echo 1 > grows")
    at.shell(
        "echo x >> large; head -c 2000000 /dev/zero > grows; echo small > shrinks; head -c 2000000 /dev/zero > new"
    )
    assert at.files.changes("turn").files == (), "nothing is shown that is not known"
    report = at.files.undo()
    why = "it is larger than 1 MB"
    assert done(report) == ((), (), dict.fromkeys(("large", "grows", "shrinks", "new"), why))
    assert (at.folder / "shrinks").read_text() == "small\n"


def test_a_large_file_of_a_tool_is_named_and_left(desk: Make) -> None:
    at = desk()
    at.run("truncate -s 17M large")
    at.write("large", "small")
    assert done(at.files.undo())[2] == {"large": "it is larger than 16 MB"}


@hard_input(
    "Git and undo",
    "FIFOs, links to devices, broken links and loops",
    "no wait; links are kept as links, the rest is left",
)
def test_what_is_no_file_is_left_out(desk: Make) -> None:
    at = desk()
    at.run("mkfifo pipe; ln -s /dev/zero zero; ln -s nowhere broken; ln -s . loop; echo 1 > was")
    at.shell("rm was; mkfifo was; echo 1 > b.txt; ln -sfn elsewhere broken")
    report = at.files.undo()
    assert report.removed == ("b.txt",)
    assert report.written == ("broken",)
    assert [one.path for one in report.left] == ["was"]


@pytest.mark.skipif(os.geteuid() != 0, reason="root may lay its rights down")
def test_what_cannot_be_read_is_left_out(desk: Make) -> None:
    """In a child without root's rights, which may not look into everything."""
    at = desk()
    at.run("echo 1 > closed; chmod 000 closed; mkdir dark; echo 1 > dark/x; chmod 000 dark; echo 1 > open")

    def work() -> int:
        at.shell("echo 2 > open; chmod 700 dark; echo 2 > dark/y")
        report = at.files.undo()
        left = {one.path for one in report.left}
        return (
            0 if report.written == ("open",) and left == {"dark/x", "dark/y"} and (at.folder / "dark/x").exists() else 1
        )

    assert without_rights(work, at.folder, at.workspace.user) == 0


def without_rights(work: Callable[[], int], *folders: Path) -> int:
    """Runs `work` in a child as nobody, who owns `folders`, and gives its exit code."""
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(("chown", "-R", "65534:65534", str(folder)), check=True)
        for above in folder.parents:
            if above.stat().st_uid == 0 and str(above).startswith("/tmp/"):
                above.chmod(above.stat().st_mode | 0o011)
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            code = work()
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@hard_input("Git and undo", "more files, bytes or time than a bound", "only the files of tools are kept; said once")
@pytest.mark.parametrize("bound", ["files", "bytes", "seconds"])
def test_beyond_a_bound_only_the_files_of_tools_are_kept_and_that_is_said_once(desk: Make, bound: str) -> None:
    limits = {"files": Limits(files=5), "bytes": Limits(bytes=1000), "seconds": Limits(seconds=0.0)}[bound]
    at = desk(limits=limits)
    at.run("for i in 1 2 3 4 5 6 7; do head -c 500 /dev/zero > $i; done")
    at.shell("echo x > 1")
    at.shell("echo x > 2")
    (said,) = at.keeper.news
    assert said.startswith("Changes made by commands cannot be undone here: ")
    assert said.endswith("Those of the file tools can")
    at.write("3", "tool")
    assert at.files.undo().written == ("3",)


def test_a_command_that_makes_too_much_is_said_to_be_beyond_undoing(desk: Make) -> None:
    at = desk(limits=Limits(bytes=100_000))
    at.shell("head -c 200000 /dev/zero > much")
    assert ["0 MB" in said for said in at.keeper.news] == [True]


@hard_input("Git and undo", "git is not installed", "the files of tools can be undone; commands' are said not to")
def test_without_git_the_files_of_tools_are_kept(desk: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    at = desk()
    monkeypatch.setenv("PATH", "relative")
    at.call(None, lambda: (at.folder / "x").write_text("x"))
    assert at.keeper.news == [
        "Changes made by commands cannot be undone here: git is not installed. Those of the file tools can"
    ]
    at.write("a.txt", "two\n")
    at.write("b/c", "c")
    assert "git is not installed" in at.files.changes("turn").diff
    assert [one.path for one in at.files.changes("turn").files] == ["a.txt", "b/c"]
    assert done(at.files.undo()) == (("a.txt",), ("b/c",), {})
    assert at.files.redo().written == ("a.txt", "b/c")


@hard_input(
    "Git and undo",
    "worktree, submodule, broken or foreign `.git`, bare, home, subfolder",
    "checkpoints work, or say why not",
)
@pytest.mark.parametrize("kind", ["worktree", "submodule", "corrupt", "foreign", "bare", "home", "subfolder"])
def test_every_kind_of_place(tmp_path: Path, isolated: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Desk(tmp_path / "first")
    first.close()
    who = "git -c user.name=a -c user.email=a@b -c protocol.file.allow=always"
    folder = tmp_path / "place"
    match kind:
        case "worktree":
            first.run(f"git worktree add -q {folder}")
        case "submodule":
            outer = Desk(tmp_path / "outer")
            outer.close()
            outer.run(f"{who} submodule --quiet add {first.folder} inner")
            folder = outer.folder / "inner"
        case "corrupt":
            folder = first.folder
            (folder / ".git" / "HEAD").write_bytes(b"\xff\0")
            (folder / ".git" / "index").write_bytes(b"DIRC" + bytes(40))
        case "foreign":
            if os.geteuid() != 0:
                pytest.skip("only root can give a folder away")
            folder = first.folder
            subprocess.run(("chown", "-R", "65534:65534", str(folder)), check=True)
        case "bare":
            subprocess.run(("git", "init", "--quiet", "--bare", str(folder)), check=True)
        case "home":
            folder = isolated
        case _:
            folder = first.folder / "sub"
            folder.mkdir()
    at = Desk(folder)
    try:
        at.shell("echo 1 > by-command")
        at.write("by-tool", "1")
        report = at.files.undo()
    finally:
        at.close()
    if kind in ("bare", "home"):
        assert report.removed == ("by-tool",)
        assert len(at.keeper.news) == 1
    elif kind == "subfolder":
        assert report.removed == ("sub/by-command", "sub/by-tool")
    else:
        assert (report.removed, at.keeper.news) == (("by-command", "by-tool"), [])


@hard_input(
    "Git and undo", "a stale lock, a torn pack, a damaged index or config of ours", "the next checkpoint heals it"
)
def test_a_crash_leaves_nothing_that_stands_in_the_way(desk: Make) -> None:
    at = desk()
    at.shell("echo b > b.txt")
    folder = at.workspace.checkpoints
    (folder / "index.lock").write_bytes(b"torn")
    (folder / "objects" / "pack" / "tmp_pack_x").write_bytes(b"torn")
    (folder / "config").write_text("[core\nfsmonitor = no\n")
    at.reopen()
    at.shell("echo c > c.txt")
    index = folder / "index"
    index.write_bytes(index.read_bytes()[:-30])
    at.shell("echo d > d.txt")
    assert at.keeper.news == []
    assert at.files.undo().removed == ("d.txt",) or at.files.redo()
    assert (at.folder / "a.txt").read_text() == "one\n"


def test_a_git_that_is_killed_harms_nothing(desk: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, in the middle of taking down three thousand files."""
    at = desk()
    at.run("for i in $(seq 3000); do echo $i > $i.txt; done")
    program, mark = tmp_path / "bin" / "git", tmp_path / "killed"
    program.parent.mkdir()
    real = subprocess.run(("which", "git"), check=True, capture_output=True, text=True).stdout.strip()
    once = f'{real} "$@" <&0 & sleep 0.1; kill -9 $! $$'
    when = f'case "$*" in *--replace*) if [ ! -e {mark} ]; then touch {mark}; {once}; fi; esac'
    program.write_text(f'#!/bin/sh\n{when}\nexec {real} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    before = at.state()
    at.shell("echo x > 1.txt")
    assert mark.exists()
    assert at.keeper.news == ["What the command changed cannot be undone: git was ended"]
    assert at.state().keys() == before.keys()
    at.shell("echo y > 2.txt")
    assert "2.txt" in at.files.undo().written


def test_two_sessions_in_one_folder(desk: Make) -> None:
    one, other = desk(), desk()
    one.shell("echo 1 > one")
    other.shell("echo 2 > other")
    one.shell("echo 3 >> one")
    assert one.files.undo().removed == ("one",)
    assert other.files.undo().removed == ("other",)


@hard_input("Git and undo", "many undos, redos and diffs", "no process and no descriptor stays")
def test_nothing_stays_open(desk: Make) -> None:
    at = desk()
    at.shell("echo 0 > x")
    process = psutil.Process()
    before = process.num_fds()
    for number in range(5):
        at.shell(f"echo {number} >> x")
        at.files.undo()
        at.files.redo()
        at.files.changes("session")
    assert process.num_fds() == before
    assert not process.children()
