"""Summaries in a whole run: the prefix extended, a record prepared ahead, a prompt of one's own; and long pauses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.model.quirks import profile_of
from deepagent.agent.model.types import ModelRequest
from deepagent.agent.model.wire import Wire
from deepagent.context.entries import Compacted, Shortened, UsageReported
from deepagent.context.messages import text_of
from stage import Stage

Make = Callable[..., "Stage"]
GOOD = "## SESSION INTENT\nread files\n## SUMMARY\nthe files were read one after the other, nothing was changed\n"
WIRE = Wire("m", profile_of("openai", "gpt-5", "lean"))


def steps(count: int) -> list[dict[str, Any]]:
    """Answers that read one file each, and then talk."""
    read = [{"calls": [{"name": "read_file", "arguments": {"path": f"f{n}"}}]} for n in range(count)]
    return [*read, {"text": "All read."}]


def play_reading(stage: Make, count: int = 16, **script: Any) -> Stage:
    """A session that grows by 1,000 tokens a turn in a window of 16,000, of which nothing leaves by trimming."""
    settings = {"context": {"window": 16_000, "keep_results": ["read_file"]}}
    play = stage(*steps(count), settings=settings, script={"usage": "estimate", "summaries": [GOOD] * 9, **script})
    for number in range(count):
        text = "\n".join(f"line {line} of file {number} with some words" for line in range(90))
        (play.folder / f"f{number}").write_text(text)
    return play


def sent(request: ModelRequest) -> list[str]:
    """The messages as they go over the wire, and before them the tools."""
    body = WIRE.body(request)
    return [json.dumps(body["tools"]), *(json.dumps(message) for message in body["messages"])]


async def test_the_summary_extends_the_request_before_it_by_one_instruction(stage: Make) -> None:
    play = play_reading(stage)
    await play.run()
    assert play.ended.outcome == "success"
    asked = [at for at, request in enumerate(play.requests) if request.purpose == "summary"]
    assert asked
    for at in asked:
        turns = [request for request in play.requests[:at] if request.purpose == "turn"]
        before, now = sent(turns[-1]), sent(play.requests[at])
        assert now[: len(before)] == before
        assert "Call no tool" in now[-1]
        assert WIRE.body(turns[-1]).keys() == WIRE.body(play.requests[at]).keys()
    compactions = [entry for entry in play.entries() if isinstance(entry, Compacted)]
    assert [entry.summary for entry in compactions] == [GOOD.strip()] * len(compactions)
    spent = [e for e in play.entries() if isinstance(e, UsageReported) and e.purpose == "summary"]
    assert len(spent) == len(asked)


async def test_a_record_prepared_ahead_costs_one_request_and_nobody_waits(stage: Make) -> None:
    play = play_reading(stage, 16)
    await play.run()
    compactions = [entry for entry in play.entries() if isinstance(entry, Compacted)]
    asked = [request for request in play.requests if request.purpose == "summary"]
    assert len(compactions) == 1
    assert len(asked) == 1
    order = [request.purpose for request in play.requests]
    between = order[order.index("summary") :]
    assert between[1:3] == ["turn", "turn"]  # the work went on meanwhile
    assert compactions[0].seconds < 1


async def test_a_call_instead_of_a_summary_is_none(stage: Make) -> None:
    calls = {"calls": [{"name": "read_file", "arguments": {"path": "f0"}}]}
    play = play_reading(stage, 16, summaries=[calls, calls])
    await play.run()
    (entry,) = [entry for entry in play.entries() if isinstance(entry, Compacted)]
    assert entry.by == "harness"
    assert play.ended.outcome == "success"


async def test_a_summary_model_of_its_own_gets_text_alone(stage: Make, tmp_path: Path) -> None:
    script = tmp_path / "summaries.json"
    script.write_text(json.dumps({"steps": [], "summaries": [GOOD] * 9}))
    settings = {
        "summary_model": f"scripted:{script}",
        "context": {"window": 16_000, "keep_results": ["read_file"]},
    }
    play = stage(*steps(16), settings=settings, script={"usage": "estimate"})
    for number in range(16):
        (play.folder / f"f{number}").write_text(
            "\n".join(f"line {line} of file {number}, some words" for line in range(90))
        )
    await play.run()
    assert [request.purpose for request in play.requests if request.purpose == "summary"] == []
    assert [entry.by for entry in play.entries() if isinstance(entry, Compacted)] == ["model"]


async def test_a_prompt_of_ones_own_says_what_a_record_holds(stage: Make, tmp_path: Path) -> None:
    own = tmp_path / "summary.txt"
    own.write_text("Tell it as a sonnet of {limit} words. {braces} stay.")
    settings = {"summary_prompt": str(own), "context": {"window": 16_000}}
    play = stage({"text": "word " * 900}, {"text": "word " * 900}, settings=settings, script={"summaries": [GOOD]})
    await play.run("one")
    await play.run("two")
    async for _ in play.agent.compact("the rhyme"):
        pass
    prompt = text_of(play.requests[-1].messages[-1])  # pyright: ignore[reportArgumentType] - the user's role
    assert "Tell it as a sonnet of 487 words. {braces} stay." in prompt
    assert "The user wants attention to: the rhyme" in prompt
    assert "SESSION INTENT" not in prompt


async def test_a_run_that_ends_while_a_record_is_prepared_closes_in_order(stage: Make) -> None:
    play = play_reading(stage, 11, summaries=[{"text": GOOD, "pace": 0.5}])
    await play.run()
    await play.close()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_going_on_after_an_hour_sends_at_most_half(stage: Make) -> None:
    results = [{"calls": [{"name": "execute", "arguments": {"command": f"seq {n}000 {n}900"}}]} for n in range(1, 7)]
    play = stage(
        *results,
        {"text": "Done."},
        {"text": "Again."},
        settings={"context": {"window": 60_000}},
        script={"usage": "estimate"},
    )
    await play.run("count")
    before = play.agent.gauge().used
    session = play.agent.session
    now = datetime.now(UTC)
    session.clock = lambda: now + timedelta(hours=1)
    await play.run("go on")
    assert isinstance(next(e for e in play.entries() if isinstance(e, Shortened)), Shortened)
    assert len("".join(sent(play.requests[-1])[1:])) < len("".join(sent(play.requests[-2])[1:])) / 2
    assert play.agent.gauge().used < before * 0.6


@pytest.mark.parametrize("seconds", [10, 200])
async def test_going_on_soon_changes_nothing(stage: Make, seconds: int) -> None:
    results = [{"calls": [{"name": "execute", "arguments": {"command": f"seq {n}000 {n}900"}}]} for n in range(1, 7)]
    play = stage(
        *results,
        {"text": "Done."},
        {"text": "Again."},
        settings={"context": {"window": 60_000}},
        script={"usage": "estimate"},
    )
    await play.run("count")
    now = datetime.now(UTC)
    play.agent.session.clock = lambda: now + timedelta(seconds=seconds)
    await play.run("go on")
    before, after = sent(play.requests[-2]), sent(play.requests[-1])
    assert after[: len(before)] == before
