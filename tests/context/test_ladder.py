"""The ladder's steps in order, its breaker, and the rescue after "too long"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from context_samples import SUMMARY, Rig, answer, assert_valid, call, no_tables, result, step, user
from deepagent.context.archive_text import write_message
from deepagent.context.budget import LEAST_WINDOW, ContextSettings
from deepagent.context.entries import Offloaded
from deepagent.context.ladder import CannotUndo
from deepagent.context.messages import Message, Pointer, ToolMessage
from deepagent.context.record import Ask
from deepagent.context.storage import StorageError
from deepagent.context.tokens import Counter

Make = Callable[..., Rig]


def request(rig: Rig) -> list[str]:
    return [write_message(message) for message in rig.session.view.messages]


def fill_to(rig: Rig, share: float) -> None:
    """Talk, of which nothing can leave the view without a compaction, until the share of the trigger is in use."""
    while rig.ladder.used.tokens < share * rig.budget.trigger:
        rig.say(user("and now this"), answer("some words\n" * 60))


async def test_below_the_first_step_nothing_happens(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 0.6)
    before = made.session.view
    await made.ladder.make_room()
    assert made.session.view is before
    assert made.steps == made.troubles == made.prompts == []


async def test_at_the_trigger_it_compacts_before_the_next_request(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 1.0)
    await made.ladder.make_room()
    assert [entry.kind for entry in made.steps] == ["compacted"]
    assert made.ladder.used.tokens < made.budget.trigger
    assert made.budget.keep // 2 < made.counter.messages(made.session.view.tail) <= made.budget.keep


async def test_the_newest_results_count_before_the_next_request(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 0.8)
    before = made.ladder.used.tokens
    one, two = call(), call()
    made.say(answer(one, two))
    made.say(*made.ladder.admit_results([result(one, "w " * 2_500), result(two, "w " * 2_500)]))
    assert made.ladder.used.tokens > before + 3_000
    await made.ladder.make_room()
    assert made.ladder.used.tokens < made.budget.trigger
    assert len(made.compactions()) == 1


async def test_six_results_of_52_000_characters_in_a_small_window_need_no_summary(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    made.say(user("the task, word for word"))
    for number in range(6):
        made_call = call("read_file", path=f"f{number}")
        made.say(answer(made_call))
        made.say(*made.ladder.admit_results([result(made_call, f"line of file {number}\n" * 2_600)]))
        await made.ladder.make_room()
    assert made.prompts == []
    assert "the task, word for word" in request(made)[0]
    assert made.ladder.used.tokens < made.budget.tokens


async def test_without_auto_compact_offloading_stays(rig: Make) -> None:
    made = rig(answers=[SUMMARY], settings=ContextSettings(auto_compact=False))
    written = call("write_file", path="x", content="y" * 9_000)
    made.say(answer(written), result(written, "ok"))
    fill_to(made, 1.1)
    await made.ladder.make_room()
    assert made.steps == []
    assert isinstance(made.ladder.admit_results([result(written, "z " * 9_000)])[0].content[0], Pointer)


async def test_after_two_compactions_without_effect_it_stops_and_says_why(rig: Make) -> None:
    made = rig(answers=["x" * 90_000])
    made.meter.overhead = 13_000
    made.say(user("go"), *(message for _ in range(9) for message in step("out " * 200)))
    await made.ladder.make_room()
    assert len(made.compactions()) == len(made.prompts) == 2
    trouble = made.troubles[-1]
    for part in (f"{made.budget.trigger:,}", f"{made.ladder.used.tokens:,}", "14,300", "until your next message"):
        assert part in trouble
    made.say(*step("more"))
    await made.ladder.make_room()
    assert len(made.prompts) == 2
    assert len(made.troubles) == 1
    made.say(made.ladder.admit_user(user("try again")))
    await made.ladder.make_room()
    assert len(made.prompts) == 4


async def test_where_nothing_can_go_it_says_so_and_asks_no_model(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    made.meter.overhead = 15_000
    made.say(user("alone"))
    await made.ladder.make_room()
    assert made.prompts == []
    assert len(made.troubles) == 1


async def test_an_archive_that_cannot_be_written_is_tried_once_a_message(
    rig: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 1.0)

    def fail(*_: object) -> Any:
        raise StorageError("cannot write /x/archive.md: the disk is full")

    monkeypatch.setattr(made.session.archive, "add", fail)
    for _ in range(3):
        await made.ladder.make_room()
    assert made.troubles == ["not compacted, all messages stay: cannot write /x/archive.md: the disk is full"]
    assert made.compactions() == []


class Watched(Counter):
    """Notes how many messages it is asked for."""

    asked = 0

    def message(self, message: Message) -> int:
        self.asked += 1
        return super().message(message)


async def test_a_turn_after_thousands_of_messages_counts_its_own_alone(rig: Make) -> None:
    counter = Watched(no_tables)
    made = rig(window=10_000_000, counter=counter)
    for number in range(1_500):
        made.say(*step(f"output {number}"))
        if number % 100 in (0, 1):
            counter.asked = 0
            made.say(answer(one := call()))
            assert made.ladder.used.tokens > 0
            made.say(result(one, "done"))
            await made.ladder.make_room()
            assert made.ladder.used.tokens > 0
            if number % 100:
                assert counter.asked <= 12


# After "too long"


async def test_first_the_newest_results_go_to_files(rig: Make) -> None:
    made = rig(answers=[SUMMARY], window=128_000)
    fill_to(made, 0.3)
    one, two, three = call(), call(), call()
    texts = ["first " * 5_000, "second " * 4_000, "short"]
    made.say(answer(one, two, three), *(result(c, t) for c, t in zip((one, two, three), texts, strict=True)))
    before, counted = request(made), made.meter.count(made.session.view.messages)
    assert await made.ladder.rescue(1)
    (done,) = made.steps
    assert isinstance(done, Offloaded)
    assert made.meter.count(made.session.view.messages) < counted
    assert request(made)[:-3] == before[:-3]
    assert request(made)[-1] == before[-1]
    for message, text in zip(made.session.view.tail[-3:-1], texts, strict=False):
        assert isinstance(message, ToolMessage)
        (pointer,) = message.content
        assert isinstance(pointer, Pointer)
        assert made.session.storage.read(pointer.path.removeprefix(".deepagents/")).decode() == text
    assert made.prompts == []


async def test_then_it_compacts_with_half_the_keep(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 0.9)
    counted = made.meter.count(made.session.view.messages)
    assert await made.ladder.rescue(1)
    assert made.compactions()[-1].reason == "overflow"
    assert made.meter.count(made.session.view.messages) < counted
    assert made.counter.messages(made.session.view.tail) <= made.budget.keep // 2


async def test_a_rescue_makes_the_request_smaller_or_says_that_it_cannot(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 0.95)
    one = call()
    made.say(answer(one), result(one, "x" * 3_000))
    seen = [request(made)]
    for attempt in range(1, 9):
        before = made.meter.count(made.session.view.messages)
        if not await made.ladder.rescue(attempt):
            break
        assert made.meter.count(made.session.view.messages) < before
        assert request(made) not in seen
        assert_valid(made.session.view.messages)
        seen.append(request(made))
    else:
        pytest.fail("the rescue never said that it cannot do more")
    assert len(seen) > 2


async def test_results_whose_pointer_would_be_longer_are_left_alone(rig: Make) -> None:
    made = rig(window=8_000)
    one = call()
    made.say(user("go"), answer(one), result(one, "word\n" * 250))
    await made.ladder.rescue(1)
    assert not [entry for entry in made.steps if isinstance(entry, Offloaded)]


async def test_one_message_alone_cannot_be_rescued(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    made.say(user("long " * 300))
    before = made.session.view
    assert not await made.ladder.rescue(1)
    assert made.session.view is before
    assert made.prompts == []


async def test_a_rescue_with_a_full_disk_is_no_crash(rig: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 0.4)
    one = call()
    made.say(answer(one), result(one, "word " * 3_000))

    def fail(*_: object) -> Any:
        raise StorageError("cannot write /x: the disk is full")

    monkeypatch.setattr(made.session.storage, "create", fail)
    assert await made.ladder.rescue(1)
    assert "the disk is full" in made.troubles[0]
    monkeypatch.setattr(made.session.archive, "add", fail)
    before = request(made)
    assert not await made.ladder.rescue(2)
    assert request(made) == before


@pytest.mark.parametrize(("named", "window"), [(4_096, 4_096), (0, LEAST_WINDOW), (-5, LEAST_WINDOW)])
async def test_the_window_that_an_overflow_named_is_taken(rig: Make, named: int, window: int) -> None:
    made = rig(window=200_000, source="assumed", answers=[SUMMARY])
    assert made.budget.keep_messages == 6
    made.ladder.lower_window(named)
    assert (made.budget.window.tokens, made.budget.window.source) == (window, "overflow")
    assert made.budget.keep_messages is None
    assert 0 < made.budget.trigger < made.budget.tokens


# Taking back


async def test_a_compaction_that_was_taken_back_pauses_the_next_until_a_message(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 1.0)
    before = made.session.view
    await made.ladder.make_room()
    made.ladder.undo()
    assert made.session.view.messages == before.messages
    await made.ladder.make_room()
    assert len(made.compactions()) == 1
    made.say(made.ladder.admit_user(user("go on")))
    await made.ladder.make_room()
    assert len(made.compactions()) == 2


async def test_a_compaction_that_would_not_fit_is_not_taken_back(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill_to(made, 1.0)
    await made.ladder.make_room()
    after = made.session.view
    made.ladder.lower_window(8_000)
    with pytest.raises(CannotUndo, match=r"[\d,]+ tokens, and 6,960 are the limit"):
        made.ladder.undo()
    assert made.session.view is after
    await made.ladder.compact(Ask(reason="user"))


def test_without_a_compaction_there_is_none_to_take_back(rig: Make) -> None:
    with pytest.raises(CannotUndo):
        rig().ladder.undo()
