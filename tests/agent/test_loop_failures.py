"""What goes wrong with a model's answers: broken streams, overflows, empty and cut answers, calls that fail again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from deepagent.agent.errors import BrokenStreamError
from deepagent.agent.events import AnswerWithdrawn
from deepagent.agent.model.retry import RetryingModel
from deepagent.agent.model.scripted import ScriptedModel
from deepagent.agent.model.types import CallDelta, Delta, ModelRequest, TextDelta
from deepagent.agent.tool import tool
from deepagent.context.entries import Compacted, Offloaded
from deepagent.context.messages import AssistantMessage, Pointer, ToolMessage, text_of
from hard_inputs import hard_input
from stage import Stage

Make = Callable[..., "Stage"]
NO_RETRY: dict[str, Any] = {"provider": {"retries": 0}}


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted call."""
    return {"name": name, "arguments": arguments}


def patient(*steps: object) -> RetryingModel:
    """A scripted model whose failed attempts are repeated without the waits."""

    async def at_once(_: float) -> None:
        pass

    return RetryingModel(ScriptedModel({"steps": steps}), sleep=at_once)


async def test_a_broken_stream_is_asked_for_again_and_leaves_one_copy(stage: Make) -> None:
    broken = {"kind": "broken_stream", "message": "cut", "after": 2, "times": 2}
    play = stage(model=patient({"text": "One two three.", "error": broken}))
    assert await play.run() == [
        "takes go",
        "call 1",
        "says One two ",
        "withdrawn 2",
        "says One two ",
        "withdrawn 3",
        "says One two three.",
        "answered end",
        "ended success: One two three.",
    ]
    assert play.on_disk().count(b"One two") == 1
    assert play.ended.turns == 1


@hard_input("Tool calls", "a stream that breaks within a call", "one copy of the answer stays, the call runs once")
async def test_a_call_whose_stream_broke_runs_once(stage: Make) -> None:
    broken = {"kind": "broken_stream", "after": 3, "times": 1}
    command = call("execute", command="echo ran >> count.txt")
    play = stage(model=patient({"text": "I run.", "calls": [command], "error": broken}, {"text": "done"}))
    assert (await play.run())[-1] == "ended success: done"
    assert (play.folder / "count.txt").read_text() == "ran\n"
    assert [len(m.calls) for m in play.logged() if isinstance(m, AssistantMessage)] == [1, 0]


async def test_attempts_that_all_fail_end_the_run_with_what_the_last_one_said(stage: Make) -> None:
    play = stage({"text": "One", "error": {"kind": "server", "message": "down", "after": 1}}, settings=NO_RETRY)
    assert await play.run() == ["takes go", "call 1", "says One", "ended error: server"]
    assert play.ended.error == {"kind": "server", "message": "down"}
    assert play.ended.text == ""
    assert b"One" not in play.on_disk().replace(b"AGENTS", b"")


async def test_after_a_failed_run_the_next_prompt_works(stage: Make) -> None:
    play = stage({"text": "back", "error": {"kind": "auth", "times": 1}})
    assert (await play.run("first"))[-1] == "ended error: auth"
    assert (await play.run("second"))[-1] == "ended success: back"
    assert [text_of(m) for m in play.requests[-1].messages if m.role == "user"] == ["first", "second"]


class HalfAnswer:
    """A model that ends without its answer, though it promised one."""

    name = "half"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        yield TextDelta(text="I was about to")
        yield CallDelta(index=0, name="execute", arguments='{"comm')

    async def aclose(self) -> None:
        pass


async def test_a_model_that_gives_no_whole_answer_is_an_error(stage: Make) -> None:
    play = stage(model=HalfAnswer())
    assert (await play.run())[-1] == "ended error: model"
    assert [message.role for message in play.logged()] == ["user"]


LARGE = "".join(f"line {number}: the quick brown fox jumps over the lazy dog\n" for number in range(190))
"""Some 2,700 tokens: under the limit of a 32k window, over what a rescue leaves in place."""
OVERFLOW = {"kind": "overflow", "message": "too long"}


async def test_an_overflow_moves_the_newest_result_to_a_file_and_asks_once_more(stage: Make) -> None:
    play = stage(
        {"calls": [call("execute", command="cat large.txt")]},
        {"text": "Seen.", "error": {**OVERFLOW, "times": 1}},
        settings={"context": {"window": 32_000}},
    )
    (play.folder / "large.txt").write_text(LARGE)
    lines = await play.run()
    assert lines[lines.index("call 2") :] == [
        "call 2",
        "withdrawn 2",
        "offloads 1-execute.txt",
        "says Seen.",
        "answered end",
        "ended success: Seen.",
    ]
    refused, accepted = play.requests[1:]
    assert size(accepted) < size(refused)
    assert accepted.messages[:2] == refused.messages[:2]
    pointer = accepted.messages[2].content[0]
    assert isinstance(pointer, Pointer)
    assert (play.folder / pointer.path).read_text().startswith(LARGE)
    assert sum(isinstance(entry, Offloaded) for entry in play.entries()) == 1


async def test_an_overflow_within_the_stream_takes_back_what_had_come(stage: Make) -> None:
    play = stage(
        {"calls": [call("execute", command="cat large.txt")]},
        {"text": "Seen it all.", "error": {**OVERFLOW, "after": 2, "times": 1}},
        settings={"context": {"window": 32_000}},
    )
    (play.folder / "large.txt").write_text(LARGE)
    lines = await play.run()
    assert lines[lines.index("call 2") :][:4] == ["call 2", "says Seen it ", "withdrawn 2", "offloads 1-execute.txt"]
    assert [m.text for m in play.logged() if isinstance(m, AssistantMessage)] == ["", "Seen it all."]


async def test_an_overflow_without_a_large_result_is_met_by_one_compaction(stage: Make) -> None:
    turns = [{"text": f"Answer {number}: " + "words and more words " * 60} for number in range(8)]
    play = stage(*turns, {"text": "Still here.", "error": {**OVERFLOW, "times": 1}})
    for number in range(8):
        await play.run(f"question {number}")
    lines = await play.run("the newest question")
    assert lines == [
        "takes the newest question",
        "call 1",
        "withdrawn 2",
        "CompactionStarted",
        "compacted by model for overflow",
        "says Still here.",
        "answered end",
        "ended success: Still here.",
    ]
    assert [request.purpose for request in play.requests[-3:]] == ["turn", "summary", "turn"]
    assert size(play.requests[-1]) < size(play.requests[-3])
    assert text_of(play.requests[-1].messages[-1]) == "the newest question"  # pyright: ignore[reportArgumentType]


async def test_an_overflow_that_nothing_helps_ends_the_run_and_sends_no_request_twice(stage: Make) -> None:
    turns = [{"text": f"Answer {number}: " + "words and more words " * 60} for number in range(3)]
    play = stage(*turns, {"text": "never", "error": OVERFLOW})
    for number in range(3):
        await play.run(f"question {number}")
    assert (await play.run("the newest question"))[-1] == "ended error: overflow"
    sizes = [size(request) for request in play.requests[3:] if request.purpose == "turn"]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(sizes) <= 4
    assert (await play.run("and now?"))[-1] == "ended error: overflow"


async def test_the_window_that_an_overflow_names_is_kept_to_from_then_on(stage: Make) -> None:
    play = stage(
        {"calls": [call("execute", command="cat large.txt")]},
        {"text": "Seen.", "error": {**OVERFLOW, "window": 8_000, "times": 1}},
        settings={"context": {"window": 32_000}},
    )
    (play.folder / "large.txt").write_text(LARGE)
    await play.run()
    gauge = play.agent.gauge()
    assert (gauge.window, gauge.window_source) == (8_000, "overflow")
    assert gauge.used < gauge.trigger <= 6_800


def size(request: ModelRequest) -> int:
    """Characters of a request's messages."""
    return sum(len(str(message.content)) for message in request.messages)


async def test_an_empty_answer_is_asked_for_once_more(stage: Make) -> None:
    play = stage({"text": "  \n"}, {"text": "Here."})
    assert await play.run() == [
        "takes go",
        "call 1",
        "says   \n",
        "answered end",
        "call 2",
        "says Here.",
        "answered end",
        "ended success: Here.",
    ]
    assert play.requests[1].messages == play.requests[0].messages


@hard_input("Tool calls", "an empty answer, or reasoning alone", "asked once more; two in a row end the run")
@pytest.mark.parametrize("empty", [{}, {"thinking": "hm"}, {"stop": "length"}, {"thinking": "hm", "stop": "length"}])
async def test_two_empty_answers_end_the_run_and_do_no_harm(empty: dict[str, Any], stage: Make) -> None:
    play = stage(empty, empty, {"text": "Here."})
    assert (await play.run())[-1] == "ended error: bad_answers"
    assert play.ended.turns == 2
    assert (await play.run("again"))[-1] == "ended success: Here."
    assert [message.role for message in play.requests[-1].messages] == ["user", "user"]


async def test_an_answer_cut_by_the_output_limit_is_given_with_a_notice(stage: Make) -> None:
    play = stage({"text": "The answer is", "stop": "length"})
    assert (await play.run())[-2:] == [
        "notice the answer was cut off by the output limit",
        "ended success: The answer is",
    ]


CUT = (
    {"name": "write_file", "arguments": '{"path": "a.txt", "content": "half of'},
    {"name": "write_file", "arguments": {"path": "a.txt", "content": "half of"}},
    {"name": "execute", "arguments": {"command": "touch a.txt"}},
)


@hard_input(
    "Tool calls",
    "a call that the output limit cut, even where what came of it reads as JSON",
    "it does not run; the model is told to write in smaller parts, and the second time in a row ends the run",
)
@pytest.mark.parametrize("cut", CUT, ids=["broken JSON", "JSON that reads", "a command"])
async def test_a_call_cut_by_the_output_limit_never_runs(cut: dict[str, Any], stage: Make) -> None:
    play = stage(
        {"calls": [cut], "stop": "length"},
        {"text": "I see.", "expect": [{"where": "last", "contains": "Write in smaller parts"}]},
    )
    lines = await play.run()
    assert lines[-1] == "ended success: I see."
    assert not any(line.startswith("runs") for line in lines)
    assert list(play.folder.glob("*.txt")) == []


async def test_two_cut_calls_in_a_row_end_the_run(stage: Make) -> None:
    play = stage({"calls": [CUT[1]], "stop": "length", "repeat": 3})
    assert (await play.run())[-1] == "ended error: bad_answers"
    assert play.ended.turns == 2
    assert list(play.folder.glob("*.txt")) == []


async def test_a_whole_answer_between_two_cut_ones_lets_the_run_go_on(stage: Make) -> None:
    cut, fine = {"calls": [CUT[1]], "stop": "length"}, {"calls": [call("ls")]}
    play = stage(cut, fine, cut, fine, {"text": "done"})
    assert (await play.run())[-1] == "ended success: done"


async def test_a_call_that_fails_the_same_way_three_times_ends_the_run(stage: Make) -> None:
    play = stage({"calls": [call("read_file", path="nowhere.txt")], "repeat": 9})
    lines = await play.run()
    assert lines[-1] == "ended error: repeated_failure"
    assert play.ended.turns == 3
    assert "nowhere.txt does not exist" in str((play.ended.error or {})["message"])


async def test_the_same_call_failing_thrice_in_one_answer_is_told_to_the_model_first(stage: Make) -> None:
    play = stage({"calls": [call("read_file", path="nowhere.txt")] * 3}, {"text": "I see."})
    assert (await play.run())[-1] == "ended success: I see."


async def test_unreadable_calls_that_repeat_end_the_run(stage: Make) -> None:
    play = stage({"calls": [{"name": "ls", "arguments": "{"}], "repeat": 9})
    assert (await play.run())[-1] == "ended error: repeated_failure"
    assert play.ended.turns == 3


async def test_a_test_that_fails_again_and_again_is_no_failing_call(stage: Make) -> None:
    def fix(number: int) -> dict[str, Any]:
        return {"calls": [call("write_file", path=f"{number}.txt", content="x"), call("execute", command="false")]}

    play = stage(*map(fix, range(8)), {"text": "done"})
    assert (await play.run())[-1] == "ended success: done"


async def test_a_call_with_the_same_result_five_times_in_a_row_ends_the_run(stage: Make) -> None:
    play = stage({"calls": [call("execute", command="echo same")], "repeat": 20})
    assert (await play.run())[-1] == "ended error: repeated_call"
    assert play.ended.turns == 5
    assert (await play.run("go on"))[-1] == "ended error: repeated_call"
    assert play.ended.turns == 5


async def test_the_same_reads_in_a_circle_end_the_run_within_three_rounds(stage: Make) -> None:
    names = ("a", "b", "c")
    reads = [{"calls": [call("read_file", path=f"{name}.txt")]} for name in names]
    play = stage(*reads * 5)
    for name in names:
        (play.folder / f"{name}.txt").write_text(name)
    assert (await play.run())[-1] == "ended error: repeated_call"
    assert play.ended.turns == 9


async def test_many_different_calls_and_results_that_change_are_no_repetition(stage: Make) -> None:
    reads = [{"calls": [call("read_file", path=f"{number}.txt")]} for number in range(30)]
    polls = {"calls": [call("execute", command="echo x >> n; cat n")], "repeat": 10}
    again = {"calls": [call("read_file", path=f"{number}.txt") for number in range(8)]}
    play = stage(*reads, polls, again, {"text": "done"})
    for number in range(30):
        (play.folder / f"{number}.txt").write_text(str(number))
    assert (await play.run())[-1] == "ended success: done"


async def test_looking_again_after_each_change_is_no_repetition(stage: Make) -> None:
    def work(number: int) -> list[dict[str, Any]]:
        change = {"calls": [call("write_file", path=f"new-{number}.txt", content="x")]}
        return [change, *({"calls": [call("read_file", path=f"{name}.txt")]} for name in "abc")]

    play = stage(*(step for number in range(4) for step in work(number)), {"text": "done"})
    for name in "abc":
        (play.folder / f"{name}.txt").write_text(name)
    assert (await play.run())[-1] == "ended success: done"


async def test_ids_that_a_server_uses_again_or_leaves_out_become_unique(stage: Make) -> None:
    def same(*ids: str) -> dict[str, Any]:
        return {
            "calls": [{"name": "execute", "arguments": {"command": f"echo {n}"}, "id": i} for n, i in enumerate(ids)]
        }

    play = stage(same("call_0", "call_0", "", ""), same("call_0"), {"text": "done"})
    assert (await play.run())[-1] == "ended success: done"
    results = [m for m in play.logged() if isinstance(m, ToolMessage)]
    assert [text_of(m).splitlines()[0] for m in results] == ["0", "1", "2", "3", "0"]
    assert len({m.call_id for m in results}) == 5
    await play.reopen()


async def test_an_error_that_repeats_a_key_is_told_without_it(stage: Make) -> None:
    key = "sk-test-1234567890abcdef"
    play = stage({"error": {"kind": "auth", "message": f"{key} is no key"}}, environ={"OPENAI_API_KEY": key})
    await play.run()
    assert play.ended.error == {"kind": "auth", "message": "[secret OPENAI_API_KEY] is no key"}


async def test_a_failed_attempt_is_told_with_its_reason_and_its_wait(stage: Make) -> None:
    play = stage(model=patient({"text": "x", "error": {"kind": "rate_limit", "message": "slow down", "times": 1}}))
    await play.run()
    withdrawn = [event for event in play.events if isinstance(event, AnswerWithdrawn)]
    assert [(event.reason, event.attempt) for event in withdrawn] == [("slow down", 2)]
    assert 0.7 < withdrawn[0].wait < 1.3


async def test_a_bug_in_a_model_is_raised_and_the_log_stays_whole(stage: Make) -> None:
    class Buggy(HalfAnswer):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            yield TextDelta(text="x")
            raise ZeroDivisionError

    play = stage(model=Buggy())
    with pytest.raises(ZeroDivisionError):
        await play.run()
    play.check()
    await play.reopen()


async def test_a_compaction_goes_on_when_its_summary_cannot_be_had(stage: Make) -> None:
    turns = [{"text": f"Answer {number}: " + "words and more words " * 60} for number in range(6)]
    failing = {"error": {"kind": "bad_request"}}
    play = stage(
        script={"steps": [*turns, {"text": "x", "error": {**OVERFLOW, "times": 1}}], "summaries": [failing] * 9}
    )
    for number in range(6):
        await play.run(f"question {number}")
    lines = await play.run("the newest question")
    assert "compacted by harness for overflow" in lines
    assert lines[-1] == "ended success: x"
    assert [entry.by for entry in play.entries() if isinstance(entry, Compacted)] == ["harness"]


async def test_a_stream_that_broke_for_good_is_an_error_of_its_kind(stage: Make) -> None:
    @tool
    async def idle() -> str:
        """Idle."""
        return ""

    play = stage(
        {"calls": [call("idle")]}, {"text": "x", "error": {"kind": "broken_stream"}}, tools=(idle,), settings=NO_RETRY
    )
    assert (await play.run())[-1] == f"ended error: {BrokenStreamError.kind}"
    assert [message.role for message in play.logged()] == ["user", "assistant", "tool"]
