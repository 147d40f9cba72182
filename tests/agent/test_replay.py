"""A log as events: what a screen that was not there needs, from sessions of a real agent and from damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from deepagent.agent.events import (
    Answered,
    CompactionDone,
    CompactionTakenBack,
    Denied,
    Event,
    Noticed,
    Offloading,
    RunEnded,
    RunStarted,
    Steered,
    TodosChanged,
    ToolFinished,
)
from deepagent.agent.replay import events_of
from deepagent.context.entries import Entry, MessageLogged, ModelChanged, Note, SessionStarted, Usage
from deepagent.context.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage, text_of
from pydantic import JsonValue
from stage import Stage

Make = Callable[..., "Stage"]
_NONE = Usage(input=0, output=0)


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted call."""
    return {"name": name, "arguments": arguments}


def told(events: list[Event]) -> list[tuple[str, object]]:
    """What the events say that the log holds too."""
    lines: list[tuple[str, object]] = []
    for event in events:
        match event:
            case RunStarted(message=message) | Steered(message=message):
                lines.append((type(event).__name__, text_of(message)))
            case Answered(message=message, usage=usage):
                lines.append(("Answered", (message, usage or _NONE)))
            case ToolFinished(call=of, message=message, summary=summary):
                lines.append(("ToolFinished", (of, message, summary)))
            case Offloading(path=path, tokens=tokens, message=of):
                lines.append(("Offloading", (path, tokens, of)))
            case TodosChanged(items=items):
                lines.append(("TodosChanged", items))
            case CompactionDone(entry=entry):
                lines.append(("CompactionDone", entry))
            case CompactionTakenBack(compaction=compaction):
                lines.append(("CompactionTakenBack", compaction))
            case Denied(call=of, reason=reason):
                lines.append(("Denied", (of, reason)))
            case RunEnded(outcome=outcome):
                lines.append(("RunEnded", outcome))
            case _:
                pass
    return lines


def replay(play: Stage) -> list[Event]:
    return list(events_of(play.entries()))


async def test_a_session_is_told_again_as_it_was_told(stage: Make) -> None:
    play = stage(
        {
            "text": "I look.",
            "thinking": "Where?",
            "usage": {"input": 120, "output": 7},
            "calls": [call("read_file", path="a.txt"), call("read_file", path="none")],
        },
        {"calls": [call("write_todos", todos=[{"text": "one", "status": "pending"}])]},
        {"calls": [call("execute", command="exit 3")]},
        {"text": "Done."},
        {"text": "And again."},
        script={"usage": "estimate"},
    )
    (play.folder / "a.txt").write_text("one\n")
    await play.run("do it")
    await play.run("once more")
    assert told(replay(play)) == told(play.events)


async def test_what_was_steered_joins_where_it_joined(stage: Make) -> None:
    play = stage({"calls": [call("ls", path=".")]}, {"text": "Done."})
    await play.run("begin", lambda event: play.agent.steer("use tabs") if isinstance(event, RunStarted) else None)
    replayed = told(replay(play))
    assert replayed == told(play.events)
    assert ("Steered", "use tabs") in replayed


async def test_a_denial(stage: Make) -> None:
    play = stage(
        {"calls": [call("execute", command="rm x")]}, {"text": "Well."}, settings={"permissions": {"mode": "default"}}
    )
    await play.run()
    live, again = ([line for line in told(events) if line[0] == "Denied"] for events in (play.events, replay(play)))
    assert live == again != []


async def test_an_interruption_and_its_calls(stage: Make) -> None:
    play = stage({"text": "I wait.", "calls": [call("execute", command="sleep 30")]})
    await play.run("go", lambda event: play.agent.interrupt() if type(event).__name__ == "ToolStarted" else None)
    events = replay(play)
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [event.summary for event in finished] == ["interrupted"]
    assert isinstance(events[-1], RunEnded)
    assert events[-1].outcome == "interrupted"


async def test_compactions_and_their_undoing(stage: Make) -> None:
    many = "\n".join(f"line {number} with some words that make it longer" for number in range(80))
    steps = [{"calls": [call("read_file", path=f"f{number}")]} for number in range(14)]
    play = stage(
        *steps,
        {"text": "All read."},
        settings={"context": {"window": 16_000, "keep": 0.1, "keep_results": ["read_file"]}},
    )
    for number in range(14):
        (play.folder / f"f{number}").write_text(many)
    await play.run()
    play.events += [event async for event in play.agent.compact()]
    play.events += [event async for event in play.agent.undo_compaction()]
    replayed = told(replay(play))
    assert replayed == told(play.events)
    assert [kind for kind, _ in replayed if kind.startswith("Compaction")] == [
        "CompactionDone",
        "CompactionDone",
        "CompactionTakenBack",
    ]


@pytest.mark.parametrize(
    ("text", "log", "error", "summary"),
    [
        ("a\nb", {"path": "x"}, False, "2 lines"),
        ("x was changed", {"path": "x", "added": 1_200, "removed": 3}, False, "+1,200 −3"),
        ("out\n[exit code 3]", {"command": "c", "exit_code": 3, "signal": None}, False, "exit 3"),
        ("[ended]", {"command": "c", "exit_code": None, "signal": 9}, False, "ended by signal 9"),
        ("There is no x. Look again.", {}, True, "There is no x"),
        ("Interrupted: this call may have run in part.", {}, True, "interrupted"),
        ("whatever", {"summary": "as it was said"}, True, "as it was said"),
    ],
)
def test_summaries_of_older_logs(text: str, log: dict[str, JsonValue], error: bool, summary: str) -> None:
    message = replace(result("t", "c"), content=(Text(text=text),), log=log, is_error=error)
    assert [event.summary for event in events_of(logged(message)) if isinstance(event, ToolFinished)] == [summary]


async def test_after_resuming_and_again(stage: Make) -> None:
    play = stage({"text": "One."}, {"text": "Two."})
    await play.run("first")
    await play.reopen()
    await play.run("second")
    assert [line for line in told(list(events_of(play.agent.session.entries))) if line[0] == "RunStarted"] == [
        ("RunStarted", "first"),
        ("RunStarted", "second"),
    ]


# Logs that were cut off or written by other versions


def logged(*messages: UserMessage | AssistantMessage | ToolMessage) -> list[Entry]:
    """The messages as entries of a session."""
    start = SessionStarted(id="s", time="", parent=None, version=1, session="s1", workspace="/", cwd="/")
    return [start, *(MessageLogged(id=m.id, time="", parent=None, message=m) for m in messages)]


def user(id: str, *, synthetic: bool = False) -> UserMessage:
    return UserMessage(id=id, time="", content=(Text(text=id),), synthetic=synthetic)


def answer(id: str, *calls: str) -> AssistantMessage:
    content = tuple(ToolCall(id=one, name="ls", arguments={}) for one in calls)
    return AssistantMessage(id=id, time="", content=content, model="m", stop="tool_calls")


def result(id: str, of: str) -> ToolMessage:
    return ToolMessage(id=id, time="", call_id=of, tool="ls", content=(Text(text="ok"),))


def kinds(entries: list[Entry]) -> list[str]:
    return [type(event).__name__ for event in events_of(entries)]


def test_what_the_harness_says_is_not_the_user() -> None:
    events = list(events_of(logged(user("u1"), user("memory has changed", synthetic=True))))
    assert [type(event).__name__ for event in events] == ["RunStarted", "RunEnded"]


def test_a_run_that_died_is_ended() -> None:
    assert kinds(logged(user("u1"), answer("a1", "c1"))) == ["RunStarted", "Answered", "RunEnded"]
    assert kinds(logged(user("u1"), answer("a1", "c1", "c2"), result("t1", "c1"), user("u2"))) == [
        "RunStarted",
        "Answered",
        "ToolFinished",
        "RunEnded",
        "RunStarted",
        "RunEnded",
    ]


def test_results_without_a_call() -> None:
    events = [event for event in events_of(logged(user("u"), result("t", "gone"))) if isinstance(event, ToolFinished)]
    assert [(event.call.id, event.call.name) for event in events] == [("gone", "ls")]


def test_an_unknown_end_is_an_error() -> None:
    from deepagent.context.entries import Ended

    entries = [*logged(user("u")), Ended(id="e", time="", parent=None, reason="something new")]
    ended = [event for event in events_of(entries) if isinstance(event, RunEnded)]
    assert [event.outcome for event in ended] == ["error"]


def test_notes_and_models_are_told() -> None:
    entries: list[Entry] = [
        Note(id="n", time="", parent=None, text="noted"),
        ModelChanged(id="m", time="", parent=None, model="other"),
    ]
    assert [event.text for event in events_of(entries) if isinstance(event, Noticed)] == ["noted", "model: other"]


async def test_late_offloads_name_their_message(stage: Make) -> None:
    """Live and replayed alike: the card of the result can be found."""
    play = stage(
        {"calls": [call("execute", command="seq 9000")]},
        {"calls": [call("execute", command="seq 700")]},
        {"error": {"kind": "overflow", "window": 9_000, "times": 1}, "text": "Fine."},
        settings={"context": {"window": 64_000}},
    )
    await play.run()
    live, again = (
        [event.message for event in events if isinstance(event, Offloading)] for events in (play.events, replay(play))
    )
    results = [message.id for message in play.logged() if isinstance(message, ToolMessage)]
    assert live == again == results
