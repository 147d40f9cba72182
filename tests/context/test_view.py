"""The view is a function of the log, its pairs are whole, and nothing in the log changes for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from context_samples import (
    TIME,
    Rig,
    answer,
    assert_valid,
    call,
    conversations,
    entries,
    messages,
    result,
    said,
    step,
    user,
)
from deepagent.context.archive_text import write_message
from deepagent.context.entries import (
    ArgumentStub,
    Compacted,
    CompactionUndone,
    Entry,
    Offloaded,
    OffloadedBlock,
    Shortened,
    Todo,
    TodosWritten,
)
from deepagent.context.messages import AssistantMessage, Message, Pointer, Reasoning, Text, ToolMessage
from deepagent.context.pairs import INTERRUPTED, repair
from deepagent.context.session import Session
from deepagent.context.view import ViewBuilder, build_view
from hypothesis import given, settings
from hypothesis import strategies as st

POINTER = Pointer(path="p", sha256="0", bytes=1, lines=1, tokens=1, shown="see p")


def compacted(first_kept: str | None, *, entry: str = "compaction", **changes: Any) -> Compacted:
    made = Compacted(
        id=entry,
        time=TIME,
        parent=None,
        first_kept=first_kept,
        summary="s",
        by="model",
        shown="the head",
        requests=(),
        archive="a.md",
        archive_start=0,
        archive_end=1,
        tokens_before=9,
        tokens_after=1,
        messages=1,
        files_read=(),
        files_changed=(),
        reason="trigger",
    )
    return replace(made, **changes)


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    """Messages with ladder steps between them that name messages which are there, or not."""
    made: list[Entry] = []
    callers: list[AssistantMessage] = []
    for number, message in enumerate(draw(conversations())):
        made.append(said(message))
        if isinstance(message, AssistantMessage) and message.calls:
            callers.append(message)
        some = draw(st.sampled_from([*(entry.id for entry in made), "none"]))
        match draw(st.integers(0, 9)):
            case 0:
                made.append(compacted(some, entry=f"k{number}", messages=draw(st.integers(0, number))))
            case 1:
                made.append(CompactionUndone(id=f"u{number}", time=TIME, parent=None, compaction=some))
            case 2:
                block = OffloadedBlock(message=some, block=draw(st.integers(0, 2)), pointer=POINTER)
                made.append(Offloaded(id=f"o{number}", time=TIME, parent=None, blocks=(block,)))
            case 3 if callers:
                made.append(_shortened(f"s{number}", draw(st.sampled_from(callers))))
            case _:
                pass
    return made


def _shortened(entry: str, message: AssistantMessage) -> Shortened:
    one = message.calls[0]
    stub = ArgumentStub(message=message.id, call_id=one.id, argument="path", shown="stub")
    return Shortened(id=entry, time=TIME, parent=None, stubs=(stub,), tokens_saved=1)


@settings(max_examples=50, deadline=None)
@given(histories(), st.data())
def test_folding_as_entries_come_is_folding_them_all(made: list[Entry], data: st.DataObject) -> None:
    builder = ViewBuilder()
    for number, entry in enumerate(made, start=1):
        builder.add(entry)
        if data.draw(st.booleans()):
            assert builder.view == build_view(made[:number])
            assert_valid(builder.view.messages)
    assert builder.view == build_view(made)


@settings(max_examples=40, deadline=None)
@given(st.lists(entries, max_size=12))
def test_any_entries_at_all_make_a_view(made: list[Entry]) -> None:
    builder = ViewBuilder()
    for entry in made:
        builder.add(entry)
        _ = builder.view
    assert builder.view == build_view(made)


@settings(max_examples=50, deadline=None)
@given(conversations(), st.data())
def test_pairs_are_whole_whatever_messages_are_missing(history: list[Message], data: st.DataObject) -> None:
    kept = [message for message in history if data.draw(st.integers(0, 3))]
    assert_valid(repair(kept))
    results = [message for message in repair(history) if isinstance(message, ToolMessage)]
    assert {m.id for m in history if isinstance(m, ToolMessage)} <= {m.id for m in results}


@settings(max_examples=40, deadline=None)
@given(st.lists(messages, max_size=8))
def test_no_message_crashes_the_repair(made: list[Message]) -> None:
    repair(made)


def test_orphans_on_both_sides_are_repaired() -> None:
    one, two, lost = call(), call(), call()
    asked, answered, done = user("do it"), answer("yes", one, two), result(two, "done")
    repaired = repair([result(lost, "no call"), asked, answered, done, user("and now?"), result(one, "too late")])
    assert_valid(repaired)
    assert [m.role for m in repaired] == ["user", "assistant", "tool", "tool", "user"]
    assert repaired[2] is done
    missing = repaired[3]
    assert isinstance(missing, ToolMessage)
    assert (missing.call_id, missing.is_error, missing.content) == (one.id, True, (Text(text=INTERRUPTED),))


@pytest.mark.parametrize(
    "empty", [answer(), answer(""), answer(" \n"), answer(Reasoning(text="hm")), answer("", Reasoning(text="x"))]
)
def test_empty_answers_are_never_sent(empty: AssistantMessage) -> None:
    asked = user("hello")
    assert repair([asked, empty, empty]) == (asked,)
    assert build_view([said(asked), said(empty)]).tail == (asked, empty)


def test_an_answer_of_reasoning_and_calls_keeps_both() -> None:
    made = call()
    thought = answer(Reasoning(text="hm", data={"signature": "s"}), made)
    assert repair([thought, result(made, "x")])[0] is thought


def test_undo_gives_the_exact_list_back(session: Session) -> None:
    for number in range(6):
        for message in (user(f"ask {number}"), *step(f"out {number}")):
            session.say(message)
    before = session.view.messages
    cut = session.view.tail[9].id
    session.append(compacted(cut))
    assert [m.id for m in session.view.messages] == ["compaction", *[m.id for m in before[9:]]]
    session.append(CompactionUndone(**session.header(), compaction="compaction"))
    assert session.view.messages == before
    assert session.view.head is None


def test_undo_of_the_second_of_two_compactions_gives_the_first_back(session: Session) -> None:
    for number in range(6):
        session.say(user(f"ask {number}"))
    tail = session.view.tail
    session.append(compacted(tail[2].id, entry="one"))
    first = session.view
    session.append(compacted(tail[4].id, entry="two", shown="the second head"))
    session.say(user("after"))
    session.append(CompactionUndone(**session.header(), compaction="two"))
    assert session.view.messages[:-1] == first.messages
    assert session.view.head == first.head


def test_what_came_after_a_compaction_stays_when_it_is_undone(session: Session) -> None:
    one, two, three = user("one"), user("two"), user("three")
    session.say(one)
    session.say(two)
    session.append(compacted(two.id))
    session.append(TodosWritten(**session.header(), items=(Todo(text="t", status="pending"),)))
    session.say(three)
    session.append(CompactionUndone(**session.header(), compaction="compaction"))
    assert session.view.tail == (one, two, three)
    assert session.view.todos == (Todo(text="t", status="pending"),)


def test_shortening_and_offloading_change_the_view_and_never_the_log(session: Session) -> None:
    made = call("write_file", path="x.py", content="long " * 1000)
    answered, done = answer("now", made), result(made, "wide " * 1000)
    for message in (user("go"), answered, done):
        session.say(message)
    logged = list(session.entries)
    session.append(_shortened("s", answered))
    block = OffloadedBlock(message=done.id, block=0, pointer=POINTER)
    session.append(Offloaded(**session.header(), blocks=(block,)))
    shown, short = session.view.tail[2], session.view.tail[1]
    assert isinstance(shown, ToolMessage)
    assert isinstance(short, AssistantMessage)
    assert shown.content == (POINTER,)
    assert short.calls[0].arguments == {"path": "stub", "content": "long " * 1000}
    assert session.entries[:4] == logged
    assert answered.calls[0].arguments["path"] == "x.py"
    assert list(session.messages())[1:] == [answered, done]


def _bytes(view: Sequence[Message]) -> list[bytes]:
    return [write_message(message).encode() for message in view]


def test_each_request_begins_with_the_one_before_it_unless_a_step_lies_between(rig: Callable[..., Rig]) -> None:
    made = rig()
    before: list[bytes] = []
    for number in range(12):
        made.say(user(f"ask {number}"), *step(f"out {number}"), answer(f"say {number}"))
        made.session.append(TodosWritten(**made.session.header(), items=()))
        now = _bytes(made.session.view.messages)
        assert now[: len(before)] == before
        assert all(
            one is other for one, other in zip(made.session.view.messages, made.session.view.messages, strict=True)
        )
        before = now


def test_the_head_is_the_same_message_from_request_to_request(session: Session) -> None:
    one, two = user("one"), user("two")
    session.say(one)
    session.say(two)
    session.append(compacted(two.id))
    head = session.view.messages[0]
    session.say(user("three"))
    assert session.view.messages[0] is head
    assert head == replace(user("the head", synthetic=True), id="compaction")
