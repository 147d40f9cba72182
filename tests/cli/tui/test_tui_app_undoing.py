"""The commands that show and take back what happened to files."""

from __future__ import annotations

from pathlib import Path

import pytest
from deepagent.agent.git import make_repository
from tui_stage import Json, Screen, call, on_screen, read, write

pytestmark = pytest.mark.usefixtures("workspace")
FLAGS = {"permissions.mode": "yolo"}


def work(*names: str) -> list[Json]:
    """A turn that writes files by a command, and one word after it."""
    command = "; ".join(f"echo new > {name}" for name in names)
    return [{"calls": [call("execute", command=command)]}, {"text": f"Wrote {len(names)}."}]


async def test_undo_and_redo_of_one_file_happen_at_once() -> None:
    write("a.txt", "old\n")
    async with on_screen(*work("a.txt"), flags=FLAGS) as screen:
        await screen.say("/undo")
        await screen.sees("Not done: no files were changed in this session")
        await screen.run("please [b]write[/b] a.txt")
        await screen.say("/undo")
        await screen.sees("Undone: “please [b]write[/b] a.txt”", "1 file got the earlier content: a.txt")
        assert read("a.txt") == "old\n"
        await screen.say("/redo")
        await screen.sees("Redone: “please", "1 file got the later content: a.txt")
        assert read("a.txt") == "new\n"
        await screen.say("/redo")
        await screen.sees("Not done: there is nothing to redo")


async def test_more_files_are_shown_before_and_what_is_left_alone_is_said_why() -> None:
    names = [f"f{number:02}.txt" for number in range(12)]
    async with on_screen(*work(*names, "a.txt"), flags=FLAGS, size=(100, 30)) as screen:
        await screen.run("write")
        write("a.txt", "mine\n")
        await screen.say("/undo")
        await screen.sees("Undo: “write”", "12 files to be removed: f00.txt, f01.txt", "f09.txt and 2 more")
        await screen.sees("Left alone: 1 file", "a.txt: somebody else has changed it since", "y: go ahead")
        await screen.press("escape")
        await screen.settle()
        assert read("f00.txt") == "new\n"
        await screen.say("/undo")
        await screen.sees("y: go ahead")
        await screen.press("t", "f")
        assert read("f00.txt") == "new\n", "keys that are not offered do nothing"
        await screen.press("y")
        await screen.sees("Undone: “write”", "12 files removed")
        assert read("f00.txt") is None
        assert read("a.txt") == "mine\n"


async def rewind(screen: Screen, key: str) -> None:
    """Goes back to before the first of two messages."""
    await screen.run("first")
    await screen.run("second")
    await screen.say("/rewind")
    await screen.sees("Go back to before …  2 messages", "second", "first")
    await screen.press("down", "enter")
    await screen.sees("Rewind to before: “first”", "The talk goes back by 2 messages", "2 files to be removed: a, b")
    await screen.press(key)
    await screen.settle()


@pytest.mark.parametrize("key", ["y", "t", "f", "escape"])
async def test_rewinding_talk_files_or_both(key: str) -> None:
    async with on_screen(*work("a"), *work("b"), {"text": "And now?"}, flags=FLAGS) as screen:
        await rewind(screen, key)
        asked = [message.content[0].text for message in screen.agent.session.requests()]
        assert asked == ([] if key in "yt" else ["first", "second"])
        assert (read("a"), read("b")) == ((None, None) if key in "yf" else ("new\n", "new\n"))
        if key in "yt":
            await screen.sees("Back to before: “first”")
            assert "Wrote 1." not in screen.text
            assert screen.app.prompt.text == "first"
            await screen.press("enter")
            await screen.sees("And now?")
        elif key == "f":
            await screen.sees("Back to before: “first”", "2 files removed: a, b")
        else:
            assert "Back to before" not in screen.text


async def test_rewind_by_id_and_with_nothing_to_go_back_to() -> None:
    async with on_screen(*work("a"), flags=FLAGS) as screen:
        await screen.say("/rewind")
        await screen.sees("Nothing was said yet")
        await screen.run("first")
        await screen.say("/rewind nonsense")
        await screen.sees("Not done: 'nonsense' names no message of yours")
        await screen.say("/rewind last")
        await screen.sees("Rewind to before: “first”")
        await screen.press("y")
        await screen.settle()
        assert read("a") is None


async def test_what_changed_in_the_turn_in_the_session_and_in_the_work_tree() -> None:
    write("a", "committed\n")
    make_repository(Path.cwd(), "first")
    async with on_screen(*work("a", "b"), *work("c"), flags=FLAGS) as screen:
        await screen.run("first")
        await screen.run("second")
        for command, title, seen, unseen in (
            ("/diff turn", "Changes of the last turn", "+++ b/c", "+++ b/b"),
            ("/diff session", "Changes of this session", "-committed", "Untracked"),
            ("/diff", "Uncommitted changes", "Untracked files:", "+++ b/c"),
        ):
            await screen.say(command)
            await screen.sees(title, seen)
            assert unseen not in screen.text
            await screen.press("escape")
            await screen.settle()
        await screen.say("/diff nonsense")
        await screen.sees("/diff takes turn, session or worktree")


async def test_outside_a_repository_the_diff_is_the_sessions() -> None:
    async with on_screen(*work("a"), flags=FLAGS) as screen:
        await screen.say("/diff worktree")
        await screen.sees("This is no git repository")
        await screen.run("first")
        await screen.say("/diff")
        await screen.sees("Changes of this session", "+new")
        await screen.press("escape")


async def test_nothing_goes_back_while_a_run_goes_on() -> None:
    steps = [{"calls": [call("execute", command="echo new > a; sleep 20")]}, {"text": "done"}]
    async with on_screen(*steps, flags=FLAGS) as screen:
        await screen.say("work")
        await screen.until(lambda: read("a"), "waits for the command")
        await screen.say("/undo")
        await screen.sees("/undo waits until the run has ended; Esc stops it")
        await screen.press("escape")
        await screen.settle()
        await screen.say("/undo")
        await screen.sees("Undone: “work”")
        assert read("a") is None


async def test_a_session_that_is_opened_again_can_undo_and_shows_what_was_undone() -> None:
    async with on_screen(*work("a", "b"), flags=FLAGS) as screen:
        await screen.run("first")
        await screen.say("/undo")
        await screen.sees("y: go ahead")
        await screen.press("y")
        await screen.sees("Undone: “first”")
        session = screen.agent.session.id
    async with on_screen(*work("c"), flags=FLAGS, session=session) as screen:
        await screen.sees("undone: 2 files")
        await screen.say("/redo")
        await screen.sees("y: go ahead")
        await screen.press("y")
        await screen.sees("Redone: “first”")
        assert read("b") == "new\n"


async def test_escape_twice_on_the_empty_line_picks_a_message_to_go_back_to() -> None:
    async with on_screen({"text": "First."}, {"text": "Second."}) as screen:
        await screen.run("one")
        await screen.write("words")
        await screen.press("escape", "escape")
        assert len(screen.app.screen_stack) == 1
        await screen.press("ctrl+u", "escape")
        await screen.sees("nothing to stop · Esc again goes back in the talk")
        await screen.press("escape")
        await screen.until(lambda: len(screen.app.screen_stack) == 2)
        await screen.sees("one")
        await screen.press("escape")
        await screen.until(lambda: len(screen.app.screen_stack) == 1)
