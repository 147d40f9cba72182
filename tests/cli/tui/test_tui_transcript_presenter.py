"""From events to the screen: whole runs of a real agent, streaming, and what must not break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, get_args

import pytest
from deepagent.agent.events import (
    AnswerReworded,
    AnswerWithdrawn,
    Approval,
    CallStarted,
    CompactionDone,
    CompactionTakenBack,
    Event,
    Noticed,
    Outcome,
    ReasoningArrived,
    RunEnded,
    Steered,
    TextArrived,
    TodosChanged,
    ToolCallArriving,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from deepagent.agent.replay import events_of
from deepagent.context.entries import Todo, Usage
from stage import Stage
from transcript_host import (
    HOSTILE,
    Host,
    answered,
    call,
    compacted,
    finished,
    gauge,
    hosted,
    neutral,
    rows,
    sees,
    started,
    until,
    user,
)

SMALL = {"context": {"window": 16_000, "keep_results": ["read_file"], "keep": 0.1}}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Callable[..., Stage]]:
    """Makes agents on scripted models in a real folder."""
    made: list[Stage] = []

    def make(*steps: Mapping[str, Any], **options: Any) -> Stage:
        made.append(Stage(tmp_path / f"work{len(made)}", *steps, **options))
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def play(app: Host, of: Stage, prompt: str, on: Callable[[Event], None] = lambda _: None) -> list[Event]:
    """Runs a prompt and shows its events."""
    events: list[Event] = []
    async with aclosing(of.agent.astream(prompt)) as stream:
        async for event in stream:
            events.append(event)
            await app.presenter.event(event)
            on(event)
    return events


def scripted(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


WORK = (
    {
        "text": "I look **around**.",
        "thinking": "Where to begin?",
        "calls": [scripted("ls", path="."), scripted("read_file", path="a.txt"), scripted("read_file", path="none")],
    },
    {"calls": [scripted("write_todos", todos=[{"text": "one", "status": "in_progress"}])]},
    {"calls": [scripted("edit_file", path="a.txt", old_string="one", new_string="two")]},
    {"calls": [scripted("execute", command="echo out; exit 3")]},
    {"text": "Done."},
)


async def test_a_whole_run_and_the_same_again_from_its_log(stage: Callable[..., Stage]) -> None:
    of = stage(*WORK)
    (of.folder / "a.txt").write_text("one\n")
    async with hosted((90, 40)) as (app, pilot):
        await play(app, of, "do it")
        await sees(pilot, "❯ do it", "I look around.", "● read_file  a.txt  1 line", "✗ read_file  none", "Done.")
        live = await sees(pilot, "● edit_file  a.txt  +1 −1", "✗ $ echo out; exit 3  exit 3", "Plan 0/1", "▸ one")
        assert "write_todos" not in live
        assert not app.query("ToolCard.-running, ToolCard.-pending, ToolCard.-arriving")
    async with hosted((90, 40)) as (app, pilot):
        for event in events_of(of.entries()):
            app.presenter.show(event)
        again = await sees(pilot, "Done.")
    assert said(again) == said(live)


def said(seen: str) -> list[str]:
    """What the screen says, without times."""
    return [line[:80].rstrip() for line in seen.split("\n")]


async def test_a_compaction_in_a_real_run(stage: Callable[..., Stage]) -> None:
    many = "\n".join(f"line {number} of a long file with some words" for number in range(250))
    steps = [{"calls": [scripted("read_file", path=f"f{number}.txt")]} for number in range(14)]
    of = stage(*steps, {"text": "All read."}, settings=SMALL)
    for number in range(14):
        (of.folder / f"f{number}.txt").write_text(many)
    async with hosted((110, 60)) as (app, pilot):
        events = await play(app, of, "read them")
        live = await sees(pilot, "compaction 1", "○ read_file  f0.txt", "All read.")
        held = {message.id for message in of.agent.session.view.tail}
        shown = {line.strip().split("  ")[1]: line.strip()[0] for line in live.split("\n") if "read_file" in line}
        for event in events:
            if isinstance(event, ToolFinished):
                assert (shown[str(event.call.arguments["path"])] == "○") == (event.message.id not in held)
        async for event in of.agent.compact():
            await app.presenter.event(event)
        await sees(pilot, "compaction 2 ·", "○ read_file  f12.txt")
        async for event in of.agent.undo_compaction():
            await app.presenter.event(event)
        await sees(pilot, "compaction 2, taken back", "● read_file  f12.txt", "○ read_file  f0.txt")


async def test_an_interruption(stage: Callable[..., Stage]) -> None:
    of = stage({"text": "I wait.", "calls": [scripted("execute", command="sleep 30")]}, {"text": "Never."})
    async with hosted() as (app, pilot):
        await play(app, of, "go", lambda event: of.agent.interrupt() if isinstance(event, ToolStarted) else None)
        await sees(pilot, "✗ $ sleep 30  interrupted", "I wait.")
        assert rows(app)[-1].strip() == "interrupted"


async def test_an_answer_that_is_broken_off_stays(stage: Callable[..., Stage]) -> None:
    of = stage({"text": "word " * 50, "pace": 0.01}, {"text": "Second."})
    async with hosted() as (app, pilot):
        pieces: list[Event] = []

        def stop(event: Event) -> None:
            if isinstance(event, TextArrived):
                pieces.append(event)
                if len(pieces) == 5:
                    of.agent.interrupt()

        await play(app, of, "go", stop)
        await sees(pilot, "word word word", "interrupted")
        await play(app, of, "again")
        await sees(pilot, "❯ again", "Second.")


async def test_steering_is_shown_where_it_joined() -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(started("first", "u1"))
        app.presenter.show(answered("Working.", id="a1"))
        app.presenter.show(Steered(message=user("use tabs", "u2")))
        seen = await sees(pilot, "❯ use tabs")
        assert seen.index("Working.") < seen.index("❯ use tabs")


async def test_an_attempt_that_failed_leaves_one_notice() -> None:
    async with hosted() as (app, pilot):
        show = app.presenter.show
        for attempt in range(1, 4):
            show(CallStarted(turn=1))
            show(ReasoningArrived(text="hm"))
            show(TextArrived(text=f"try {attempt}"))
            show(ToolCallArriving(index=0, name="execute", arguments="{"))
            await sees(pilot, f"try {attempt}", "is being written, 1 characters")
            show(AnswerWithdrawn(reason="overloaded", attempt=attempt, wait=1.5))
        await until(pilot, lambda: len(rows(app)) == 1)
        assert rows(app)[0].strip() == "overloaded; trying again in 1.5 s (attempt 4)"
        show(TextArrived(text="at last"))
        show(answered("at last"))
        await sees(pilot, "at last")


async def test_text_that_was_a_call_leaves_the_screen() -> None:
    async with hosted() as (app, pilot):
        show = app.presenter.show
        for said in ("", "I look."):
            show(CallStarted(turn=1))
            show(TextArrived(text=f"{said}\n<tool_call>"))
            show(TextArrived(text='{"name": "ls"}</tool_call>'))
            await sees(pilot, "</tool_call>")
            show(AnswerReworded(text=said))
            await until(pilot, lambda: "tool_call" not in "\n".join(rows(app)))
            show(answered(said, call("ls", f"c{said}", path="a")))
            seen = await sees(pilot, "◌ ls  a  waits", said)
            assert "tool_call" not in seen
        assert "\n".join(rows(app)).count("I look.") == 1


async def test_a_call_that_is_being_written_becomes_its_card() -> None:
    async with hosted() as (app, pilot):
        show = app.presenter.show
        for _ in range(300):
            show(ToolCallArriving(index=1, name="write_file", arguments="0123456789"))
        await sees(pilot, "◌ write_file    is being written, 3,000 characters")
        show(answered("", call("read_file", "c0", path="a"), call("write_file", "c1", path="b", content="x")))
        seen = await sees(pilot, "◌ read_file  a  waits", "◌ write_file  b  waits")
        assert "being written" not in seen


async def test_what_the_log_says_replaces_what_came() -> None:
    """A secret that the model wrote is masked in the log, and then on the screen too."""
    async with hosted() as (app, pilot):
        app.presenter.show(TextArrived(text="The key is sk-123 indeed."))
        await sees(pilot, "sk-123")
        app.presenter.show(answered("The key is [masked] indeed."))
        await until(pilot, lambda: "sk-123" not in "\n".join(rows(app)))
        assert "The key is [masked] indeed." in "\n".join(rows(app))


async def test_a_long_answer_whose_log_differs() -> None:
    async with hosted((80, 24)) as (app, pilot):
        text = "".join(f"Paragraph {number} of several words.\n\n" for number in range(600))
        app.presenter.show(TextArrived(text=text))
        await sees(pilot, "Paragraph 599")
        app.presenter.show(answered(text.replace("Paragraph", "Part")))
        await sees(pilot, "Part 599")
        app.transcript.action_scroll_home()
        await sees(pilot, "Part 0 ")


async def test_the_gauge_moves_while_an_answer_is_written() -> None:
    async with hosted() as (app, _):
        app.presenter.show(gauge(1_000))
        app.presenter.show(CallStarted(turn=1))
        for _ in range(100):
            app.presenter.show(TextArrived(text="word " * 10))
        used = [one.used for one in app.gauges]
        assert used == sorted(used)
        assert 2_000 < used[-1] <= 2_250
        assert len(used) < 20
        assert app.gauges[-1].source == "estimated"
        app.presenter.show(gauge(2_100))
        assert app.gauges[-1].source == "reported"


async def test_unknown_calls_and_messages_break_nothing() -> None:
    async with hosted() as (app, pilot):
        show = app.presenter.show
        show(ToolOutput(call_id="nobody", data=b"x"))
        show(finished(call("read_file", "nobody", path="a"), summary="late"))
        show(CompactionTakenBack(compaction="nothing"))
        show(ToolStarted(call=call("execute", "other", command="ls")))
        app.presenter.decide("nobody", Approval(allowed=True))
        await sees(pilot, "● read_file  a  late", "◌ $ ls")
        app.presenter.reset()
        show(ToolOutput(call_id="other", data=b"x"))


async def test_every_outcome_says_what_happened() -> None:
    async with hosted() as (app, pilot):
        nothing = Usage(input=0, output=0)
        for outcome in get_args(Outcome):
            app.presenter.show(
                RunEnded(outcome=outcome, text="", turns=1, usage=nothing, cost=None, compactions=0, error=None)
            )
        app.presenter.show(
            RunEnded(
                outcome="error",
                text="",
                turns=1,
                usage=nothing,
                cost=None,
                compactions=0,
                error={"kind": "auth", "message": "no key [/b]"},
            )
        )
        await sees(pilot, "no key [/b]")
        assert [row.strip() for row in rows(app)] == [
            "the run ended with an error",
            "stopped: the limit of turns is reached",
            "stopped: the limit of tokens is reached",
            "stopped: the limit of cost is reached",
            "stopped: the time limit is reached",
            "interrupted",
            "no key [/b]",
        ]


# Streaming


def hostile() -> list[Event]:
    """The same text in every place that an event has for one."""
    command = call("execute", "c1", command=HOSTILE)
    edit = call("edit_file", "c2", path=HOSTILE, old_string=HOSTILE, new_string="x")
    return [
        started(HOSTILE, "u1"),
        TextArrived(text=HOSTILE),
        ReasoningArrived(text=HOSTILE),
        ToolCallArriving(index=0, name=HOSTILE, arguments=HOSTILE),
        answered(HOSTILE, command, edit, call(HOSTILE, "c3", **{HOSTILE: HOSTILE}), thinking=HOSTILE),
        ToolStarted(call=command),
        ToolOutput(call_id="c1", data=HOSTILE.encode("utf-8", "replace")),
        finished(command, HOSTILE, summary=HOSTILE, exit_code=1),
        finished(edit, HOSTILE, summary=HOSTILE, id="t2"),
        TodosChanged(items=(Todo(text=HOSTILE, status="in_progress"),)),
        Noticed(text=HOSTILE),
    ]


async def test_hostile_text_is_shown_as_it_is_everywhere() -> None:
    async with hosted((200, 60)) as (app, pilot):
        for event in hostile():
            app.presenter.show(event)
        await pilot.pause()
        app.transcript.toggle_fold()
        seen = await sees(pilot, "[/b] [=x,y] [data: /m?id=b] [")
        assert neutral(app)
        assert seen.count("[/b] [=x,y]") >= 8
        entry = compacted("u1", "u1", summary=HOSTILE)
        app.presenter.show(CompactionDone(entry=entry, archive=HOSTILE, seconds=1))
        await sees(pilot, "compaction 1")
        app.query_one("StepLine").focus()
        await pilot.pause()
        await pilot.press("enter")
        await sees(pilot, "u takes it back")
        assert neutral(app)


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (20, 5)])
async def test_hostile_text_on_tiny_screens(size: tuple[int, int]) -> None:
    async with hosted(size) as (app, pilot):
        for event in hostile():
            app.presenter.show(event)
        await pilot.pause()
        app.transcript.toggle_fold()
        await pilot.pause()
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert neutral(app)
