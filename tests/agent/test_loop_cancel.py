"""A run that is interrupted, at every point: the log is whole, nothing goes on behind it, the next prompt works."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import aclosing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.events import (
    AnswerWithdrawn,
    ApprovalAsked,
    CallStarted,
    CompactionDone,
    CompactionStarted,
    Event,
    RunEnded,
    TextArrived,
    ToolCallArriving,
    ToolOutput,
)
from deepagent.agent.tool import tool
from deepagent.context.archive import parse
from deepagent.context.entries import Compacted
from deepagent.context.messages import AssistantMessage, ToolMessage, text_of
from stage import Stage

Make = Callable[..., "Stage"]
NEXT = "and what next?"
"""The prompt after an interruption; scripts answer it wherever they stand."""
THEN: dict[str, Any] = {
    "branches": [{"when": [{"where": "last", "contains": NEXT}], "steps": [{"text": "Fine.", "repeat": 99}]}]
}


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted call."""
    return {"name": name, "arguments": arguments}


def script(*steps: dict[str, Any]) -> dict[str, Any]:
    """A script of these steps that knows what comes next."""
    return {"steps": steps, **THEN}


def at(play: Stage, kind: type[Event], number: int = 1) -> Callable[[Event], None]:
    """Interrupts the run at the so-manieth event of a kind."""
    numbers = count(1)

    def watch(event: Event) -> None:
        if isinstance(event, kind) and next(numbers) == number:
            play.agent.interrupt()

    return watch


async def goes_on(play: Stage) -> None:
    """No task is left, and the next prompt works, here and after the session was opened anew."""
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (await play.run(NEXT))[-1] == "ended success: Fine."
    await play.reopen()
    assert (await play.run(NEXT))[-1] == "ended success: Fine."


async def test_before_the_first_piece_nothing_of_the_answer_is_kept(stage: Make) -> None:
    play = stage(script=script({"text": "late", "delay": 30}))
    assert await play.run(on=at(play, CallStarted)) == ["takes go", "call 1", "ended interrupted: "]
    assert [message.role for message in play.logged()] == ["user"]
    await goes_on(play)


async def test_in_the_middle_of_a_text_what_has_come_is_kept(stage: Make) -> None:
    play = stage(script=script({"text": "One two three four.", "pace": 0.01}))
    lines = await play.run(on=at(play, TextArrived, 2))
    assert lines[-1].startswith("ended interrupted: One two")
    partial = play.logged()[-1]
    assert isinstance(partial, AssistantMessage)
    assert (partial.stop, partial.text) == ("interrupted", lines[2].removeprefix("says "))
    await goes_on(play)
    assert partial in play.view


async def test_reasoning_and_half_a_call_are_not_kept(stage: Make) -> None:
    half = {"thinking": "I ought to", "calls": [call("execute", command="touch ran")], "pace": 0.005}
    play = stage(script=script(half))
    assert (await play.run(on=at(play, ToolCallArriving)))[-1] == "ended interrupted: "
    assert [message.role for message in play.logged()] == ["user"]
    assert not (play.folder / "ran").exists()
    await goes_on(play)


async def test_a_running_command_is_ended_and_answered(stage: Make) -> None:
    command = "echo $$ > pid; echo begun; sleep 30; touch survived"
    play = stage(script=script({"text": "I wait.", "calls": [call("execute", command=command)]}))
    assert await play.run(on=at(play, ToolOutput)) == [
        "takes go",
        "call 1",
        "says I wait.",
        "writes execute",
        "answered tool_calls",
        "runs execute call_0_0",
        "output",
        "failed execute call_0_0",
        "ended interrupted: I wait.",
    ]
    with pytest.raises(ProcessLookupError):
        os.kill(int((play.folder / "pid").read_text()), 0)
    assert text_of(play.logged()[-1]).startswith("Interrupted")  # pyright: ignore[reportArgumentType]
    await goes_on(play)


async def test_of_calls_that_run_together_the_finished_ones_keep_their_results(stage: Make) -> None:
    ended: list[str] = []

    @tool(access="read")
    async def wait(name: str, seconds: float) -> str:
        """Wait."""
        if name == "b":
            asyncio.get_running_loop().call_later(0.1, play.agent.interrupt)
        try:
            await asyncio.sleep(seconds)
        finally:
            await asyncio.sleep(0.02)
            ended.append(name)
        return f"{name} is done"

    calls = [
        call("wait", name="quick", seconds=0),
        call("wait", name="a", seconds=30),
        call("wait", name="b", seconds=30),
    ]
    play = stage(script=script({"calls": [*calls, call("write_file", path="x", content="x")]}), tools=(wait,))
    await play.run()
    assert ended == ["quick", "a", "b"]
    results = [text_of(m).split(":")[0] for m in play.logged() if isinstance(m, ToolMessage)]
    assert results == ["quick is done", "Interrupted", "Interrupted", "Interrupted"]
    assert not (play.folder / "x").exists()
    await goes_on(play)


async def test_a_second_interrupt_does_not_tear_what_the_first_one_ends(stage: Make) -> None:
    @tool
    async def stubborn() -> str:
        """Stay."""
        try:
            await asyncio.sleep(30)
        finally:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)
        return ""

    play = stage(script=script({"calls": [call("stubborn")]}), tools=(stubborn,))
    for after in (0.05, 0.1, 0.11):
        asyncio.get_running_loop().call_later(after, play.agent.interrupt)
    assert (await play.run())[-1].startswith("ended interrupted")
    await asyncio.sleep(0.12)
    await goes_on(play)


async def test_a_question_that_nobody_answers_ends_with_the_run(stage: Make) -> None:
    play = stage(
        script=script({"calls": [call("execute", command="touch ran")]}),
        settings={"permissions": {"mode": "default"}},
        interactive=True,
    )
    lines = await play.run(on=at(play, ApprovalAsked))
    assert lines[-3:] == ["asks execute(touch ran)", "failed execute call_0_0", "ended interrupted: "]
    question = next(event for event in play.events if isinstance(event, ApprovalAsked))
    assert question.answer.cancelled()
    assert not (play.folder / "ran").exists()
    await goes_on(play)


async def test_during_the_wait_before_another_attempt(stage: Make) -> None:
    broken = {"text": "One two.", "error": {"kind": "rate_limit", "retry_after": 60, "after": 1}}
    play = stage(script=script(broken))
    lines = await play.run(on=at(play, AnswerWithdrawn))
    assert lines == ["takes go", "call 1", "says One ", "withdrawn 2", "ended interrupted: "]
    assert [message.role for message in play.logged()] == ["user"]
    await goes_on(play)


TALK = [{"text": f"Answer {number}: " + "words and more words " * 60} for number in range(6)]


async def test_during_a_compaction_nothing_has_changed(stage: Make) -> None:
    slow = {"text": "never", "delay": 30}
    play = stage(script={**script(*TALK), "summaries": [slow], **THEN})
    for number in range(len(TALK)):
        await play.run(f"question {number}")
    before = play.view
    events: list[Event] = []
    async with aclosing(play.agent.compact()) as compacting:
        async for event in compacting:
            events.append(event)
            if isinstance(event, CompactionStarted):
                await asyncio.sleep(0.05)
                play.agent.interrupt()
    assert not any(isinstance(event, CompactionDone) for event in events)
    play.check()
    assert play.view == before
    assert not any(isinstance(entry, Compacted) for entry in play.entries())
    await goes_on(play)


async def test_an_interrupted_compaction_can_be_made_again_and_archives_each_message_once(stage: Make) -> None:
    summary = "## SESSION INTENT\nWords.\n## SUMMARY\nQuestions were answered."
    slow = {"text": summary, "error": {"kind": "rate_limit", "retry_after": 60, "times": 1}}
    overflow = {"text": "Here.", "error": {"kind": "overflow", "times": 2}}
    play = stage(script={**script(*TALK, overflow), "summaries": [slow]})
    for number in range(len(TALK)):
        await play.run(f"question {number}")

    def soon(event: Event) -> None:
        if isinstance(event, CompactionStarted):
            asyncio.get_running_loop().call_later(0.05, play.agent.interrupt)

    assert (await play.run("the newest", on=soon))[-2:] == ["CompactionStarted", "ended interrupted: "]
    assert play.agent.archive is None
    assert "compacted by model for overflow" in await play.run("the newest still")
    sections = parse(play.agent.session.storage.read(play.agent.session.archive.name)).sections
    ids = [message.id for section in sections for message in section.messages]
    assert len(set(ids)) == len(ids)
    originals = {message.id: message for message in play.agent.session.messages()}
    assert all(originals[message.id] == message for section in sections for message in section.messages)
    assert {*ids} == {*originals} - {message.id for message in play.agent.session.view.tail}
    await goes_on(play)


async def test_an_interrupt_before_the_first_step_is_heard(stage: Make) -> None:
    play = stage(script=script({"text": "late", "delay": 30}))
    run = asyncio.ensure_future(play.run())
    await asyncio.sleep(0)
    play.agent.interrupt()
    async with asyncio.timeout(5):
        assert (await run)[-1] == "ended interrupted: "
    await goes_on(play)


async def test_an_interrupt_from_another_thread_is_heard(stage: Make) -> None:
    play = stage(script=script({"text": "late", "delay": 30}))

    def interrupt(event: Event) -> None:
        if isinstance(event, CallStarted):
            threading.Thread(target=play.agent.interrupt).start()

    async with asyncio.timeout(5):
        assert (await play.run(on=interrupt))[-1] == "ended interrupted: "


async def test_an_interrupt_of_nothing_is_nothing(stage: Make) -> None:
    play = stage(script=script({"text": "Hello."}))
    play.agent.interrupt()
    assert (await play.run())[-1] == "ended success: Hello."
    play.agent.interrupt()
    await goes_on(play)


RICH = (
    {
        "thinking": "Hm.",
        "text": "I work.",
        "calls": [
            call("read_file", path="a.txt"),
            call("ls"),
            call("write_file", path="b.txt", content="b"),
            call("execute", command="cat b.txt"),
        ],
    },
    {"text": "It is done."},
)


async def events_of(play: Stage) -> int:
    """How many events the run of `RICH` has."""
    await play.run()
    return len(play.events)


async def test_at_any_event(stage: Make, tmp_path: Path) -> None:
    whole = stage(script=script(*RICH), folder=tmp_path / "whole")
    (whole.folder / "a.txt").write_text("a")
    for number in range(1, await events_of(whole) + 1):
        play = stage(script=script(*RICH), folder=tmp_path / str(number))
        (play.folder / "a.txt").write_text("a")
        seen = count(1)
        lines = await play.run(on=lambda _, n=number, s=seen, p=play: p.agent.interrupt() if next(s) == n else None)
        assert lines[-1].startswith(("ended interrupted", "ended success"))
        assert (await play.run(NEXT))[-1] == "ended success: Fine."
        await play.close()


@pytest.mark.parametrize("steps", [*range(1, 30), 40, 60, 90, 130])
async def test_after_any_number_of_steps_of_the_event_loop(steps: int, stage: Make) -> None:
    play = stage(script=script(*RICH))
    (play.folder / "a.txt").write_text("a")
    run = asyncio.ensure_future(play.run())
    for _ in range(steps):
        await asyncio.sleep(0)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    play.check()
    await goes_on(play)


async def test_the_answer_and_its_usage_are_kept_when_the_interrupt_comes_after_its_end(stage: Make) -> None:
    """While the answer is being logged: what was paid for is neither lost nor forgotten."""
    step = {"text": "Paid for.", "usage": {"input": 100, "output": 10}}
    play = stage(script=script(step))
    lines = await play.run(on=at(play, TextArrived, 2))  # the last piece
    assert lines[-1] == "ended interrupted: Paid for."
    assert "answered end" in lines
    assert play.ended.usage.input == 100
    await goes_on(play)


async def test_who_stops_taking_events_ends_the_run(stage: Make) -> None:
    play = stage(script=script({"calls": [call("execute", command="echo $$ > pid; echo x; sleep 30")]}))
    async for event in play.agent.astream("go"):
        if isinstance(event, ToolOutput):
            break
    assert (await play.run(NEXT))[-1] == "ended success: Fine."
    with pytest.raises(ProcessLookupError):
        os.kill(int((play.folder / "pid").read_text()), 0)
    assert [entry.kind for entry in play.entries()].count("ended") == 2
    await goes_on(play)


async def test_a_stream_that_is_closed_late_does_not_touch_the_run_that_followed(stage: Make) -> None:
    play = stage(script=script({"text": "late", "delay": 30}))
    old = play.agent.astream("go")
    while not isinstance(await anext(old), CallStarted):
        pass
    events: list[Event] = []
    async for event in play.agent.astream(NEXT):
        events.append(event)
        if isinstance(event, CallStarted):
            await old.aclose()
    assert isinstance(events[-1], RunEnded)
    assert events[-1].text == "Fine."
    await goes_on(play)


async def test_closing_ends_the_run(stage: Make) -> None:
    play = stage(script=script({"calls": [call("execute", command="echo $$ > pid; echo x; sleep 30")]}))
    stream = play.agent.astream("go")
    async for event in stream:
        if isinstance(event, ToolOutput):
            break
    await play.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((play.folder / "pid").read_text()), 0)
    rest = [event async for event in stream]
    assert isinstance(rest[-1], RunEnded)
    assert rest[-1].outcome == "interrupted"
    await play.reopen()


async def test_closing_ends_what_commands_left_running(stage: Make) -> None:
    play = stage({"calls": [call("execute", command="sleep 30 & echo $! > pid")]}, {"text": "It runs."})
    assert (await play.run())[-1] == "ended success: It runs."
    pid = int((play.folder / "pid").read_text())
    os.kill(pid, 0)
    await play.close()
    for _ in range(100):
        if not alive(pid):
            break
        await asyncio.sleep(0.01)
    assert not alive(pid)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
