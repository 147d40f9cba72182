"""Limits, masking and the model's own compaction, as they meet in the loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.events import CompactionDone, Event
from deepagent.agent.tool import tool
from deepagent.context.entries import Compacted, TodosWritten, UsageReported
from deepagent.context.messages import AssistantMessage, ToolMessage, text_of
from stage import Stage

Make = Callable[..., "Stage"]
PRICED = "openai/gpt-4o-mini"
LOOK: dict[str, Any] = {"calls": [{"name": "ls", "arguments": {}}], "usage": {"input": 1_000, "output": 100}}


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted call."""
    return {"name": name, "arguments": arguments}


# Limits


async def test_the_limit_of_model_calls_ends_the_run_with_the_last_words(stage: Make) -> None:
    play = stage({"text": "Looking.", **LOOK, "repeat": 9}, settings={"limits": {"max_turns": 2}})
    assert (await play.run())[-1] == "ended max_turns: stopped"
    assert (play.ended.turns, play.ended.text) == (2, "Looking.")
    assert (play.ended.error or {})["message"] == "the limit of 2 model calls is reached"
    assert isinstance(play.logged()[-1], ToolMessage)
    assert (await play.run("more"))[-1] == "ended max_turns: stopped"
    assert play.ended.turns == 2


async def test_an_answer_at_the_limit_is_a_success(stage: Make) -> None:
    play = stage(LOOK, {"text": "Here."}, settings={"limits": {"max_turns": 2}})
    assert (await play.run())[-1] == "ended success: Here."


async def test_the_limit_of_tokens_ends_the_run_before_the_call_that_would_pass_it(stage: Make) -> None:
    play = stage({**LOOK, "repeat": 4}, {"text": "x"}, settings={"limits": {"max_tokens": 2_200}})
    assert (await play.run())[-1] == "ended max_tokens: stopped"
    assert (play.ended.turns, play.ended.usage.input, play.ended.usage.output) == (2, 2_000, 200)


async def test_the_limit_of_money_ends_the_run(stage: Make) -> None:
    dear = {**LOOK, "usage": {"input": 100_000, "output": 0}, "repeat": 4}
    play = stage(dear, name=PRICED, settings={"limits": {"max_cost": 0.02}})
    assert (await play.run())[-1] == "ended max_cost: stopped"
    assert play.ended.turns == 2
    assert play.ended.cost == pytest.approx(0.03)
    assert play.agent.gauge().cost == play.ended.cost


async def test_limits_begin_anew_with_each_prompt_but_the_session_counts_on(stage: Make) -> None:
    said = [{"text": text, "usage": {"input": 500, "output": 1}} for text in "ab"]
    play = stage(*said, name=PRICED)
    await play.run()
    first = play.ended.cost or 0
    await play.run()
    assert play.agent.gauge().cost == pytest.approx(first + (play.ended.cost or 0))
    await play.reopen()
    assert play.agent.gauge().cost == pytest.approx(first + (play.ended.cost or 0))


async def test_a_call_that_reports_nothing_makes_the_cost_unknown_everywhere(stage: Make) -> None:
    play = stage(LOOK, {"text": "x"}, {"text": "y", "usage": {"input": 500, "output": 1}}, name=PRICED)
    await play.run()
    assert (play.ended.cost, play.agent.gauge().cost) == (None, None)
    assert play.ended.usage.input == 1_000
    await play.run()
    assert play.ended.cost is not None
    assert play.agent.gauge().cost is None


async def test_tokens_and_money_of_summaries_and_repeated_attempts_are_counted_once(stage: Make) -> None:
    talk = {"text": "words and more words " * 60, "usage": {"input": 1_000, "output": 10}, "repeat": 6}
    overflow = {"text": "x", "usage": {"input": 700, "output": 7}, "error": {"kind": "overflow", "times": 1}}
    summary = {"text": "What was said about words, in short.", "usage": {"input": 300, "output": 30}}
    play = stage(script={"steps": [talk, overflow], "summaries": [summary]}, name=PRICED)
    for _ in range(6):
        await play.run()
    await play.run()
    assert (play.ended.usage.input, play.ended.usage.output) == (1_000, 37)
    logged = [entry for entry in play.entries() if isinstance(entry, UsageReported)]
    assert sum(entry.usage.input for entry in logged) == 7_000
    assert play.agent.gauge().cost == pytest.approx(sum(entry.cost or 0 for entry in logged))


async def test_another_model_for_summaries_has_its_own_price(stage: Make, tmp_path: Path) -> None:
    (tmp_path / "summaries.yaml").write_text(
        "summaries: [{text: What was said about words., usage: {input: 9, output: 9}}]"
    )
    settings = {"summary_model": f"scripted:{tmp_path / 'summaries.yaml'}"}
    talk = {"text": "words and more words " * 60, "usage": {"input": 1_000, "output": 10}, "repeat": 6}
    overflow = {"text": "x", "usage": {"input": 700, "output": 7}, "error": {"kind": "overflow", "times": 1}}
    play = stage(talk, overflow, name=PRICED, settings=settings)
    for _ in range(6):
        await play.run()
    assert play.agent.gauge().cost is not None
    await play.run()
    assert play.ended.cost is None  # what a scripted model costs is not known
    assert [request.purpose for request in play.requests] == ["turn"] * 8
    summaries = [entry for entry in play.entries() if isinstance(entry, UsageReported) and entry.purpose == "summary"]
    assert [(entry.model.partition(":")[0], entry.usage.input) for entry in summaries] == [("scripted", 9)]


async def test_the_time_limit_ends_a_slow_answer(stage: Make) -> None:
    play = stage({"text": "One two three four five six.", "pace": 0.15}, settings={"limits": {"timeout": 0.4}})
    lines = await play.run()
    assert lines[-1] == "ended timeout: timeout"
    assert play.ended.error == {"kind": "timeout", "message": "the time limit of 0.4 s is reached"}
    assert play.ended.text.startswith("One ")
    assert (await play.run("again"))[-1].startswith("ended success")


async def test_the_time_limit_ends_a_running_tool(stage: Make) -> None:
    slow = {"calls": [call("execute", command="sleep 30")]}
    play = stage(slow, {"text": "Fine."}, settings={"permissions": {"mode": "yolo"}, "limits": {"timeout": 0.4}})
    assert (await play.run())[-2:] == ["failed execute call_0_0", "ended timeout: timeout"]
    assert (await play.run("again"))[-1] == "ended success: Fine."


async def test_a_time_limit_within_a_tool_is_its_own_affair(stage: Make) -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        async with asyncio.timeout(0.05):
            await asyncio.sleep(30)
        return ""

    play = stage({"calls": [call("wait")]}, {"text": "I see."}, tools=(wait,))
    assert (await play.run())[-1] == "ended success: I see."
    assert ["TimeoutError" in text_of(m) for m in play.logged() if isinstance(m, ToolMessage)] == [True]


# Masking

KEY = "sk-test-1234567890abcdef"
MASKED = "[secret OPENAI_API_KEY]"
KEYS = {"OPENAI_API_KEY": KEY}


def sent(play: Stage) -> str:
    """All that the model was ever asked."""
    return "".join(f"{request.system}{request.messages}" for request in play.requests)


async def test_a_key_in_a_result_reaches_neither_model_nor_disk(stage: Make) -> None:
    play = stage(
        {"calls": [call("execute", command="cat .env"), call("read_file", path=".env")]}, {"text": "x"}, environ=KEYS
    )
    (play.folder / ".env").write_text(f"KEY={KEY}\n")
    await play.run()
    assert [MASKED in text_of(m) for m in play.logged() if isinstance(m, ToolMessage)] == [True, True]
    assert KEY not in sent(play)
    assert KEY.encode() not in play.on_disk()


async def test_a_key_in_what_people_and_models_write_is_masked_and_run_unmasked(stage: Make) -> None:
    todos = [{"text": f"use {KEY}", "status": "pending"}]
    play = stage(
        {
            "thinking": f"{KEY}?",
            "text": f"I use {KEY}.",
            "calls": [call("execute", command=f"echo {KEY} > out"), call("write_todos", todos=todos)],
        },
        {"text": "x", "calls": [{"name": "ls", "arguments": f"{{{KEY}"}]},
        {"text": "done"},
        environ=KEYS,
    )
    await play.run(f"My key is {KEY}")
    assert (play.folder / "out").read_text() == f"{KEY}\n"
    assert KEY not in sent(play)
    assert KEY.encode() not in play.on_disk()
    answer = next(m for m in play.logged() if isinstance(m, AssistantMessage))
    assert answer.text == f"I use {MASKED}."
    assert MASKED in json.dumps(dict(answer.calls[0].arguments))
    assert [entry.items[0].text for entry in play.entries() if isinstance(entry, TodosWritten)] == [f"use {MASKED}"]


async def test_a_key_in_memory_or_in_an_answer_that_broke_off_is_masked(stage: Make) -> None:
    play = stage({"text": f"It is {KEY} and more words follow that one.", "pace": 0.01}, environ=KEYS)
    (play.folder / "AGENTS.md").write_text(f"The key is {KEY}.\n")

    def stop(event: Event) -> None:
        if "words" in str(event):
            play.agent.interrupt()

    await play.run(on=stop)
    broken_off = play.logged()[-1]
    assert isinstance(broken_off, AssistantMessage)
    assert (broken_off.stop, MASKED in broken_off.text) == ("interrupted", True)
    assert f"The key is {MASKED}." in play.requests[0].system
    assert KEY not in sent(play)
    assert KEY.encode() not in play.on_disk()


async def test_a_key_is_masked_in_offloaded_texts_and_in_the_archive(stage: Make) -> None:
    play = stage(
        {"calls": [call("execute", command="cat long.txt")]},
        *({"text": "words and more words " * 60} for _ in range(5)),
        {"text": "x", "error": {"kind": "overflow", "times": 1}},
        script={"summaries": [f"The user has the key {KEY}, which opens the door."]},
        environ=KEYS,
        settings={"permissions": {"mode": "yolo"}, "context": {"window": 32_000}},
    )
    (play.folder / "long.txt").write_text(f"a line with {KEY} in it\n" * 1_500)
    for number in range(6):
        await play.run(f"{number} {KEY}")
    assert any(isinstance(entry, Compacted) for entry in play.entries())
    assert play.on_disk().count(MASKED.encode()) > 1_500
    assert KEY not in sent(play)
    assert KEY.encode() not in play.on_disk()


# The model's own compaction


async def test_the_model_may_compact_only_where_it_is_worth_it(stage: Make) -> None:
    refused = {"where": "last", "contains": ["Not compacted", "it is worth it from"]}
    play = stage({"calls": [call("compact_conversation")]}, {"text": "Then not.", "expect": [refused]})
    assert (await play.run())[-1] == "ended success: Then not."
    assert not any(isinstance(entry, Compacted) for entry in play.entries())


async def test_past_the_gate_the_models_compaction_is_done_and_its_own_call_stays(stage: Make) -> None:
    talk = {"text": "words and more words " * 100, "repeat": 10}
    said = {
        "where": "last",
        "contains": ["Compacted: ", "They stand word for word in .deepagents/conversation_history/"],
    }
    play = stage(
        talk,
        {"text": "I tidy up.", "calls": [call("compact_conversation", focus="the words"), call("ls")]},
        {"text": "Go on.", "expect": [said | {"where": "messages"}]},
        settings={"permissions": {"mode": "yolo"}, "context": {"window": 12_000, "trim_at": 0.1}},
    )
    for number in range(10):
        await play.run(f"question {number}")
    lines = await play.run("tidy up")
    assert lines[lines.index("writes compact_conversation, ls") + 2 :] == [
        "runs compact_conversation call_10_0",
        "CompactionStarted",
        "compacted by model for model",
        "runs ls call_10_1",
        "done compact_conversation call_10_0",
        "done ls call_10_1",
        "call 2",
        "says Go on.",
        "answered end",
        "ended success: Go on.",
    ]
    summary = next(request for request in play.requests if request.purpose == "summary")
    assert "the words" in text_of(summary.messages[0])  # pyright: ignore[reportArgumentType]
    assert len(play.requests[-1].messages) < len(play.requests[-3].messages)


async def test_a_compaction_by_hand_needs_no_gate(stage: Make) -> None:
    play = stage({"text": "words and more words " * 60, "repeat": 5})
    for number in range(4):
        await play.run(f"question {number}")
    kinds = [type(event).__name__ async for event in play.agent.compact("the words")]
    assert kinds == ["CompactionStarted", "CompactionDone", "GaugeChanged", "GaugeChanged"]
    play.check()
    assert (await play.run("and now?"))[-1].startswith("ended success")


async def test_a_compaction_before_the_first_prompt_counts_prompt_and_tools(stage: Make) -> None:
    play = stage({"text": "words and more words " * 60, "repeat": 5})
    for number in range(4):
        await play.run(f"question {number}")
    used = play.agent.gauge().used
    await play.reopen()
    done = [event async for event in play.agent.compact() if isinstance(event, CompactionDone)]
    assert done[0].entry.tokens_before == pytest.approx(used, rel=0.02)
