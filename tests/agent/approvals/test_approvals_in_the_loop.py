"""Approvals as they meet in the loop: what is asked, what the model is told, and what the log keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepagent.agent.events import Approval, ApprovalAsked, Event
from deepagent.context.messages import AssistantMessage, ToolMessage
from stage import Stage

Make = Callable[..., "Stage"]
ASK: dict[str, Any] = {"settings": {"permissions": {"mode": "default"}}, "interactive": True}


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted call."""
    return {"name": name, "arguments": arguments}


def answering(*answers: Approval | None) -> tuple[Callable[[Event], None], list[str]]:
    """Answers questions in turn (None cancels the question), and the rules that were asked for."""
    left, asked = list(answers), list[str]()

    def watch(event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            asked.append(" ".join(event.rules))
            answer = left.pop(0)
            event.answer.cancel() if answer is None else event.answer.set_result(answer)

    return watch, asked


YES, NO = Approval(allowed=True), Approval(allowed=False, reason="use git rm")


async def test_what_is_allowed_when_asked_runs(stage: Make) -> None:
    play = stage({"calls": [call("execute", command="touch ran")]}, {"text": "done"}, **ASK)
    watch, _ = answering(YES)
    lines = await play.run(on=watch)
    assert lines[4:8] == ["runs execute call_0_0", "asks execute(touch ran)", "done execute call_0_0", "call 2"]
    assert (play.folder / "ran").exists()


async def test_what_is_refused_does_not_run_and_the_model_is_told_why(stage: Make) -> None:
    seen = {"where": "last", "contains": ["Not allowed: use git rm"]}
    play = stage({"calls": [call("execute", command="touch ran")]}, {"text": "I see.", "expect": [seen]}, **ASK)
    watch, _ = answering(NO)
    lines = await play.run(on=watch)
    assert lines[5:8] == ["asks execute(touch ran)", "denied execute(touch ran)", "failed execute call_0_0"]
    assert lines[-1] == "ended success: I see."
    assert not (play.folder / "ran").exists()


async def test_questions_come_one_at_a_time_in_the_order_of_the_calls(stage: Make) -> None:
    calls = [call("write_file", path=f"{name}.txt", content=name) for name in "abc"]
    play = stage({"calls": calls}, {"text": "done"}, **ASK)
    watch, asked = answering(YES, NO, YES)
    await play.run(on=watch)
    assert asked == ["write_file(a.txt)", "write_file(b.txt)", "write_file(c.txt)"]
    assert sorted(path.name for path in play.folder.glob("*.txt")) == ["a.txt", "c.txt"]


async def test_a_question_that_its_reader_drops_is_no_refusal(stage: Make) -> None:
    seen = {"where": "last", "contains": "Not allowed: nobody answered"}
    play = stage({"calls": [call("execute", command="touch ran")]}, {"text": "I see.", "expect": [seen]}, **ASK)
    watch, _ = answering(None)
    assert (await play.run(on=watch))[-1] == "ended success: I see."
    assert [m.log["summary"] for m in play.logged() if isinstance(m, ToolMessage)] == ["unanswered"]


async def test_a_question_that_was_dropped_may_be_asked_again(stage: Make) -> None:
    play = stage({"calls": [call("execute", command="touch ran")], "repeat": 2}, {"text": "done"}, **ASK)
    watch, asked = answering(None, YES)
    assert (await play.run(on=watch))[-1] == "ended success: done"
    assert len(asked) == 2
    assert (play.folder / "ran").exists()


async def test_what_the_user_changed_runs_and_the_model_is_told(stage: Make) -> None:
    seen = {"where": "last", "contains": ["changed this call", '"touch mine" instead of "touch ran"']}
    play = stage({"calls": [call("execute", command="touch ran")]}, {"text": "I see.", "expect": [seen]}, **ASK)
    watch, _ = answering(Approval(allowed=True, arguments={"command": "touch mine"}))
    assert (await play.run(on=watch))[-1] == "ended success: I see."
    assert [path.name for path in play.folder.glob("[rm]*")] == ["mine"]
    calls = [c.arguments for m in play.logged() if isinstance(m, AssistantMessage) for c in m.calls]
    assert calls == [{"command": "touch ran"}]


async def test_what_the_user_changed_is_still_denied_by_rule(stage: Make) -> None:
    settings = {"permissions": {"mode": "default", "deny": ["execute(touch mine)"]}}
    seen = {"where": "last", "contains": ["Not allowed: the rule execute(touch mine) denies it", "changed this call"]}
    script = ({"calls": [call("execute", command="touch ran")]}, {"text": "I see.", "expect": [seen]})
    play = stage(*script, settings=settings, interactive=True)
    watch, _ = answering(Approval(allowed=True, arguments={"command": "touch mine"}))
    assert (await play.run(on=watch))[-1] == "ended success: I see."
    assert not list(play.folder.glob("[rm]*"))


async def test_the_user_answers_instead(stage: Make) -> None:
    seen = {"where": "last", "contains": "the user answered instead: it is there already"}
    play = stage({"calls": [call("execute", command="touch ran")]}, {"text": "I see.", "expect": [seen]}, **ASK)
    watch, _ = answering(Approval(allowed=False, answer="it is there already"))
    lines = await play.run(on=watch)
    assert lines[6] == "done execute call_0_0"
    assert lines[-1] == "ended success: I see."
    assert not (play.folder / "ran").exists()


async def test_each_command_and_each_file_is_named_when_asked(stage: Make) -> None:
    play = stage({"calls": [call("execute", command="touch a && ls > b; cat a")]}, {"text": "done"}, **ASK)
    watch, asked = answering(NO)
    await play.run(on=watch)
    assert asked == ["execute(touch a) execute(ls) execute(cat a) write_file(b)"]


async def test_a_call_repeated_after_a_refusal_is_asked_about_once_more_and_ends_the_run(stage: Make) -> None:
    play = stage({"calls": [call("execute", command="touch ran")], "repeat": 9}, **ASK)
    watch, asked = answering(NO, NO)
    assert (await play.run(on=watch))[-1] == "ended error: repeated_denial"
    assert (len(asked), play.ended.turns) == (2, 2)


async def test_without_anybody_to_ask_a_repeated_call_ends_the_run(stage: Make) -> None:
    play = stage({"calls": [call("execute", command="touch ran")], "repeat": 9}, settings=ASK["settings"])
    assert (await play.run())[-1] == "ended error: repeated_denial"
    assert play.ended.turns == 2
    assert (await play.run("please"))[-1] == "ended error: repeated_denial"
    assert play.ended.turns == 2


async def test_the_same_call_twice_in_one_answer_is_no_repetition(stage: Make) -> None:
    play = stage({"calls": [call("execute", command="touch ran")] * 2}, {"text": "I see."}, settings=ASK["settings"])
    assert (await play.run())[-1] == "ended success: I see."


async def test_calls_that_cannot_run_are_not_asked_about(stage: Make) -> None:
    calls = [{"name": "execute", "arguments": "{"}, call("fly"), call("read_file", path="../outside.txt")]
    play = stage({"calls": calls}, {"text": "I see."}, **ASK)
    watch, asked = answering()
    assert (await play.run(on=watch))[-1] == "ended success: I see."
    assert asked == []
