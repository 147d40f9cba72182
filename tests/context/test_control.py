"""What the user does by hand: pins, drops, restores, rewinds, and the look at a compaction before it happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from context_samples import SUMMARY, Rig, answer, assert_valid, call, result, step, user
from deepagent.context.control import CannotDo, Control
from deepagent.context.entries import Compacted, Rewound
from deepagent.context.messages import Pointer, ToolMessage, UserMessage, text_of
from deepagent.context.record import Ask
from deepagent.context.stubs import STUB_MARK
from deepagent.context.view import build_view

Make = Callable[..., Rig]


def control(made: Rig) -> Control:
    return Control(ladder=made.ladder)


def texts(made: Rig) -> list[str]:
    """What the model is sent in the user's and the tools' role."""
    return [text_of(m) for m in made.session.view.messages if isinstance(m, UserMessage | ToolMessage)]


async def test_a_pin_is_told_once_and_outlives_every_compaction(rig: Make) -> None:
    made = rig(answers=["nonsense that says nothing of it, at some length"])
    made.say(user("the task"), *step("out"))
    control(made).pin("never touch `legacy/`\n  not even the tests")
    for _ in range(3):
        await made.ladder.make_room()
    assert sum("never touch `legacy/`\n  not even the tests" in text for text in texts(made)) == 1
    assert_valid(made.session.view.messages)
    for number in range(4):
        made.say(user(f"next {number}"), *step("words " * 400), answer("done"))
        await made.ladder.compact(Ask(reason="user"))
        await made.ladder.make_room()
        assert sum("never touch `legacy/`\n  not even the tests" in text for text in texts(made)) == 1


async def test_what_the_user_said_before_is_not_told_again(rig: Make) -> None:
    made = rig()
    made.say(user("only Python 3.11"), answer("Yes."))
    pin = control(made).pin("only Python 3.11")
    before = made.session.view.messages
    assert pin.message == before[0].id
    await made.ladder.make_room()
    assert made.session.view.messages == before


def test_pins_are_let_go_by_number_or_id(rig: Make) -> None:
    made = rig()
    one, two, three = (control(made).pin(text) for text in ("one", "two", "three"))
    control(made).unpin("2")
    control(made).unpin(three.id[:6])
    assert made.session.view.pins == (one,)
    for name in ("", "9", two.id):
        with pytest.raises(CannotDo):
            control(made).unpin(name)


def test_pins_have_their_share_and_no_more(rig: Make) -> None:
    made = rig()
    control(made).pin("word " * 200)
    with pytest.raises(CannotDo, match=r"696 tokens together"):
        control(made).pin("word " * 600)
    with pytest.raises(CannotDo, match="nothing to pin"):
        control(made).pin(" \n")


def test_a_result_is_dropped_and_restored_byte_for_byte(rig: Make) -> None:
    made = rig()
    first, second = call(), call("read_file", path="a")
    logged = result(first, "first output\n" * 90), result(second, "text\n" * 90, path="a")
    made.say(user("go"), answer(first, second), *logged, answer("done"))
    before = made.session.view.messages
    control(made).drop(logged[0].id[:8])
    control(made).drop("last")
    shown = [m for m in made.session.view.messages if isinstance(m, ToolMessage)]
    assert all(isinstance(block, Pointer) and STUB_MARK in block.shown for m in shown for block in m.content)
    pointer = shown[0].content[0]
    assert isinstance(pointer, Pointer)
    assert made.session.storage.read(pointer.path.removeprefix(".deepagents/")).decode() == "first output\n" * 90
    with pytest.raises(CannotDo, match="only a pointer"):
        control(made).drop(logged[0].id)
    control(made).restore(logged[0].id)
    control(made).restore(logged[1].id)
    assert made.session.view.messages == before
    made.ladder.trim()
    assert made.session.view.messages == before
    with pytest.raises(CannotDo, match="in the view"):
        control(made).restore("last")
    with pytest.raises(CannotDo, match="names no result"):
        control(made).drop("nothing")


def test_what_does_not_fit_any_more_is_not_restored(rig: Make) -> None:
    made = rig()
    one = call()
    made.say(user("go"), answer(one), logged := result(one, "w " * 6_000), answer("done"))
    control(made).drop(logged.id)
    made.say(user("z " * 18_000))
    with pytest.raises(CannotDo, match=r"would have [\d,]+ tokens; 13,920 fit"):
        control(made).restore(logged.id)


async def test_rewound_the_view_is_what_it_was_and_later_talk_does_not_come_back(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    made.say(user("first"), *step("one"), answer("done"))
    before = made.session.view
    made.say(wrong := user("a wrong turn"), *step("two"))
    control(made).pin("a pin of the wrong turn")
    entry = control(made).rewind(wrong.id[:8])
    assert isinstance(entry, Rewound)
    assert made.session.view == before == build_view(made.session.entries)
    made.say(user("second"), *step("words " * 900), answer("done"))
    await made.ladder.compact(Ask(reason="user"))
    assert "a wrong turn" not in made.head()
    assert "first" in made.head()
    assert any(isinstance(e, Compacted) for e in made.session.live)
    control(made).rewind("last")
    with pytest.raises(CannotDo, match="names no message"):
        control(made).rewind(wrong.id)


async def test_a_compaction_that_was_rewound_cannot_be_undone(rig: Make) -> None:
    from deepagent.context.ladder import CannotUndo

    made = rig(answers=[SUMMARY])
    made.say(user("first"), *step("words " * 900), answer("done"), wrong := user("then"), *step("x"))
    await made.ladder.compact(Ask(reason="user"))
    control(made).rewind(wrong.id)
    assert made.session.view.head is None
    with pytest.raises(CannotUndo):
        made.ladder.undo()


async def test_the_preview_says_about_what_the_compaction_does(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    assert control(made).preview() is None
    for number in range(9):
        made.say(user(f"request {number}"), *step("words " * 300), answer("done"))
    before = made.session.view
    preview = control(made).preview("the tests")
    assert made.session.view is before
    assert made.prompts == []
    assert preview is not None
    entry = await made.ladder.compact(Ask(reason="user"))
    assert entry is not None
    assert (len(preview.plan.evicted), preview.requests, preview.before) == (
        entry.messages,
        entry.requests,
        entry.tokens_before,
    )
    assert abs(preview.after - entry.tokens_after) <= made.budget.summary_limit
    assert preview.cached == 0 < preview.sent


async def test_the_point_where_compaction_starts_can_be_moved(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    made.say(user("z " * 11_000), *step("x"), answer("w " * 300), user("and?"))
    control(made).compact_at(None)
    await made.ladder.make_room()
    assert made.compactions() == []
    control(made).compact_at(0.4)
    assert made.budget.trigger == 6_400
    await made.ladder.make_room()
    assert len(made.compactions()) == 1
    with pytest.raises(ValueError, match="compact_at"):
        control(made).compact_at(7)
