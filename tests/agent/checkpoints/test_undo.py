"""Undo, redo and rewind of files: what goes back, what is left alone, and what is said of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_desk import Desk, done, state_of
from deepagent.agent.checkpoints.files import ChangedFile
from deepagent.context.control import CannotDo
from deepagent.context.entries import FilesRedone, FilesUndone
from hard_inputs import hard_input

Make = Callable[..., Desk]
OTHERS = "somebody else has changed it since"


def test_what_tools_and_commands_did_goes_back_and_forth(desk: Make) -> None:
    at = desk()
    (at.folder / "run.sh").write_text("#!/bin/sh\n")
    before = at.state()
    at.turn("do it")
    at.write("new/b.txt", "two\n")
    at.shell("echo more >> a.txt; chmod +x run.sh; ln -s a.txt link; mkdir -p c/d; mv run.sh c/d/")
    after = at.state()
    report = at.files.undo()
    assert done(report) == (("a.txt", "run.sh"), ("c/d/run.sh", "link", "new/b.txt"), {})
    assert (report.action, report.request, report.messages) == ("undo", "do it", (at.message,))
    assert at.state() == before
    assert not (at.folder / "new").exists()
    assert not (at.folder / "c").exists()
    again = at.files.redo()
    assert (again.action, again.removed) == ("redo", ("run.sh",))
    assert at.state() == after
    at.files.undo()
    assert at.state() == before


def test_undo_steps_back_turn_by_turn_and_redo_forward(desk: Make) -> None:
    at = desk()
    for number in (1, 2, 3):
        at.turn(f"turn {number}")
        at.write("a.txt", f"{number}\n")
    assert [at.files.undo().request for _ in range(3)] == ["turn 3", "turn 2", "turn 1"]
    assert (at.folder / "a.txt").read_text() == "one\n"
    with pytest.raises(CannotDo, match="nothing to undo"):
        at.files.undo()
    assert [at.files.redo().request for _ in range(3)] == ["turn 1", "turn 2", "turn 3"]
    assert (at.folder / "a.txt").read_text() == "3\n"
    with pytest.raises(CannotDo, match="nothing to redo"):
        at.files.redo()


def test_a_new_turn_that_changes_files_ends_redoing(desk: Make) -> None:
    at = desk()
    at.write("a.txt", "two\n")
    at.files.undo()
    at.turn("only talk")
    assert at.files.redo(preview=True).written == ("a.txt",)
    at.write("b.txt", "b\n")
    with pytest.raises(CannotDo, match="nothing to redo"):
        at.files.redo()
    assert at.files.undo().removed == ("b.txt",)
    with pytest.raises(CannotDo, match="nothing to undo"):
        at.files.undo()


def test_a_preview_only_tells(desk: Make) -> None:
    at = desk()
    at.write("a.txt", "two\n")
    before, entries = at.state(), len(at.session.entries)
    assert at.files.undo(preview=True).written == ("a.txt",)
    assert (at.state(), len(at.session.entries)) == (before, entries)
    with pytest.raises(CannotDo, match="nothing to redo"):
        at.files.redo(preview=True)


@hard_input("Git and undo", "a file that you have changed since the agent wrote it", "`/undo` leaves it and names it")
def test_files_that_somebody_else_has_changed_are_named_and_left(desk: Make) -> None:
    at = desk()
    at.shell("echo two > a.txt; echo b > b.txt; echo c > c.txt; echo d > d.txt")
    (at.folder / "a.txt").write_text("mine\n")
    (at.folder / "b.txt").chmod(0o755)
    (at.folder / "c.txt").unlink()
    report = at.files.undo()
    assert done(report) == ((), ("d.txt",), {"a.txt": OTHERS, "b.txt": OTHERS})
    assert (at.folder / "a.txt").read_text() == "mine\n"
    assert (at.folder / "b.txt").exists()
    assert at.files.redo().written == ("d.txt",)
    assert not (at.folder / "c.txt").exists()


@hard_input(
    "Git and undo",
    "you changed a file between two steps of the agent",
    "it goes back to what you made of it, no further",
)
def test_a_file_goes_back_to_what_somebody_else_made_of_it_and_no_further(desk: Make) -> None:
    at = desk()
    at.write("a.txt", "agent\n")
    (at.folder / "a.txt").write_text("agent\nand I\n")
    at.write("a.txt", "agent\nand I\nand agent\n")
    report = at.files.undo()
    assert report.written == ("a.txt",)
    assert [one.why for one in report.left] == ["it goes back only to what somebody else had made of it"]
    assert (at.folder / "a.txt").read_text() == "agent\nand I\n"


def test_what_the_user_does_between_calls_is_not_the_sessions(desk: Make) -> None:
    at = desk()
    at.shell("echo b > b.txt")
    (at.folder / "mine.txt").write_text("mine\n")
    at.shell("echo c > c.txt")
    assert at.files.undo().removed == ("b.txt", "c.txt")
    assert (at.folder / "mine.txt").read_text() == "mine\n"


def test_a_turn_of_which_nothing_can_go_back_does_not_stand_in_the_way(desk: Make) -> None:
    at = desk()
    at.write("a.txt", "two\n")
    at.turn("second")
    at.write("b.txt", "b\n")
    (at.folder / "b.txt").write_text("mine\n")
    assert done(at.files.undo()) == ((), (), {"b.txt": OTHERS})
    assert at.files.undo().written == ("a.txt",)


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        ("rm -r d; ln -s {out} d", "a part of its path is no folder any more"),
        ("rm d/x; mkdir d/x", "a folder stands in its place"),
        ("rm d/x; mkfifo d/x", "it is no regular file"),
    ],
)
def test_what_stands_in_the_way_is_left(desk: Make, tmp_path: Path, meanwhile: str, why: str) -> None:
    at = desk()
    outside = tmp_path / "outside"
    outside.mkdir()
    at.run("mkdir d; echo 1 > d/x")
    at.shell("echo 2 > d/x")
    at.run(meanwhile.format(out=outside))
    report = at.files.undo()
    assert done(report)[:2] == ((), ()) or why in done(report)[2].values()
    assert not any(outside.iterdir())


@hard_input(
    "Git and undo",
    "a folder became a link out of the workspace before the undo",
    "nothing is written or removed through it",
)
def test_nothing_is_written_or_removed_through_a_link(desk: Make, tmp_path: Path) -> None:
    """A folder became a link to one with the same files, after the session had changed them."""
    at = desk()
    outside = tmp_path / "outside"
    at.run("mkdir d; echo 1 > d/x")
    at.shell("echo 2 > d/x; echo new > d/y")
    at.run(f"mv d {outside}; ln -s {outside} d")
    before = state_of(outside)
    at.files.undo()
    assert state_of(outside) == before


@hard_input(
    "Git and undo", "a file became a folder, a folder a file", "undo and redo bring both states back, byte for byte"
)
def test_a_folder_that_became_a_file_and_a_file_that_became_a_folder(desk: Make) -> None:
    at = desk()
    at.run("mkdir d; echo 1 > d/x; echo f > f")
    before = at.state()
    at.shell("rm -r d; echo now a file > d; rm f; mkdir f; echo in > f/in")
    after = at.state()
    assert done(at.files.undo())[2] == {}
    assert at.state() == before
    at.files.redo()
    assert at.state() == after


def test_a_folder_that_became_a_link_comes_back(desk: Make) -> None:
    at = desk()
    at.run("mkdir d; echo x > d/x; echo y > d/y")
    before = at.state()
    at.shell("mv d e; echo changed > e/x; ln -s e d")
    assert done(at.files.undo()) == (("d/x", "d/y"), ("d", "e/x", "e/y"), {})
    assert at.state() == before


@hard_input("Git and undo", "a deleted file with mode 0600, an executable one", "they come back so")
def test_private_files_come_back_private_and_executable_ones_executable(desk: Make) -> None:
    at = desk()
    at.run("echo key > key; chmod 600 key; echo x > x; chmod 755 x; echo y > y; chmod 744 y")
    at.shell("rm key x; chmod 644 y")
    at.files.undo()
    modes = {name: stat.S_IMODE((at.folder / name).stat().st_mode) for name in ("key", "x", "y")}
    assert modes == {"key": 0o600, "x": 0o755, "y": 0o755}
    at.files.redo()
    at.files.undo()
    assert stat.S_IMODE((at.folder / "key").stat().st_mode) == 0o600


@hard_input("Git and undo", "a hard link", "undo writes in place; the link stays")
def test_a_file_with_further_names_keeps_them(desk: Make) -> None:
    at = desk()
    os.link(at.folder / "a.txt", at.folder / "b.txt")
    at.shell("echo two >> a.txt")
    assert at.files.undo().written == ("a.txt",)
    assert (at.folder / "a.txt").samefile(at.folder / "b.txt")
    assert (at.folder / "b.txt").read_text() == "one\n"


@hard_input(
    "Git and undo", "names with a newline, a leading dash, not UTF-8, like options", "undone and redone like any other"
)
def test_names_of_every_kind(desk: Make) -> None:
    at = desk()
    names = [
        b"-rf",
        b"--upload-pack=x",
        b"new\nline",
        b"latin-\xe9",
        b" space ",
        b"*",
        b":(exclude)a",
        b"qu'ote\"",
        b"\xf0\x9f\x98\x80",
    ]
    for name in names:
        (at.folder / os.fsdecode(name)).write_text("1")
    before = at.state()

    def work() -> None:
        for name in names:
            (at.folder / os.fsdecode(name)).write_text("2")
            (at.folder / os.fsdecode(name + b"+")).write_text("3")

    at.call(None, work)
    report = at.files.undo()
    assert (len(report.written), len(report.removed), report.left) == (9, 9, ())
    assert "new␊line" in report.written
    assert at.state() == before


def test_a_file_outside_the_workspace_that_a_tool_wrote(desk: Make, tmp_path: Path) -> None:
    at = desk()
    outside = tmp_path / "outside.txt"
    outside.write_text("1")
    at.call(str(outside), lambda: outside.write_text("2"))
    assert at.files.undo().written == (str(outside),)
    assert outside.read_text() == "1"
    assert at.files.redo().written == (str(outside),)


def test_everything_is_there_again_in_another_process_and_in_a_copy(desk: Make) -> None:
    from deepagent.context.session import Session

    at = desk()
    at.write("a.txt", "two\n")
    at.turn("more")
    at.shell("echo three >> a.txt")
    at.files.undo()
    at.reopen()
    assert at.files.redo().written == ("a.txt",)
    assert (at.folder / "a.txt").read_text() == "two\nthree\n"
    at.reopen()
    kinds = [type(entry) for entry in at.session.entries[-2:]]
    assert kinds == [FilesUndone, FilesRedone]
    copy = Session.fork(at.session.storage, at.session.id)
    at.session.close()
    at.session = copy
    at._open()
    assert [at.files.undo().request for _ in range(2)] == ["more", "go"]
    assert (at.folder / "a.txt").read_text() == "one\n"


def test_rewind_takes_back_all_turns_since_a_message_and_redo_brings_all_again(desk: Make) -> None:
    at = desk()
    first = at.turn("first")
    at.write("a.txt", "1\n")
    second = at.turn("second")
    at.shell("echo 2 > a.txt; echo b > b.txt")
    at.turn("third")
    at.write("a.txt", "3\n")
    at.files.undo()
    after = at.state()
    report = at.files.rewind(second)
    assert (report.action, report.messages, report.request) == ("rewind", (second,), "second")
    assert done(report) == (("a.txt",), ("b.txt",), {})
    assert (at.folder / "a.txt").read_text() == "1\n"
    at.files.redo()
    assert at.state() == after
    assert at.files.rewind(first).messages == (second, first)
    assert (at.folder / "a.txt").read_text() == "one\n"
    assert done(at.files.rewind(first)) == ((), (), {})
    with pytest.raises(CannotDo, match="names no message"):
        at.files.rewind("nonsense")


def test_changes_of_the_turn_and_of_the_session(desk: Make) -> None:
    at = desk()
    assert at.files.changes("turn").files == at.files.changes("session").files == ()
    at.write("b.txt", "b\n")
    at.turn("second")
    at.shell("echo two >> a.txt; rm b.txt; echo c > c.txt")
    turn, session = at.files.changes("turn"), at.files.changes("session")
    assert turn.files == (
        ChangedFile(path="a.txt", kind="changed"),
        ChangedFile(path="b.txt", kind="removed"),
        ChangedFile(path="c.txt", kind="added"),
    )
    assert [one.path for one in session.files] == ["a.txt", "c.txt"]
    assert "+two" in session.diff
    assert "-b\n" in turn.diff
    assert "b.txt" not in session.diff
    at.files.undo()
    assert [one.path for one in at.files.changes("session").files] == ["b.txt"]
    assert "Untracked files:\n  b.txt" in at.files.changes("worktree").diff


def test_the_diff_of_a_tool_alone(desk: Make) -> None:
    at = desk()
    at.write("b.txt", "b\n")
    assert at.files.changes("turn").diff.endswith("+++ b/b.txt\n@@ -0,0 +1 @@\n+b")


@hard_input(
    "Git and undo", "the program is killed in the middle of an undo", "redo and undo go on; no file is half of each"
)
def test_a_crash_in_the_middle_of_an_undo_can_be_gone_over_again(desk: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    at = desk()
    before = at.state()
    at.shell("for i in 1 2 3 4; do echo $i > $i.txt; done; echo two > a.txt")
    after = at.state()
    real = at.files._change
    calls: list[bytes] = []

    def dies(name: bytes, change: object) -> None:
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(name, change)  # pyright: ignore[reportArgumentType] - passed on as it came

    monkeypatch.setattr(at.files, "_change", dies)
    with pytest.raises(KeyboardInterrupt):
        at.files.undo()
    assert at.state() not in (before, after)
    at.reopen()
    at.files.redo()
    assert at.state() == after
    at.files.undo()
    assert at.state() == before
