"""Checkpoints in whole runs: through the loop, interrupted, in another process, and what the model is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from deepagent.agent.checkpoints.keeper import Before, Keeper
from deepagent.agent.checkpoints.retention import forget
from deepagent.agent.checkpoints.states import Changes
from deepagent.agent.events import CallStarted, Noticed, ToolStarted
from deepagent.context.control import CannotDo
from deepagent.context.entries import FilesChanged
from deepagent.context.messages import UserMessage, text_of

if TYPE_CHECKING:
    from stage import Stage

DONE = {"text": "done"}


def sh(command: str) -> dict[str, object]:
    return {"calls": [{"name": "execute", "arguments": {"command": command}}]}


def write(path: str, content: str) -> dict[str, object]:
    return {"calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]}


def notes(play: Stage) -> list[str]:
    """What the harness has said to the model of files."""
    texts = [text_of(m) for m in play.view if isinstance(m, UserMessage) and m.synthetic]
    return [text for text in texts if "undone or redone" in text]


async def test_a_run_can_be_undone_also_by_another_process(stage: Callable[..., Stage]) -> None:
    play = stage(write("a.txt", "a\n"), sh("echo b > b.txt; echo more >> a.txt"), DONE)
    await play.run("make files")
    assert [entry.kind for entry in play.entries() if isinstance(entry, FilesChanged)] == ["files_changed"] * 2
    await play.reopen()
    report = play.agent.files.undo()
    assert (report.request, report.removed) == ("make files", ("a.txt", "b.txt"))
    assert not (play.folder / "a.txt").exists()
    play.check()


async def test_what_changes_nothing_leaves_no_trace(stage: Callable[..., Stage]) -> None:
    play = stage(sh("ls; true"), {"calls": [{"name": "ls", "arguments": {}}]}, DONE)
    await play.run()
    assert not [entry for entry in play.entries() if isinstance(entry, FilesChanged)]
    with pytest.raises(CannotDo, match="no files were changed"):
        play.agent.files.undo()


async def test_what_an_interrupted_command_had_done_can_be_undone(stage: Callable[..., Stage]) -> None:
    play = stage(sh("echo 1 > one; sleep 30"), DONE)

    def stop(event: object) -> None:
        if isinstance(event, ToolStarted):
            asyncio.get_running_loop().call_later(1.0, play.agent.interrupt)

    await play.run(on=stop)
    assert play.ended.outcome == "interrupted"
    assert (play.folder / "one").exists()
    assert play.agent.files.undo().removed == ("one",)
    assert not (play.folder / "one").exists()


async def test_a_command_that_is_interrupted_twice_is_taken_down_and_the_model_told_what_was_undone(
    stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    play = stage(sh("echo 1 > one; sleep 30"), DONE, DONE)
    real, later = Keeper.after, asyncio.get_running_loop().call_later

    def slow(keeper: Keeper, before: Before) -> Changes:
        time.sleep(0.5)
        return real(keeper, before)

    def stop(event: object) -> None:
        if isinstance(event, ToolStarted):
            later(1.0, play.agent.interrupt)
            later(1.2, play.agent.interrupt)

    monkeypatch.setattr(Keeper, "after", slow)
    await play.run(on=stop)
    assert play.agent.files.undo().removed == ("one",)

    def stop_before_the_answer(event: object) -> None:
        if isinstance(event, CallStarted):
            play.agent.interrupt()

    await play.run("go on", on=stop_before_the_answer)
    await play.run("now go on")
    assert [note.partition(":\n")[2] for note in notes(play)] == ["- one is gone"]


async def test_nothing_is_undone_while_a_run_goes_on(stage: Callable[..., Stage]) -> None:
    play = stage(write("a.txt", "a\n"), DONE)
    refused: list[str] = []

    def try_it(event: object) -> None:
        if isinstance(event, CallStarted) and event.turn == 2:
            try:
                play.agent.files.undo()
            except CannotDo as reason:
                refused.append(str(reason))

    await play.run(on=try_it)
    assert refused == ["that waits until the run has ended"]
    assert (play.folder / "a.txt").exists()


async def test_the_model_is_told_once_that_files_went_back_and_must_read_them_again(
    stage: Callable[..., Stage],
) -> None:
    edit = {"calls": [{"name": "edit_file", "arguments": {"path": "a.txt", "old_string": "one", "new_string": "uno"}}]}
    again = {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "over it"}}]}
    play = stage({"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}, edit, DONE, again, DONE, DONE)
    (play.folder / "a.txt").write_text("one\n")
    await play.run()
    play.agent.files.undo()
    lines = await play.run("go on")
    (note,) = notes(play)
    assert note.startswith("Note from the harness, not from the user: the user has undone or redone changes of files")
    assert note.endswith("\n- a.txt has another content")
    assert "failed write_file call_3_0" in lines, "the content that it knew is not there any more"
    assert (play.folder / "a.txt").read_text() == "one\n"
    await play.run("and on")
    assert len(notes(play)) == 1


async def test_undone_and_redone_is_nothing_to_tell(stage: Callable[..., Stage]) -> None:
    play = stage(write("a.txt", "a\n"), DONE, DONE)
    await play.run()
    play.agent.files.undo()
    play.agent.files.redo()
    await play.run("go on")
    assert notes(play) == []


async def test_rewinding_talk_and_files_tells_nothing_and_talk_alone_tells_what_stays(
    stage: Callable[..., Stage],
) -> None:
    play = stage(DONE, write("a.txt", "a\n"), DONE, write("b.txt", "b\n"), DONE, DONE, DONE)
    await play.run("first")
    await play.run("second")
    await play.run("third")
    third, second = (message.id for message in reversed(play.agent.session.requests()[1:]))
    report = play.agent.rewind(third)
    assert report.removed == ("b.txt",)
    assert [text_of(m) for m in play.agent.session.requests()] == ["first", "second"]
    play.agent.rewind(second, files=False)
    assert [text_of(m) for m in play.agent.session.requests()] == ["first"]
    assert (play.folder / "a.txt").exists()
    await play.run("other")
    assert [note.partition(":\n")[2] for note in notes(play)] == ["- a.txt is there"]
    await play.reopen()
    assert play.agent.files.undo().removed == ("a.txt",)


async def test_rewinding_files_alone_keeps_the_talk(stage: Callable[..., Stage]) -> None:
    play = stage(write("a.txt", "a\n"), DONE, DONE)
    await play.run("first")
    play.agent.rewind("last", talk=False)
    assert len(play.agent.session.requests()) == 1
    assert not (play.folder / "a.txt").exists()
    with pytest.raises(CannotDo, match="names no message"):
        play.agent.rewind("nonsense")


async def test_steering_begins_a_turn_of_its_own(stage: Callable[..., Stage]) -> None:
    play = stage(write("a.txt", "a\n"), write("b.txt", "b\n"), DONE)

    def steer(event: object) -> None:
        if isinstance(event, CallStarted) and event.turn == 1:
            play.agent.steer("and b")

    await play.run("a", on=steer)
    report = play.agent.files.undo()
    assert (report.request, report.removed) == ("and b", ("b.txt",))


@pytest.mark.parametrize("interactive", [True, False])
async def test_what_cannot_be_taken_down_is_said_once_to_who_watches(
    stage: Callable[..., Stage], isolated: object, interactive: bool
) -> None:
    play = stage(sh("echo 1 > x"), sh("echo 2 > x"), DONE, folder=isolated, interactive=interactive)
    await play.run()
    said = [event.text for event in play.events if isinstance(event, Noticed)]
    why = "the workspace is your home folder, or holds the agent's own"
    told = f"Changes made by commands cannot be undone here: {why}. Those of the file tools can"
    assert [text for text in said if "cannot be undone here" in text] == ([told] if interactive else [])
    with pytest.raises(CannotDo, match=f"those that commands change are not kept here: {why}"):
        play.agent.files.undo()


async def test_states_are_out_of_the_reach_of_commands_and_go_with_their_session(stage: Callable[..., Stage]) -> None:
    play = stage(write("a.txt", "a\n"), sh("sh clean.sh"), DONE)
    (play.folder / "clean.sh").write_text("rm -rf .deepagents a.txt; echo b > b.txt\n")
    await play.run()
    assert [one.path for one in play.agent.files.changes("session").files] == ["b.txt"]
    states = play.agent.parts.workspace.checkpoints
    (ref,) = {path.parent for path in (states / "refs" / "checkpoints").glob("*/*")}
    assert ref.name == play.agent.session.id
    forget(states, ref.name)
    assert not ref.exists()
