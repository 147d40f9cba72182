"""What came with a clone is not this user's: it is never continued, recalled, or written through."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deepagent.context.messages import text_of
from process_program import Program, call, files_below

HELLO = {"text": "Hello.", "repeat": 100}


@pytest.fixture
def session(program: Program) -> str:
    """A session of somebody else, which lies in the repository: with log, archive and an offloaded text."""
    program.inside("-p", "Remember the swordfish.", "-m", program.script(HELLO))
    (session,) = program.sessions()
    data = program.repo / ".deepagents"
    for name in (f"conversation_history/{session}.md", f"large_tool_results/{session}/1-execute.txt"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("the swordfish is a password\n")
    shutil.rmtree(program.home / ".deepagents")
    (data / ".gitignore").unlink()
    program.git("add", "--all", "--force")
    program.git("commit", "--quiet", "--message", "sessions of somebody else")
    return session


def contents(folder: Path) -> dict[Path, bytes]:
    """What lies in a folder, its links not followed."""
    return {path: path.read_bytes() for path in files_below(folder) if path.is_file()}


def test_a_log_that_came_with_the_clone_is_not_continued(program: Program, session: str) -> None:
    before = contents(program.repo / ".deepagents")
    model = program.script({"expect": [{"not_contains": "swordfish"}], **HELLO})
    for args in (("-c",), ("-r", session, "--fork")):
        done = program.inside("-p", "go on", "-m", model, *args)
        assert (done.code, done.out) == (1, "")
    assert program.inside("-p", "begin", "-m", model).code == 0
    assert program.run("-c", "-p", "go on", "-m", model).out == "Hello.\n"
    assert program.inside("sessions").out.count("messages") == 1
    after = contents(program.repo / ".deepagents")
    assert {path: after[path] for path in before} == before
    assert program.status == ""


def test_searches_do_not_meet_what_came_with_the_clone(program: Program, session: str) -> None:
    model = program.script(
        {"calls": [call("grep", pattern="sword", path=path) for path in (".", "..")]},
        {"calls": [call("glob", pattern="**/*.md"), call("execute", command="true")]},
        {"expect": [{"where": "messages", "not_contains": ["swordfish", session]}], **HELLO},
    )
    done = program.inside("-p", "look", "-m", model, "--yolo")
    assert (done.code, done.out) == (0, "Hello.\n"), done.err


@pytest.mark.parametrize(
    "link",
    [
        ".deepagents",
        *(pytest.param(f".deepagents/{name}", marks=pytest.mark.long) for name in ("sessions", "large_tool_results")),
    ],
)
def test_a_link_is_not_written_through(program: Program, tmp_path: Path, link: str) -> None:
    target = tmp_path / "elsewhere"
    (target / "sessions").mkdir(parents=True)
    place = program.repo / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)
    program.git("add", "--all")
    program.git("commit", "--quiet", "--message", "a link")
    model = program.script({"calls": [call("execute", command="seq 1 20000")]}, HELLO)
    done = program.inside("-p", "first", "-m", model, "--yolo")
    assert (done.code, done.out) == (0, "Hello.\n")
    assert f"{place} is a link: conversation data goes to {program.home / '.deepagents' / 'projects'}" in done.err
    again = program.run("-c", "-p", "second", "-m", model, "--yolo")
    assert (again.code, len(program.messages())) == (0, 6)
    assert contents(target) == {}
    assert place.is_symlink()
    assert program.status == ""


def test_a_log_that_became_a_link_is_set_aside(program: Program, tmp_path: Path) -> None:
    model = program.script(HELLO)
    program.inside("-p", "first", "-m", model)
    target = tmp_path / "target"
    target.write_text("precious\n")
    (session,) = program.sessions()
    log = program.repo / ".deepagents" / "sessions" / f"{session}.jsonl"
    log.unlink()
    log.symlink_to(target)
    assert program.run("-c", "-p", "second", "-m", model).code == 0
    assert target.read_text() == "precious\n"
    assert not log.is_symlink()
    assert [text_of(message) for message in program.messages() if message.role == "user"] == ["first", "second"]
    assert program.status == ""


def test_a_log_of_the_same_name_with_another_content_is_not_ours(program: Program) -> None:
    model = program.script(HELLO)
    program.inside("-p", "first", "-m", model)
    (session,) = program.sessions()
    log = program.repo / ".deepagents" / "sessions" / f"{session}.jsonl"
    mine = log.read_text()
    log.unlink()
    log.write_text(mine.replace("first", "a lie"))
    lie = program.script({"expect": [{"not_contains": "a lie"}], **HELLO})
    assert program.inside("-c", "-p", "second", "-m", lie).code == 0
    assert log.read_text().startswith(mine)
    assert "a lie" in log.with_name(f"{log.name}.foreign-1").read_text()
    assert program.status == ""
