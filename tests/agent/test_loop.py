"""The loop by whole event lists: what is asked, said and run, in which order, and what the log holds of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from deepagent.agent.runtime import ToolRuntime
from deepagent.agent.tool import tool
from deepagent.context.entries import TodosWritten
from deepagent.context.messages import AssistantMessage, ToolMessage, text_of
from hard_inputs import hard_input
from stage import Stage

Make = Callable[..., "Stage"]


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted call."""
    return {"name": name, "arguments": arguments}


async def test_a_plain_turn(stage: Make) -> None:
    play = stage({"thinking": "A greeting.", "text": "Hello there."})
    assert await play.run("hi") == [
        "takes hi",
        "call 1",
        "thinks A greeting.",
        "says Hello there.",
        "answered end",
        "ended success: Hello there.",
    ]
    assert [entry.kind for entry in play.entries()][-4:] == ["message", "usage", "message", "ended"]
    assert (play.ended.turns, play.ended.compactions, play.ended.error) == (1, 0, None)


async def test_a_tool_runs_between_two_calls_and_its_result_is_in_the_second(stage: Make) -> None:
    play = stage(
        {"text": "I look.", "calls": [call("read_file", path="a.txt")]},
        {"text": "It says one.", "expect": [{"where": "last", "contains": "1→one"}]},
    )
    (play.folder / "a.txt").write_text("one\n")
    assert await play.run() == [
        "takes go",
        "call 1",
        "says I look.",
        "writes read_file",
        "answered tool_calls",
        "runs read_file call_0_0",
        "done read_file call_0_0",
        "call 2",
        "says It says one.",
        "answered end",
        "ended success: It says one.",
    ]
    assert [message.role for message in play.logged()] == ["user", "assistant", "tool", "assistant"]


async def test_the_answer_is_on_the_disk_before_its_tools_run(stage: Make) -> None:
    seen: list[str] = []

    @tool
    async def look() -> str:
        """Look."""
        seen.extend(message.role for message in play.logged())
        return "looked"

    play = stage({"calls": [call("look")]}, {"text": "done"}, tools=(look,))
    await play.run()
    assert seen == ["user", "assistant"]


def meeting(expected: int) -> tuple[Any, list[str]]:
    """A tool that reads and ends only when `expected` of its calls run at once, and the order of what happens."""
    order: list[str] = []
    together = asyncio.Barrier(expected)

    @tool(access="read")
    async def meet(name: str) -> str:
        """Meet."""
        order.append(f"in {name}")
        async with asyncio.timeout(5):
            await together.wait()
        order.append(f"out {name}")
        return name

    return meet, order


async def test_calls_that_read_run_together_and_their_results_keep_the_order_of_the_calls(stage: Make) -> None:
    meet, order = meeting(3)
    play = stage({"calls": [call("meet", name=name) for name in "abc"]}, {"text": "done"}, tools=(meet,))
    assert "ended success: done" in await play.run()
    assert sorted(order[:3]) == ["in a", "in b", "in c"]
    assert [text_of(m) for m in play.logged() if isinstance(m, ToolMessage)] == ["a", "b", "c"]


async def test_calls_that_change_something_run_alone_and_in_order(stage: Make) -> None:
    play = stage(
        {
            "calls": [
                call("write_file", path="a.txt", content="one\n"),
                call("read_file", path="a.txt"),
                call("edit_file", path="a.txt", old_string="one", new_string="two"),
                call("execute", command="sleep 0.1; cat a.txt"),
                call("read_file", path="a.txt"),
            ]
        },
        {"text": "done"},
    )
    lines = await play.run()
    assert [line.split()[0] for line in lines if "call_0_" in line] == ["runs"] * 5 + ["done"] * 5
    results = [text_of(m) for m in play.logged() if isinstance(m, ToolMessage)]
    assert "1→one" in results[1]
    assert results[3].startswith("two")
    assert "1→two" in results[4]


async def test_several_plans_in_one_answer_leave_the_last_one(stage: Make) -> None:
    def todos(text: str) -> dict[str, object]:
        return call("write_todos", todos=[{"text": text, "status": "pending"}])

    files = [call("write_file", path=f"{name}.txt", content=name) for name in "ab"]
    play = stage({"calls": [todos("x"), files[0], todos("y"), files[1], todos("z")]}, {"text": "done"})
    assert (await play.run())[-1] == "ended success: done"
    assert [entry.items[0].text for entry in play.entries() if isinstance(entry, TodosWritten)] == ["x", "y", "z"]
    assert [todo.text for todo in play.agent.session.view.todos] == ["z"]
    assert [(play.folder / f"{name}.txt").read_text() for name in "ab"] == ["a", "b"]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such tool": ({"name": "fly"}, "There is no tool 'fly'. There are: ls, read_file"),
    "a list": ({"name": "ls", "arguments": "[]"}, "must be one JSON object, not: []"),
    "a string": ({"name": "ls", "arguments": '"ls"'}, "must be one JSON object"),
    "a number": ({"name": "ls", "arguments": "3"}, "must be one JSON object"),
    "null": ({"name": "read_file", "arguments": "null"}, "must be one JSON object"),
    "broken": ({"name": "ls", "arguments": '{"path": '}, "no valid JSON"),
    "missing": ({"name": "read_file", "arguments": {}}, "path: Field required"),
    "wrong type": ({"name": "read_file", "arguments": {"path": ["a"]}}, "path: Input should be a valid string"),
    "unknown argument": ({"name": "ls", "arguments": {"folder": "."}}, "folder: Extra inputs are not permitted"),
}


@hard_input(
    "Tool calls",
    "an unknown tool, a missing, unknown or wrong argument",
    "the answer names the field and what is expected; the run goes on",
)
@pytest.mark.parametrize("case", BAD)
async def test_a_call_that_cannot_run_is_answered_with_what_is_wrong(case: str, stage: Make) -> None:
    bad, words = BAD[case]
    play = stage({"calls": [bad]}, {"text": "I see.", "expect": [{"where": "last", "contains": words}]})
    lines = await play.run()
    assert lines[-1] == "ended success: I see."
    assert f"failed {bad['name']} call_0_0" in lines
    assert all(isinstance(one.arguments, dict) for m in play.view if isinstance(m, AssistantMessage) for one in m.calls)


async def test_wrong_arguments_are_answered_with_the_fields_that_are_expected(stage: Make) -> None:
    play = stage({"calls": [{"name": "grep", "arguments": {"regex": "x"}}]}, {"text": "I see."})
    await play.run()
    answer = text_of(play.logged()[2])  # pyright: ignore[reportArgumentType] - a result, as the log's order has it
    assert "pattern: Field required" in answer
    assert '"pattern":{"' in answer


async def test_a_tool_that_fails_is_an_answer_whatever_it_raises(stage: Make) -> None:
    @tool
    async def fail(kind: str) -> str:
        """Fail."""
        match kind:
            case "error":
                raise LookupError("nothing there")
            case "exit":
                raise SystemExit(3)
            case "cancelled":
                raise asyncio.CancelledError
            case _:
                return 7  # pyright: ignore[reportReturnType] - what a careless tool does

    kinds = ("error", "exit", "cancelled", "number")
    play = stage(*({"calls": [call("fail", kind=kind)]} for kind in kinds), {"text": "done"}, tools=(fail,))
    assert (await play.run())[-1] == "ended success: done"
    results = [m for m in play.logged() if isinstance(m, ToolMessage)]
    assert [result.is_error for result in results] == [True] * 4
    assert "LookupError: nothing there" in text_of(results[0])
    assert "SystemExit" in text_of(results[1])
    assert "CancelledError" in text_of(results[2])
    assert "int" in text_of(results[3])


async def test_a_tool_of_the_agent_can_be_replaced_by_one_of_the_same_name(stage: Make) -> None:
    @tool(name="execute", access="read")
    async def pretend(command: str, runtime: ToolRuntime[Any]) -> str:
        """Pretend."""
        return f"{command} in {runtime.call_id}"

    play = stage(
        {"calls": [call("execute", command="rm -rf x")]},
        {"text": "done", "expect": [{"where": "last", "contains": "rm -rf x in call_0_0"}]},
        tools=(pretend,),
    )
    assert (await play.run())[-1] == "ended success: done"


async def test_a_second_prompt_goes_on_with_the_conversation(stage: Make) -> None:
    play = stage({"text": "one"}, {"text": "two", "expect": [{"where": "messages", "contains": ["first", "one"]}]})
    assert (await play.run("first"))[-1] == "ended success: one"
    assert (await play.run("second"))[-1] == "ended success: two"
    assert play.ended.turns == 1
    before, after = play.requests
    assert after.messages[: len(before.messages)] == before.messages
    assert after.system == before.system
    await play.reopen()
    assert [message.role for message in play.view] == ["user", "assistant"] * 2


async def test_an_empty_prompt_sends_nothing(stage: Make) -> None:
    play = stage({"text": "What?"})
    assert (await play.run("  \n"))[-1].startswith("ended error")
    assert play.requests == []
    assert play.logged() == []
    assert (await play.run("hi"))[-1] == "ended success: What?"
