"""`deepagent -c`, `-r` and `--fork`: what is continued, after what, and what git sees of it all."""

from __future__ import annotations

import stat
from hashlib import sha256
from pathlib import Path

import pytest
from deepagent.context.messages import Pointer, UserMessage, text_of
from process_program import Program, assert_well_formed, call, files_below, finish, next_object

HELLO = {"text": "Hello.", "repeat": 100}
LONG = call("execute", command="seq 1 20000")
"""Its output goes to a file, in any window."""


def asked(program: Program, session: str | None = None) -> list[str]:
    """What the user said in a session."""
    return [text_of(m) for m in program.messages(session) if isinstance(m, UserMessage) and not m.synthetic]


def pointers(program: Program, session: str | None = None) -> list[Pointer]:
    """The offloaded texts of a session."""
    return [part for message in program.messages(session) for part in message.content if isinstance(part, Pointer)]


def assert_in_project(program: Program, pointer: Pointer) -> None:
    assert sha256((program.repo / pointer.path).read_bytes()).hexdigest() == pointer.sha256


def test_after_git_clean_the_session_and_its_files_are_back(program: Program) -> None:
    model = program.script({"calls": [LONG]}, HELLO)
    assert program.run("-p", "first", "-m", model, "--yolo").code == 0
    (pointer,) = pointers(program)
    program.git("clean", "-fdx", "--quiet")
    assert not (program.repo / ".deepagents").exists()
    done = program.inside("-c", "-p", "second", "-m", model)
    assert (done.code, done.out, done.err) == (0, "Hello.\n", "")
    assert asked(program) == ["first", "second"]
    assert_in_project(program, pointer)
    assert program.status == ""


def test_git_clean_by_the_agent_itself_takes_nothing_away(program: Program) -> None:
    model = program.script(
        {"calls": [LONG]},
        {"calls": [call("execute", command="git clean -fdx && ls -A")]},
        {"calls": [call("read_file", path="{{match:lies whole in (\\S+\\.txt)}}", offset=19_999)]},
        {"expect": [{"where": "last", "contains": "20000"}], "calls": [LONG]},
        HELLO,
    )
    allowed = ("--allow", "execute(git clean -fdx)", "--sandbox", "off")
    done = program.run("-p", "clean up", "-m", model, "--yolo", *allowed)
    assert (done.code, done.out) == (0, "Hello.\n"), done.err
    assert "a command removed files of this session" in done.err
    assert "Removing .deepagents/" in text_of(program.messages()[4])  # pyright: ignore[reportArgumentType] - a result
    for pointer in pointers(program):
        assert_in_project(program, pointer)
    assert (program.repo / ".deepagents" / "sessions" / f"{program.sessions()[0]}.jsonl").exists()
    assert program.status == ""


def test_a_removed_worktree_loses_nothing(program: Program) -> None:
    tree = program.repo.parent / "tree"
    program.git("worktree", "add", "--quiet", str(tree))
    model = program.script({"calls": [LONG]}, HELLO)
    first = program.inside("-p", "first", "-m", model, "--yolo", "--output-format", "json", "-C", tree).result
    program.git("worktree", "remove", "--force", str(tree))
    program.git("worktree", "add", "--quiet", str(tree), "tree")
    second = program.run("-c", "-p", "second", "-m", model, "--output-format", "json", cwd=tree).result
    assert first["session_id"] == second["session_id"]
    assert len(list((tree / ".deepagents" / "large_tool_results").rglob("*.txt"))) == 1
    assert program.sessions() == [], "the worktree is a workspace of its own"


def test_an_id_may_be_shortened_and_a_fork_leaves_the_session_alone(program: Program) -> None:
    model = program.script({"calls": [LONG]}, HELLO)
    program.inside("-p", "first", "-m", model, "--yolo")
    (old,) = program.sessions()
    done = program.run("-r", old[:15], "-p", "second", "-m", model, "--output-format", "json")
    assert (done.code, done.result["session_id"]) == (0, old)
    done = program.inside("-r", old, "--fork", "-p", "third", "-m", model, "--output-format", "json")
    new = done.result["session_id"]
    assert done.code == 0 and new != old
    assert asked(program, old) == ["first", "second"]
    assert asked(program, new) == ["first", "second", "third"]
    program.git("clean", "-fdx", "--quiet")
    assert program.inside("-c", "-p", "fourth", "-m", model).code == 0
    assert asked(program, new)[-1] == "fourth"
    assert_in_project(program, pointers(program, new)[0])


def test_a_session_in_use_is_copied_with_a_notice(program: Program) -> None:
    model = program.script({"text": "I wait.", "calls": [call("execute", command="sleep 100")]}, HELLO)
    with program.start("-p", "first", "-m", model, "--yolo", "--output-format", "stream-json") as process:
        old = next_object(process, "system")["session_id"]
        next_object(process, "tool_use")
        done = program.run("-c", "-p", "second", "-m", model, "--output-format", "json")
        process.terminate()
        assert finish(process).code == 143
    new = done.result["session_id"]
    assert done.code == 0 and new != old
    assert f"{old} is open in another process; this is a copy of it, {new}" in done.err
    assert asked(program, new) == ["first", "second"]
    assert asked(program, old) == ["first"]
    assert_well_formed(program.log(old))
    assert_well_formed(program.log(new))


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("-c",), 1, "there is no session to continue in this workspace"),
        (("-c", "-r", "20200101"), 1, "no session of this workspace match '20200101'"),
        (("-r",), 2, "--resume needs a session's id"),
    ],
)
def test_what_cannot_be_continued_is_said(program: Program, args: tuple[str, ...], code: int, message: str) -> None:
    done = program.inside("-p", "x", "-m", program.script(HELLO), "--output-format", "json", *args)
    assert done.code == code
    assert message in done.err
    assert message in done.result["error"]["message"]
    assert not (program.repo / ".deepagents").exists()


def test_a_log_without_a_beginning_is_passed_over(program: Program) -> None:
    model = program.script(HELLO)
    program.inside("-p", "first", "-m", model)
    storage = program.storage
    for name, content in (("20990101-000000-aaaa", b""), ("20990101-000000-bbbb", b'{"id": "torn')):
        (storage.mirror / "sessions" / f"{name}.jsonl").write_bytes(content)
    assert program.run("-c", "-p", "second", "-m", model).code == 0
    assert asked(program, program.sessions()[0]) == ["first", "second"]


@pytest.mark.parametrize(
    "committed",
    [
        pytest.param("", id="nothing"),
        pytest.param(".deepagents/skills/review/SKILL.md", id="a skill"),
        pytest.param(".deepagents/.gitignore", id="an ignore file", marks=pytest.mark.long),
        pytest.param(".deepagents/sessions/readme", id="a file in a folder of ours", marks=pytest.mark.long),
    ],
)
def test_git_sees_nothing_of_a_run_and_only_the_user_can_read_it(program: Program, committed: str) -> None:
    if committed:
        program.commit(committed, "---\nname: review\ndescription: How to review.\n---\nLook.\n")
    model = program.script({"calls": [LONG]}, HELLO, usage="estimate")
    done = program.run("-p", "word " * 5_000, "-m", model, "--yolo", "--context-window", "12000", umask=0)
    assert (done.code, done.err) == (0, "")
    assert program.status == ""
    ours = program.repo / ".deepagents"
    names = {path.name for path in files_below(ours)}
    assert {"user-1.md", "1-execute.txt", ".gitignore"} <= names
    theirs = {ours.parent / committed, *(ours.parent / committed).parents} if committed else set[Path]()
    for path in (*files_below(program.home / ".deepagents"), *files_below(ours)):
        if path not in theirs:
            allowed = (0o700,) if path.is_dir() else (0o600, 0o400)  # git closes its objects for writing
            assert (path, stat.S_IMODE(path.stat().st_mode) in allowed) == (path, True)
