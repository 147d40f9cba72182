"""Work that is handed on: what comes back, what it costs, what it may do, and how it ends."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deepagent.agent.config import LimitSettings
from deepagent.agent.events import Approval, ApprovalAsked, Denied, Event, RunEnded, ToolFinished, ToolOutput
from deepagent.agent.subagents.definition import PREAMBLE, Subagent
from deepagent.context.entries import FilesChanged, UsageReported
from deepagent.context.messages import ToolMessage, text_of
from stage import Stage

Make = Callable[..., Stage]


def call(name: str, /, **arguments: object) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def task(prompt: str, **more: object) -> dict[str, Any]:
    return call("task", prompt=prompt, **more)


def branch(contains: str, *steps: dict[str, Any]) -> dict[str, Any]:
    """Steps of the sub-agent whose prompt holds a text."""
    return {"when": [{"where": "first", "contains": contains}], "steps": list(steps)}


def results(play: Stage, tool: str = "task") -> list[ToolMessage]:
    return [m for m in play.logged() if isinstance(m, ToolMessage) and m.tool == tool]


async def test_the_answer_comes_back_and_nothing_else(stage: Make) -> None:
    noise = "noise " * 500
    look = [{"calls": [call("read_file", path="a.txt")]}, {"text": "In line 1."}]
    play = stage(
        {"calls": [task("Find the needle")]},
        {"text": "Found."},
        script={"usage": "estimate", "branches": [branch("Find the needle", *look)]},
    )
    (play.folder / "a.txt").write_text(noise)
    assert (await play.run())[-1] == "ended success: Found."
    (result,) = results(play)
    text = text_of(result)
    assert text.startswith("In line 1.\n\n[general-purpose: success after 2 turns, ")
    assert "noise" not in str(play.view)
    child = str(result.log["task"])
    assert child.startswith(f"{play.agent.session.id}.")
    assert (play.folder / ".deepagents" / "sessions" / f"{child}.jsonl").read_text().count(noise) >= 1
    assert f".deepagents/sessions/{child}.jsonl" in text
    first, second = (request for request in play.requests if "Find the needle" in str(request.messages[0]))
    assert PREAMBLE in first.system
    assert [schema.name for schema in first.tools].count("task") == 0
    assert "noise" in str(second.messages)
    lines = b"".join(event.data for event in play.events if isinstance(event, ToolOutput)).decode()
    assert lines.startswith("● read_file a.txt  ")


async def test_its_cost_joins_the_totals(stage: Make) -> None:
    play = stage(
        {"calls": [task("count")], "usage": {"input": 100, "output": 10}},
        {"text": "Done.", "usage": {"input": 200, "output": 20}},
        script={"branches": [branch("count", {"text": "Two.", "usage": {"input": 90_000, "output": 7}})]},
    )
    await play.run()
    assert (play.ended.usage.input, play.ended.usage.output) == (90_300, 37)
    (report,) = [e for e in play.entries() if isinstance(e, UsageReported) and e.purpose == "task"]
    assert (report.usage.input, report.usage.output) == (90_000, 7)
    assert play.agent.gauge().used < 10_000  # what it was sent is no part of this window


async def test_several_run_at_once_and_keep_their_order(stage: Make) -> None:
    wait = call("execute", command="touch $NAME; until [ -e a ] && [ -e b ] && [ -e c ]; do sleep 0.01; done")
    branches = [
        branch(
            f"part {name}",
            {"calls": [{**wait, "arguments": {"command": f"NAME={name}; {wait['arguments']['command']}"}}]},
            {"text": f"{name} is done."},
        )
        for name in "abc"
    ]
    play = stage({"calls": [task(f"part {name}") for name in "abc"]}, {"text": "All."}, script={"branches": branches})
    assert (await play.run())[-1] == "ended success: All."
    assert [text_of(result)[:10] for result in results(play)] == ["a is done.", "b is done.", "c is done."]


async def test_no_more_than_allowed_run_at_once(stage: Make) -> None:
    command = "ls running 2>/dev/null | wc -l; mkdir -p running; touch running/$$; sleep 0.2; rm running/$$"
    branches = [branch("part", {"calls": [call("execute", command=command)]}, {"text": "Done."})]
    play = stage(
        {"calls": [task(f"part {number}") for number in range(4)]},
        {"text": "All."},
        script={"branches": branches},
        settings={"subagents": {"at_once": 1}},
    )
    await play.run()
    logs = [(play.folder / ".deepagents" / "sessions" / f"{r.log['task']}.jsonl").read_text() for r in results(play)]
    assert len(logs) == 4
    assert all("0\\n[exit code 0" in log for log in logs)


async def test_an_end_without_an_answer_is_said(stage: Make) -> None:
    branches = [
        branch("fails", {"error": {"kind": "bad_request", "message": "no such thing"}}),
        branch("goes on", {"calls": [call("ls", path=".")], "repeat": 9}),
    ]
    play = stage(
        {"calls": [task("it fails"), task("it goes on", agent="short"), task("x", agent="nobody"), task(" ")]},
        {"text": "Seen."},
        script={"branches": branches},
        subagents=(Subagent(name="short", description="stops soon", limits=LimitSettings(max_turns=2)),),
    )
    assert (await play.run())[-1] == "ended success: Seen."
    failed, stopped, unknown, empty = results(play)
    assert text_of(failed).startswith("(It gave no answer.)\n\n[general-purpose: error (")
    assert "no such thing" in text_of(failed)
    assert "[short: max_turns (the limit of 2 model calls is reached) after 2 turns" in text_of(stopped)
    assert text_of(unknown) == "There is no sub-agent 'nobody'. There are: general-purpose, short."
    assert text_of(empty) == "The prompt is empty."
    assert [failed.is_error, stopped.is_error, unknown.is_error, empty.is_error] == [True, False, True, True]


async def test_what_is_left_of_the_parents_limit_is_the_tasks(stage: Make) -> None:
    big = {"calls": [call("ls", path=".")], "usage": {"input": 400, "output": 0}, "repeat": 9}
    play = stage(
        {"calls": [task("goes on")], "usage": {"input": 100, "output": 0}},
        {"text": "never"},
        script={"branches": [branch("goes on", big)]},
        settings={"limits": {"max_tokens": 1_000}},
    )
    assert (await play.run())[-1].startswith("ended max_tokens")
    (result,) = results(play)
    assert "max_tokens" in text_of(result)
    assert play.ended.usage.input == 100 + 3 * 400


async def test_its_questions_reach_the_person_with_their_origin_one_at_a_time(stage: Make) -> None:
    branches = [
        branch(f"make {name}", {"calls": [call("write_file", path=name, content="x")]}, {"text": f"{name}."})
        for name in "ab"
    ]
    play = stage(
        {"calls": [task("make a"), task("make b")]},
        {"text": "All."},
        script={"branches": branches},
        settings={"permissions": {"mode": "default"}},
        interactive=True,
    )
    waiting: list[ApprovalAsked] = []

    def answer(event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            assert all(one.answer.done() for one in waiting)
            waiting.append(event)
            allowed = event.call.arguments["path"] == "a"
            asyncio.get_running_loop().call_soon(event.answer.set_result, Approval(allowed=allowed, reason="not b"))

    await play.run(on=answer)
    assert sorted(str(event.call.arguments["path"]) for event in waiting) == ["a", "b"]
    assert {event.origin for event in waiting} == {"general-purpose"}
    tasks = {result.call_id for result in results(play)}
    assert {event.call.id.partition("/")[0] for event in waiting} == tasks
    told = [event for event in play.events if isinstance(event, ToolFinished | Denied) and "/" in event.call.id]
    assert {event.call.id for event in told} == {event.call.id for event in waiting}
    assert (play.folder / "a").exists()
    assert not (play.folder / "b").exists()


async def test_always_holds_for_the_others_too(stage: Make) -> None:
    branches = [branch("make", {"calls": [call("write_file", path="a", content="x")]}, {"text": "Made."})]
    play = stage(
        {"calls": [task("make it")]},
        {"calls": [task("make it again")]},
        {"text": "All."},
        script={"branches": branches},
        settings={"permissions": {"mode": "default"}},
        interactive=True,
    )
    asked: list[ApprovalAsked] = []

    def answer(event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            asked.append(event)
            for rule in event.rules:
                play.agent.allow(rule)
            event.answer.set_result(Approval(allowed=True))

    await play.run(on=answer)
    assert len(asked) == 1


async def test_what_it_changes_can_be_undone(stage: Make) -> None:
    branches = [branch("make", {"calls": [call("execute", command="echo x > made")]}, {"text": "Made."})]
    play = stage({"calls": [task("make it")]}, {"text": "All."}, script={"branches": branches})
    await play.run()
    (changed,) = [entry for entry in play.entries() if isinstance(entry, FilesChanged)]
    assert changed.files == 1
    await asyncio.to_thread(play.agent.files.undo)
    assert not (play.folder / "made").exists()


async def test_the_end_of_the_run_ends_it_with_all_that_it_started(stage: Make, tmp_path: Path) -> None:
    steps = {"calls": [call("execute", command=f"echo $$ > {tmp_path}/pid; sleep 300 | cat")]}
    play = stage({"calls": [task("wait")]}, {"text": "never"}, script={"branches": [branch("wait", steps)]})
    running = asyncio.ensure_future(play.run())
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text().strip()):  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    began = time.monotonic()
    play.agent.interrupt()
    assert (await running)[-1].startswith("ended interrupted")
    assert time.monotonic() - began < 3
    assert pid.read_text().strip() not in os.listdir("/proc")  # noqa: PTH208
    (result,) = results(play)
    assert result.is_error
    (log,) = (play.folder / ".deepagents" / "sessions").glob(f"{play.agent.session.id}.*.jsonl")
    assert '"reason":"interrupted"' in log.read_text().replace('": "', '":"')


async def test_two_that_change_one_file_do_not_overwrite_each_other(stage: Make) -> None:
    wait = call("execute", command="touch $NAME; until [ -e a ] && [ -e b ]; do sleep 0.01; done")

    def steps(name: str, line: str) -> list[dict[str, Any]]:
        command = f"NAME={name}; {wait['arguments']['command']}"
        return [
            {"calls": [call("read_file", path="shared.txt")]},
            {"calls": [call("execute", command=command)]},
            {"calls": [call("write_file", path="shared.txt", content=f"{line}\n")]},
            {"text": "Tried."},
        ]

    branches = [branch(f"as {name}", *steps(name, f"from {name}")) for name in "ab"]
    play = stage({"calls": [task("as a"), task("as b")]}, {"text": "All."}, script={"branches": branches})
    (play.folder / "shared.txt").write_text("old\n")
    await play.run()
    logs = [(play.folder / ".deepagents" / "sessions" / f"{r.log['task']}.jsonl").read_text() for r in results(play)]
    assert sum("has changed" in log or "changed since" in log for log in logs) == 1


async def test_a_small_window_is_not_told_of_it(stage: Make) -> None:
    play = stage({"text": "Hello."}, settings={"context": {"window": 16_000}})
    await play.run()
    assert "task" not in [schema.name for schema in play.requests[0].tools]


async def test_it_can_be_switched_off(stage: Make) -> None:
    play = stage({"calls": [task("x")]}, {"text": "No."}, settings={"subagents": {"enabled": False}})
    await play.run()
    assert "There is no tool 'task'" in text_of(results(play)[0])


async def test_events_end_with_the_parents(stage: Make) -> None:
    play = stage({"calls": [task("x")]}, {"text": "Done."}, script={"branches": [branch("x", {"text": "Yes."})]})
    await play.run()
    assert sum(isinstance(event, RunEnded) for event in play.events) == 1
