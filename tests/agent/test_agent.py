"""The agent around its runs: the gauge and its account, steering, taking a compaction back, resuming."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from deepagent.agent.events import CallStarted, CompactionDone, Event, Gauge, GaugeChanged, RunEnded, ToolStarted
from deepagent.context.entries import Compacted, CompactionUndone
from deepagent.context.messages import Pointer, UserMessage, new_id, text_of
from deepagent.context.storage import log_name
from stage import Stage

Make = Callable[..., "Stage"]
YOLO = {"mode": "yolo"}
WORDS = "words and more words " * 60


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted call."""
    return {"name": name, "arguments": arguments}


async def talked(stage: Make, *more: dict[str, Any], turns: int = 5, **options: Any) -> Stage:
    """A stage on which some turns have been played."""
    play = stage(*({"text": f"Answer {n}: {WORDS}"} for n in range(turns)), *more, **options)
    for number in range(turns):
        await play.run(f"question {number}")
    return play


# The gauge


async def test_the_gauge_knows_prompt_and_tools_before_the_first_request(stage: Make) -> None:
    play = stage({"text": "Hello."}, settings={"context": {"window": 32_000}})
    before = play.agent.gauge()
    await play.run()
    assert before.used > 1_000
    assert before.used * 0.6 < play.agent.gauge().used < before.used * 1.4
    assert (before.window, before.window_source, before.cost) == (32_000, "user", 0)


async def test_the_account_adds_up_to_the_gauge(stage: Make) -> None:
    play = await talked(stage, {"calls": [call("execute", command="seq 100")]}, {"text": "done"})
    await play.run("count")
    account = play.agent.account()
    assert sum(row.tokens for row in account.rows) == account.used == play.agent.gauge().used
    assert all(sum(part.tokens for part in row.parts) == row.tokens for row in account.rows if row.parts)


async def test_after_a_report_the_gauge_is_the_providers_figure_and_what_came_since(stage: Make) -> None:
    play = stage({"text": "Hello.", "usage": {"input": 3_000, "output": 2}}, settings={"context": {"window": 32_000}})
    await play.run()
    gauge = play.agent.gauge()
    assert gauge.source == "reported"
    assert 3_000 < gauge.used < 3_020


async def test_a_server_that_seems_to_cut_the_prompt_is_told_of_and_not_believed(stage: Make) -> None:
    cut = {"text": WORDS, "usage": {"input": 400, "output": 2}}
    play = stage(cut, {"text": "x"}, settings={"context": {"window": 32_000}})
    lines = await play.run()
    assert [line for line in lines if line.startswith("notice the server says the request had 400 tokens")]
    assert play.agent.gauge().used > 1_000


# Steering


def saying(play: Stage, kind: type[Event], *texts: str) -> Callable[[Event], None]:
    """Says something at the first event of a kind."""
    left = list(texts)

    def watch(event: Event) -> None:
        if isinstance(event, kind):
            while left:
                play.agent.steer(left.pop(0))

    return watch


async def test_what_is_said_while_tools_run_joins_after_their_results(stage: Make) -> None:
    play = stage({"calls": [call("ls")]}, {"text": "Blue then.", "expect": [{"where": "last", "contains": "use blue"}]})
    lines = await play.run("paint it", on=saying(play, ToolStarted, "use blue"))
    assert lines == [
        "takes paint it",
        "call 1",
        "writes ls",
        "answered tool_calls",
        "runs ls call_0_0",
        "done ls call_0_0",
        "hears use blue",
        "call 2",
        "says Blue then.",
        "answered end",
        "ended success: Blue then.",
    ]


async def test_what_is_said_during_the_last_answer_is_answered_too(stage: Make) -> None:
    play = stage({"text": "Painted red."}, {"text": "Blue then."})
    lines = await play.run("paint it", on=saying(play, CallStarted, "use blue", "  ", "and thick"))
    assert lines[3:7] == ["answered end", "hears use blue", "hears and thick", "call 2"]
    assert lines[-1] == "ended success: Blue then."


async def test_what_was_said_can_be_taken_back_until_it_is_heard(stage: Make) -> None:
    play = stage({"text": "Hello."})
    play.agent.steer("one")
    play.agent.steer("two")
    assert play.agent.take_back() == "two"
    assert play.agent.take_back() == "one"
    assert play.agent.take_back() is None
    assert await play.run("hi") == ["takes hi", "call 1", "says Hello.", "answered end", "ended success: Hello."]


# Compactions


async def test_a_compaction_taken_back_gives_the_same_view_as_before(stage: Make) -> None:
    play = await talked(stage, {"text": "Go on."})
    before = play.view
    assert any([isinstance(event, CompactionDone) async for event in play.agent.compact()])
    assert len(play.view) < len(before)
    kinds = [type(event).__name__ async for event in play.agent.undo_compaction()]
    assert kinds == ["CompactionTakenBack", "GaugeChanged"]
    assert play.view == before
    await play.reopen()
    assert play.view == before
    assert (await play.run("and?"))[-1] == "ended success: Go on."


async def test_without_a_compaction_there_is_nothing_to_take_back(stage: Make) -> None:
    play = await talked(stage, turns=1)
    assert await notices(play.agent.undo_compaction()) == ["there is no compaction to take back"]


async def notices(events: AsyncIterator[Event]) -> list[str]:
    """The texts of notices."""
    return [text async for event in events if (text := getattr(event, "text", None))]


async def test_a_compaction_whose_messages_no_longer_fit_stays(stage: Make) -> None:
    play = stage({"text": WORDS, "repeat": 40}, settings={"permissions": YOLO, "context": {"window": 6_000}})
    while not any(isinstance(entry, Compacted) for entry in play.entries()):
        await play.run("more")
    await play.run("more")
    said = await notices(play.agent.undo_compaction())
    assert "cannot be taken back: its messages have" in said[0]
    assert not any(isinstance(entry, CompactionUndone) for entry in play.entries())


async def test_the_trigger_compacts_before_the_request_that_would_pass_it(stage: Make) -> None:
    settings = {"permissions": YOLO, "context": {"window": 8_000}}
    play = stage({"text": WORDS * 2, "repeat": 40}, settings=settings)
    for number in range(30):
        await play.run(f"question {number}")
        assert play.ended.outcome == "success"
    boundaries = [entry for entry in play.entries() if isinstance(entry, Compacted)]
    assert len(boundaries) >= 2
    assert all(entry.tokens_after < play.agent.gauge().trigger for entry in boundaries)
    assert sum(event.compactions for event in play.events if isinstance(event, RunEnded)) == len(boundaries)
    turns = [request for request in play.requests if request.purpose != "summary"]
    first = [text_of(m) for m in turns[-1].messages[:1] if isinstance(m, UserMessage)]
    assert "question 0" in first[0]


async def test_what_came_since_the_last_report_counts_too(stage: Make) -> None:
    """The provider reports four fifths of the window; the result that follows it passes the trigger."""
    settings = {"permissions": YOLO, "context": {"window": 12_000}}
    look = {"calls": [call("execute", command="cat long.txt")], "usage": {"input": 9_600, "output": 10}}
    play = await talked(stage, look, {"text": "Seen."}, turns=18, settings=settings)
    (play.folder / "long.txt").write_text(WORDS * 4)
    lines = await play.run("look")
    assert lines[lines.index("done execute call_18_0") :][:4] == [
        "done execute call_18_0",
        "CompactionStarted",
        "compacted by model for trigger",
        "call 2",
    ]


async def test_without_automatic_compaction_none_is_made(stage: Make) -> None:
    settings = {"permissions": YOLO, "context": {"window": 8_000, "auto_compact": False}}
    play = stage({"text": WORDS * 2, "repeat": 30}, settings=settings)
    for number in range(16):
        await play.run(f"question {number}")
    assert not any(isinstance(entry, Compacted) for entry in play.entries())


async def test_a_final_answer_past_the_trigger_starts_nothing(stage: Make) -> None:
    settings = {"permissions": YOLO, "context": {"window": 5_000}}
    play = await talked(
        stage, {"text": "x", "usage": {"input": 4_400, "output": 1}}, {"text": "Go on."}, turns=7, settings=settings
    )
    lines = await play.run("and?")
    assert lines[-1] == "ended success: x"
    assert play.ended.turns == 1
    assert play.agent.gauge().used > play.agent.gauge().trigger


async def test_a_prompt_too_large_for_any_compaction_stops_compacting_and_says_why(stage: Make) -> None:
    settings = {"permissions": YOLO, "context": {"window": 5_000, "compact_at": 0.2}}
    play = stage({"text": WORDS, "repeat": 30}, settings=settings)
    for number in range(3):
        await play.run(f"question {number}")
    lines = await play.run("question 3")
    told = [line for line in lines if "compaction does not get below" in line]
    assert len(told) == 1
    assert "prompt, memory, skills and tools are" in told[0]
    assert sum(line.startswith("compacted") for line in lines) <= 2
    assert lines[-1].startswith("ended success")


# Long messages


async def test_a_long_message_of_the_user_goes_to_a_file_word_for_word(stage: Make) -> None:
    play = stage({"text": "Read."}, settings={"permissions": YOLO, "context": {"window": 16_000}})
    text = "".join(f"{number}: the quick brown fox\n" for number in range(1_000))
    await play.run(text)
    message = play.logged()[0]
    assert isinstance(message, UserMessage)
    pointer = message.content[0]
    assert isinstance(pointer, Pointer)
    assert (play.folder / pointer.path).read_text() == text
    assert text_of(message) in [text_of(m) for m in play.requests[0].messages if isinstance(m, UserMessage)]


async def test_several_results_of_one_answer_are_kept_small_together(stage: Make) -> None:
    calls = [call("execute", command=f"seq {n} {n + 400}") for n in range(1_000, 1_012)]
    play = stage({"calls": calls}, {"text": "done"}, settings={"permissions": YOLO, "context": {"window": 16_000}})
    lines = await play.run()
    assert any(line.startswith("offloads") for line in lines)
    assert sum(line.startswith("done execute") for line in lines) == 12
    gauges = [event.gauge for event in play.events if isinstance(event, GaugeChanged)]
    assert all(within(gauge) for gauge in gauges)


def within(gauge: Gauge) -> bool:
    """Whether the next request fits."""
    return gauge.used <= gauge.budget


# Modes and sessions


async def test_another_mode_holds_from_the_next_call_on(stage: Make) -> None:
    write = {"calls": [call("write_file", path="a.txt", content="x")]}
    play = stage(write, {"text": "no"}, write, {"text": "yes"}, settings={"permissions": {"mode": "plan"}})
    assert any(line.startswith("denied") for line in await play.run())
    play.agent.set_mode("yolo")
    assert not any(line.startswith("denied") for line in await play.run())
    assert (play.folder / "a.txt").exists()


async def test_a_session_opened_again_goes_on_with_the_same_bytes(stage: Make) -> None:
    play = await talked(stage, {"text": "One."}, {"text": "Two."}, turns=3)
    await play.run("one")
    await play.reopen()
    await play.run("two")
    before, after = play.requests[-2:]
    assert after.messages[: len(before.messages)] == before.messages
    assert (after.system, after.tools) == (before.system, before.tools)
    kinds = [entry.kind for entry in play.entries()]
    assert kinds.count("session_started") == 1
    assert kinds.count("prompt_part") == len({e.name for e in play.entries() if e.kind == "prompt_part"})


async def test_changed_memory_reaches_the_next_request_and_leaves_the_prompt_as_it_was(stage: Make) -> None:
    play = stage({"text": "a"}, {"text": "b"})
    (play.folder / "AGENTS.md").write_text("Use tabs.\n")
    await play.run()
    (play.folder / "AGENTS.md").write_text("Use spaces.\n")
    await play.run()
    assert "Use tabs." in play.requests[0].system
    assert play.requests[1].system == play.requests[0].system
    assert "Use spaces." in f"{play.requests[1].messages}"
    parts = [entry.content for entry in play.entries() if entry.kind == "prompt_part" and entry.name == "memory"]
    assert ["Use tabs." in part for part in parts] == [True]


def rewritten(play: Stage, change: Callable[[list[str]], list[str]]) -> None:
    """Changes the lines of a closed session's log, as a damaged disk or an older program would have left them."""
    path = play.agent.session.storage.path(log_name(play.agent.session.id))
    path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))


@pytest.mark.parametrize("lost", ["assistant", "tool"])
async def test_a_log_that_lost_lines_goes_on_with_whole_pairs(lost: str, stage: Make) -> None:
    work = {"text": "I look.", "calls": [call("ls"), call("glob", pattern="*")]}
    play = stage(work, {"text": "Seen."}, work, {"text": "Again."}, {"text": "Fine."})
    await play.run("one")
    await play.run("two")
    await play.close()
    role = f'"role":"{lost}"'
    firsts = iter([True])
    rewritten(play, lambda lines: [line for line in lines if role not in line or not next(firsts, False)])
    await play.reopen()
    assert (await play.run("three"))[-1].startswith("ended success")


async def test_empty_answers_in_an_old_log_do_no_harm(stage: Make) -> None:
    play = stage({"text": "One."}, {"text": "Two."}, {"text": "Three."})
    await play.run("one")
    await play.close()

    def add_empty(lines: list[str]) -> list[str]:
        answer = next(line for line in lines if '"role":"assistant"' in line)
        record = json.loads(answer)
        empty = [
            {**record, "id": new_id(), "message": {**record["message"], "id": new_id(), "content": c}} for c in EMPTY
        ]
        return [*lines, *map(json.dumps, empty)]

    rewritten(play, add_empty)
    await play.reopen()
    assert (await play.run("two"))[-1] == "ended success: (the script has ended)"
    assert [message.role for message in play.requests[-1].messages] == ["user", "assistant", "user"]


EMPTY: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"kind": "text", "text": "  \n"}],
    [{"kind": "reasoning", "text": "hm", "data": {}}],
)


@pytest.mark.parametrize("sticky", [None, "high"])
async def test_the_effort_of_the_settings_is_asked_for(sticky: str | None, stage: Make) -> None:
    play = stage({"text": "a"}, settings={"effort": sticky} if sticky else {})
    await play.run()
    assert play.requests[0].effort == sticky
