"""The hooks of middleware: their order, what each may do, and the tools that come with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.approvals.policy import Policy
from deepagent.agent.approvals.rules import parse_rules
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.events import Approval, ApprovalAsked, Event, Noticed
from deepagent.agent.middleware.approvals import Approvals
from deepagent.agent.middleware.base import Middleware, ModelHandler, RunState, RunStopped, ToolHandler
from deepagent.agent.model.types import Completed, Delta, ModelRequest, TextDelta, Withdrawn
from deepagent.agent.tool import Tool, ToolResult, tool
from deepagent.context.entries import UsageReported
from deepagent.context.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage, text_of
from stage import Stage

Make = Callable[..., "Stage"]
LOOK: dict[str, Any] = {"calls": [{"name": "ls", "arguments": {}}]}


class Diary(Middleware):
    """Writes down when its hooks are called."""

    def __init__(self, name: str, pages: list[str]) -> None:
        self._name = name
        self._pages = pages

    def _write(self, what: str) -> None:
        self._pages.append(f"{self._name} {what}")

    async def before_agent(self, run: RunState) -> None:
        self._write("before_agent")

    async def before_model(self, run: RunState) -> None:
        self._write(f"before_model {run.turns}")

    async def wrap_model(self, run: RunState, request: ModelRequest, call: ModelHandler) -> AsyncIterator[Delta]:
        self._write("into model")
        async for delta in call(request):
            yield delta
        self._write("out of model")

    async def after_model(self, run: RunState, answer: AssistantMessage) -> None:
        self._write(f"after_model {answer.stop}")

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        self._write(f"into {call.name}")
        result = await handle(call)
        self._write(f"out of {call.name}")
        return result


async def test_the_first_of_the_list_is_the_outermost(stage: Make) -> None:
    pages: list[str] = []
    play = stage(LOOK, {"text": "done"}, middleware=(Diary("A", pages), Diary("B", pages)))
    await play.run()
    assert pages == [
        "A before_agent",
        "B before_agent",
        "A before_model 0",
        "B before_model 0",
        "A into model",
        "B into model",
        "B out of model",
        "A out of model",
        "A after_model tool_calls",
        "B after_model tool_calls",
        "A into ls",
        "B into ls",
        "B out of ls",
        "A out of ls",
        "A before_model 1",
        "B before_model 1",
        "A into model",
        "B into model",
        "B out of model",
        "A out of model",
        "A after_model end",
        "B after_model end",
    ]


class AskTwice(Middleware):
    """Has each answer given twice and takes one of them."""

    def __init__(self, take: int) -> None:
        self._take = take

    async def wrap_model(self, run: RunState, request: ModelRequest, call: ModelHandler) -> AsyncIterator[Delta]:
        answers = [[delta async for delta in call(replace(request, position=n))][-1] for n in (0, 1)]
        yield answers[self._take]


@pytest.mark.parametrize(("take", "text"), [(0, "first"), (1, "second")])
async def test_a_middleware_may_ask_twice_and_both_answers_are_paid_for(take: int, text: str, stage: Make) -> None:
    steps = [{"text": t, "usage": {"input": 100 * n, "output": n}} for n, t in enumerate(("first", "second"), start=1)]
    play = stage(*steps, middleware=(AskTwice(take),), name="openai/gpt-4o-mini")
    assert (await play.run())[-1] == f"ended success: {text}"
    assert (play.ended.turns, play.ended.usage.input, play.ended.usage.output) == (1, 300, 3)
    logged = [entry for entry in play.entries() if isinstance(entry, UsageReported)]
    assert sorted(entry.usage.input for entry in logged) == [100, 200]
    assert logged[-1].usage.input == 100 * (take + 1)
    assert play.agent.gauge().cost == pytest.approx(play.ended.cost)
    assert [m.text for m in play.logged() if isinstance(m, AssistantMessage)] == [text]


async def test_an_answer_shown_and_withdrawn_by_a_middleware_is_not_kept(stage: Make) -> None:
    class TryAgain(Middleware):
        async def wrap_model(self, run: RunState, request: ModelRequest, call: ModelHandler) -> AsyncIterator[Delta]:
            async for delta in call(request):
                yield delta
            yield Withdrawn(reason="not good enough", attempt=2, wait=0)
            async for delta in call(replace(request, position=1)):
                yield delta

    play = stage({"text": "Bad."}, {"text": "Good."}, middleware=(TryAgain(),))
    assert await play.run() == [
        "takes go",
        "call 1",
        "says Bad.",
        "withdrawn 2",
        "says Good.",
        "answered end",
        "ended success: Good.",
    ]
    assert b"Bad." not in play.on_disk()


async def test_a_middleware_may_answer_in_the_models_place_and_change_what_it_is_asked(stage: Make) -> None:
    class Cache(Middleware):
        async def wrap_model(self, run: RunState, request: ModelRequest, call: ModelHandler) -> AsyncIterator[Delta]:
            if run.turns == 1:
                yield TextDelta(text="I know.")
                yield Completed(content=(Text(text="I know."),), stop="end", usage=None)
                return
            async for delta in call(replace(request, system="Be kind.")):
                yield delta

    play = stage(LOOK, LOOK, {"text": "done"}, middleware=(Cache(),))
    assert (await play.run())[-1] == "ended success: I know."
    assert play.requests == []


async def test_a_request_changed_by_a_middleware_is_what_the_model_gets(stage: Make) -> None:
    class Kind(Middleware):
        def wrap_model(self, run: RunState, request: ModelRequest, call: ModelHandler) -> AsyncIterator[Delta]:
            return call(replace(request, system="Be kind."))

    play = stage({"text": "done"}, middleware=(Kind(),))
    await play.run()
    assert play.requests[0].system == "Be kind."


async def test_a_middleware_may_replace_calls_and_results(stage: Make) -> None:
    class Elsewhere(Middleware):
        async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
            if call.name == "fly":
                assert tool is None
                return ToolResult(text="You flew.", summary="flew", log={"miles": 3})
            result = await handle(replace(call, arguments={"path": "inner"}))
            return replace(result, text=f"<{result.text}>")

    play = stage({"calls": [{"name": "fly"}, {"name": "ls"}]}, {"text": "done"}, middleware=(Elsewhere(),))
    (play.folder / "inner").mkdir()
    (play.folder / "inner" / "a.txt").write_text("a")
    await play.run()
    results = [m for m in play.logged() if isinstance(m, ToolMessage)]
    assert [text_of(m) for m in results] == ["You flew.", "<a.txt 1>"]
    assert (results[0].is_error, results[0].log["miles"], results[0].log["summary"]) == (False, 3, "flew")
    asked = [call for m in play.view if isinstance(m, AssistantMessage) for call in m.calls]
    assert asked[1].arguments == {}


@pytest.mark.parametrize("hook", ["before_agent", "before_model", "after_model", "wrap_tool", "wrap_model"])
async def test_a_middleware_may_end_the_run_from_any_hook(hook: str, stage: Make) -> None:
    async def stop(*_: object) -> Any:
        raise RunStopped("max_turns", "enough", kind="enough")

    middleware = Middleware()
    if hook == "wrap_model":

        async def stop_model(*_: object) -> AsyncIterator[Delta]:
            yield TextDelta(text="half")
            raise RunStopped("max_turns", "enough", kind="enough")

        stop = stop_model  # pyright: ignore[reportAssignmentType]
    setattr(middleware, hook, stop)
    calls = [
        {"name": "ls"},
        {"name": "ls", "arguments": {"path": "."}},
        {"name": "execute", "arguments": {"command": "touch x"}},
    ]
    play = stage({"calls": calls}, {"text": "done"}, middleware=(middleware,))
    assert (await play.run())[-1] == "ended max_turns: enough"
    assert not (play.folder / "x").exists()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    delattr(middleware, hook)
    assert (await play.run("again"))[-1] == "ended success: done"


async def test_a_middleware_that_fails_while_calls_run_together_leaves_none_of_them_behind(stage: Make) -> None:
    ended: list[str] = []

    @tool(access="read")
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("wait")
        return ""

    class Picky(Middleware):
        async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
            if call.name == "ls":
                await asyncio.sleep(0.05)
                raise RunStopped("error", "no", kind="picky")
            return await handle(call)

    play = stage({"calls": [{"name": "wait"}, {"name": "ls"}]}, {"text": "x"}, middleware=(Picky(),), tools=(wait,))
    assert (await play.run())[-1] == "ended error: picky"
    assert ended == ["wait"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [m.role for m in play.logged()] == ["user", "assistant", "tool", "tool"]


async def test_a_bug_in_a_middleware_is_raised_and_the_session_stays_usable(stage: Make) -> None:
    class Buggy(Middleware):
        async def after_model(self, run: RunState, answer: AssistantMessage) -> None:
            if answer.calls:
                raise ZeroDivisionError

    play = stage(LOOK, {"text": "done"}, middleware=(Buggy(),))
    with pytest.raises(ZeroDivisionError):
        await play.run()
    play.check()
    assert (await play.run("again"))[-1] == "ended success: done"


async def test_tools_that_come_with_a_middleware_are_offered_and_run(stage: Make) -> None:
    @tool(name="miles")
    async def count_miles(start: int) -> str:
        """Count miles."""
        return f"{start + 1} miles"

    class Travel(Middleware):
        tools = (count_miles,)

    seen = {"where": "last", "contains": "5 miles"}
    play = stage(
        {"calls": [{"name": "miles", "arguments": {"start": 4}}]},
        {"text": "done", "expect": [seen]},
        middleware=(Travel(),),
    )
    assert (await play.run())[-1] == "ended success: done"
    assert "miles" in [schema.name for schema in play.requests[0].tools]


async def test_a_middleware_may_change_the_session_before_a_request(stage: Make) -> None:
    class Remind(Middleware):
        async def before_model(self, run: RunState) -> None:
            if run.turns == 1:
                note = UserMessage(id="feedfacecafe", time="", content=(Text(text="Be brief."),), synthetic=True)
                run.session.say(note)
                run.emit(Noticed(text="reminded"))

    play = stage(LOOK, {"text": "done", "expect": [{"where": "last", "contains": "Be brief."}]}, middleware=(Remind(),))
    lines = await play.run()
    assert "notice reminded" in lines
    assert lines[-1] == "ended success: done"


async def test_questions_of_calls_that_run_together_wait_for_each_other(stage: Make, tmp_path: Path) -> None:
    @tool(access="read")
    async def peek(name: str) -> str:
        """Look."""
        return name

    backend = LocalBackend(tmp_path, tmp_path, data=tmp_path / "data", environ={})
    policy = Policy(ask=parse_rules(["peek"]))
    calls = [{"name": "peek", "arguments": {"name": name}} for name in "ab"]
    play = stage(
        {"calls": calls}, {"text": "done"}, tools=(peek,), middleware=(Approvals(policy, backend, interactive=True),)
    )
    asked: list[ApprovalAsked] = []

    def answer(event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            assert all(earlier.answer.done() for earlier in asked)
            asked.append(event)
            yes = Approval(allowed=event.call.arguments["name"] == "b")
            asyncio.get_running_loop().call_later(0.02, event.answer.set_result, yes)

    await play.run(on=answer)
    assert [event.call.id for event in asked] == ["call_0_0", "call_0_1"]
    assert [text_of(m)[:11] for m in play.logged() if isinstance(m, ToolMessage)] == ["Not allowed", "b"]
