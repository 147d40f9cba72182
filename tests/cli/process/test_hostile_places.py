"""Places that are read-only, full, or not what a project usually is: where data goes, and what is said."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepagent.context.messages import text_of
from process_program import Program, assert_well_formed, call

HELLO = {"text": "Hello.", "repeat": 100}
LONG = call("execute", command="seq 1 20000")


def test_outside_git_the_folder_is_the_workspace(program: Program, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    model = program.script(HELLO)
    for run, args in ((program.run, ()), (program.inside, ("-c",))):
        done = run("-p", "hi", "-m", model, "-C", tmp_path / "plain", *args)
        assert (done.code, done.out, done.err) == (0, "Hello.\n", "")
    assert len(list((tmp_path / "plain" / ".deepagents" / "sessions").glob("*.jsonl"))) == 1


def test_in_the_home_folder_there_is_no_project(program: Program) -> None:
    (program.home / ".git").mkdir()
    model = program.script({"calls": [LONG]}, HELLO)
    for run, args in ((program.run, ()), (program.inside, ("-c",))):
        done = run("-p", "hi", "-m", model, "--yolo", "-C", program.home, *args)
        assert (done.code, done.out, done.err) == (0, "Hello.\n", "")
    assert {path.name for path in (program.home / ".deepagents").iterdir()} == {"projects", "sessions"}


@pytest.mark.parametrize("folder", ["gone", pytest.param("a file", marks=pytest.mark.long)])
def test_a_working_directory_that_is_none_is_a_usage_error(program: Program, folder: str) -> None:
    place = program.repo / folder
    place.write_text("")
    options: Any = {}
    if folder == "gone":
        place.unlink()
        place.mkdir()
        options = {"cwd": place, "preexec_fn": place.rmdir}
    done = program.run("-p", "hi", *(("-C", place) if folder == "a file" else ()), **options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("deepagent: cannot work in ")
    assert done.err.count("\n") == 1


def test_a_project_that_cannot_be_written_keeps_its_data_at_home(powerless: Program) -> None:
    if os.geteuid() == 0:
        os.chown(powerless.repo, 65534, 65534)
    powerless.repo.chmod(0o555)
    model = powerless.script({"calls": [LONG, call("write_file", path="b.txt", content="b")]}, HELLO)
    first = powerless.run("-p", "hi", "-m", model, "--yolo")
    second = powerless.run("-c", "-p", "again", "-m", model)
    powerless.repo.chmod(0o755)
    assert (first.code, first.out, second.code) == (0, "Hello.\n", 0)
    assert f"{powerless.repo} cannot be written: conversation data goes to" in first.err
    (result,) = [text for m in powerless.messages() if m.role == "tool" and "b.txt" in (text := text_of(m))]
    assert "permission is denied" in result
    assert not (powerless.repo / ".deepagents").exists()


def test_data_folders_of_another_user_are_not_used(powerless: Program) -> None:
    sessions = powerless.repo / ".deepagents" / "sessions"
    sessions.mkdir(parents=True)
    sessions.chmod(0o555)
    done = powerless.run("-p", "hi", "-m", powerless.script(HELLO))
    assert (done.code, done.out) == (0, "Hello.\n")
    assert f"{sessions} cannot be written: conversation data goes to" in done.err


def test_a_home_that_cannot_be_written_is_said_before_anything_is_sent(powerless: Program) -> None:
    powerless.home.chmod(0o555)
    model = powerless.script(HELLO)
    done = powerless.run("-p", "hi", "-m", model, "--output-format", "json")
    assert (done.code, done.result["error"]["kind"]) == (1, "storage")
    assert "set DEEPAGENT_HOME" in done.err and "--no-session-persistence" in done.err
    assert powerless.run("-p", "hi", "-m", model, "--no-session-persistence").out == "Hello.\n"
    moved = powerless.with_env(DEEPAGENT_HOME=str(powerless.scripts / "home"))
    assert powerless.run("-p", "hi", "-m", model, env=moved).out == "Hello.\n"
    powerless.home.chmod(0o755)


def test_nothing_is_left_of_a_session_that_is_not_kept(program: Program, tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    environ = program.with_env(TMPDIR=str(tmp_path / "temp"))
    model = program.script({"calls": [LONG]}, {"text": "{{match:(lies whole in \\S+)}}"})
    done = program.run("-p", "hi", "-m", model, "--yolo", "--no-session-persistence", env=environ)
    assert done.code == 0 and str(tmp_path / "temp") in done.out
    args = ("-c", "-p", "hi", "-m", model, "--no-session-persistence")
    assert program.run(*args, env=environ).code == 1
    assert list((tmp_path / "temp").iterdir()) == []
    assert not (program.repo / ".deepagents").exists()
    assert not (program.home / ".deepagents" / "sessions").exists()


def fill(folder: Path, leave: int) -> Path:
    """Fills a small disk but for so many KiB. Gives the file that does it."""
    filler, free = folder / "filler", os.statvfs(folder)
    filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize - leave * 1024))
    return filler


@pytest.mark.parametrize("where", ["project", pytest.param("user folder", marks=pytest.mark.long)])
def test_on_a_full_disk_the_run_ends_in_order_and_goes_on_when_there_is_room(
    program: Program, small_disk: Callable[[Path, int], None], where: str
) -> None:
    at_home = where == "user folder"
    folder = program.home / ".deepagents" if at_home else program.repo / ".deepagents" / "sessions"
    small_disk(folder, 1024)
    filler = fill(folder, leave=64)
    model = program.script(
        {"text": "{{position}}" + "x" * 8_000, "calls": [call("glob", pattern="{{position}}*")], "repeat": 12}, HELLO
    )
    done = program.run("-p", "hi", "-m", model, "--output-format", "stream-json")
    assert (done.code, done.result["subtype"], done.result["error"]["kind"]) == (1, "error", "storage")
    assert "the disk is full" in done.err and "Traceback" not in done.err
    said = [answer["text"] for answer in done.of("assistant")]
    assert len(said) > 2
    assert_well_formed(program.log())
    filler.unlink()
    assert program.inside("-c", "-p", "go on", "-m", model).out == "Hello.\n"
    assert_well_formed(program.log())
    kept = [message.text for message in program.messages() if message.role == "assistant"]
    assert kept[: len(said)] == said
    assert len(kept) == 13


def test_a_result_that_fits_on_no_disk_stays_in_the_view(
    program: Program, small_disk: Callable[[Path, int], None]
) -> None:
    folder = program.repo / ".deepagents" / "large_tool_results"
    small_disk(folder, 64)
    model = program.script({"calls": [LONG]}, {"expect": [{"where": "last", "contains": "\n12345\n"}], **HELLO})
    done = program.run("-p", "hi", "-m", model, "--yolo")
    assert (done.code, done.out) == (0, "Hello.\n"), done.err
    assert "a long result stays in the view: cannot write " in done.err and "the disk is full" in done.err
    assert [path for path in folder.rglob("*") if path.suffix == ".txt"] == []


def test_a_copy_that_a_crash_cut_short_is_made_whole(program: Program, small_disk: Callable[[Path, int], None]) -> None:
    small_disk(program.repo / ".deepagents", 1024)  # another file system: copies in place of links
    model = program.script({"calls": [LONG]}, HELLO)
    program.inside("-p", "hi", "-m", model, "--yolo")
    (copy,) = (program.repo / ".deepagents" / "large_tool_results").rglob("*.txt")
    whole = copy.read_bytes()
    copy.write_bytes(whole[:1000])
    assert program.inside("-c", "-p", "again", "-m", model).out == "Hello.\n"
    assert copy.read_bytes() == whole


def test_what_fits_in_no_archive_stays_in_the_view(program: Program, small_disk: Callable[[Path, int], None]) -> None:
    folder = program.repo / ".deepagents" / "conversation_history"
    small_disk(folder, 64)
    filler = fill(folder, leave=4)
    words = {"text": "{{position}} " + "word " * 500, "calls": [call("glob", pattern="{{position}}*")], "repeat": 8}
    model = program.script(words, {"expect": [{"where": "messages", "contains": "\n0 word"}], **HELLO})
    options = ("-m", model, "--context-window", "6500", "--output-format", "json")
    done = program.run("-p", "hi", *options)
    assert (done.code, done.result["compactions"]) == (0, 0), done.err
    assert "not compacted, all messages stay: cannot write " in done.err and "the disk is full" in done.err
    filler.unlink()
    done = program.inside("-c", "-p", "again", "-m", program.script(HELLO), *options[2:])
    assert (done.code, done.result["compactions"]) == (0, 1), done.err
    assert "0 word word" in Path(done.result["archive"]).read_text()
