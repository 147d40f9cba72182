"""How a record is got: by extending the conversation, as plain text, prepared ahead, or without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from context_samples import SUMMARY, Rig, answer, step, user
from deepagent.context.cache import CacheTerms
from deepagent.context.control import Control
from deepagent.context.record import Ask
from deepagent.context.summary import Summarizer

Make = Callable[..., Rig]


class Extending:
    """A summarizer that can do both, and notes what it is asked."""

    def __init__(self, made: Rig, *answers: str, plain: str = SUMMARY, window: int = 16_000) -> None:
        self.extended: list[str] = []
        self.plain: list[str] = []
        self._answers = answers
        self._text = plain
        self.wait = asyncio.Event()
        self.wait.set()
        self.failure: Exception | None = None
        by = Summarizer(ask=self._ask, window=window, extend=self._extend)
        made.compactor.recorder = replace(made.compactor.recorder, summarizer=lambda: by)

    async def _ask(self, prompt: str, _: int) -> str:
        self.plain.append(prompt)
        return self._text

    async def _extend(self, prompt: str, _: int) -> str:
        self.extended.append(prompt)
        await self.wait.wait()
        if self.failure is not None:
            raise self.failure
        return self._answers[min(len(self.extended), len(self._answers)) - 1]


def talk(made: Rig, turns: int = 12) -> None:
    made.say(user("the task"))
    for number in range(turns):
        made.say(*step(f"part {number} " * 200), answer(f"note {number} " * 40), user(f"and {number}"))


async def test_with_a_warm_cache_the_conversation_is_extended(rig: Make) -> None:
    made = rig(window=64_000)
    by = Extending(made, SUMMARY, window=64_000)
    talk(made)
    made.report()
    entry = await made.ladder.compact(Ask(reason="user", focus="the tests"))
    assert entry is not None
    assert (entry.by, entry.summary) == ("model", SUMMARY.strip())
    assert by.plain == []
    (prompt,) = by.extended
    assert "The user wants attention to: the tests" in prompt
    kept = made.session.view.tail[0]
    assert "and 1" in str(kept) or "note" in str(kept) or "part" in str(kept)
    assert "Call no tool" in prompt


async def test_cold_or_without_a_cache_the_cheaper_form_is_text(rig: Make) -> None:
    made = rig(window=64_000)
    by = Extending(made, SUMMARY, window=64_000)
    talk(made)
    await made.ladder.compact(Ask(reason="user"))
    assert (len(by.plain), by.extended) == (1, [])
    talk(made)
    made.report()
    made.compactor.recorder = replace(made.compactor.recorder, cache=CacheTerms(read=1.0))
    await made.ladder.compact(Ask(reason="user"))
    assert (len(by.plain), by.extended) == (2, [])


async def test_after_an_overflow_and_where_it_does_not_fit_the_form_is_text(rig: Make) -> None:
    made = rig(window=64_000)
    by = Extending(made, SUMMARY, window=64_000)
    talk(made)
    made.report()
    await made.ladder.compact(Ask(reason="overflow"))
    assert (len(by.plain), by.extended) == (1, [])
    small = Extending(made, SUMMARY, window=4_000)
    talk(made)
    made.report()
    await made.ladder.compact(Ask(reason="user"))
    assert small.extended == []
    assert small.plain


async def test_an_answer_that_says_nothing_or_fails_leads_to_the_other_form(rig: Make) -> None:
    for failure in (None, OSError("refused")):
        made = rig(window=64_000)
        by = Extending(made, " \n# only a heading\n", window=64_000)
        by.failure = failure
        talk(made)
        made.report()
        entry = await made.ladder.compact(Ask(reason="user"))
        assert entry is not None
        assert (entry.by, len(by.extended), len(by.plain)) == ("model", 1, 1)
        assert "another form" in made.troubles[-1]


async def test_a_record_is_prepared_ahead_and_used_at_the_trigger(rig: Make) -> None:
    made = rig()
    by = Extending(made, SUMMARY)
    made.ladder.may_prepare = lambda: True
    made.say(user("ask " * 40))
    made.report()
    while made.ladder.used.tokens < made.budget.prepare:
        made.say(user("ask " * 40), answer("say " * 40))
    first = made.session.view.tail
    await made.ladder.make_room()
    await asyncio.sleep(0)
    assert len(by.extended) == 1
    assert made.compactions() == []
    while made.ladder.used.tokens < made.budget.trigger:
        made.say(user("ask " * 40), answer("say " * 40))
        if made.ladder.used.tokens < made.budget.trigger:
            await made.ladder.make_room()
    await made.ladder.make_room()
    (entry,) = made.compactions()
    assert (len(by.extended), by.plain, entry.by) == (1, [], "model")
    assert entry.first_kept in {message.id for message in first}
    assert made.ladder.used.tokens < made.budget.trigger
    await made.ladder.make_room()
    assert len(by.extended) == 1


async def test_a_prepared_record_whose_cut_is_gone_is_not_used(rig: Make) -> None:
    made = rig()
    by = Extending(made, SUMMARY)
    talk(made, 8)
    made.report()
    by.wait.clear()
    made.compactor.prepare(made.budget)
    await asyncio.sleep(0)
    Control(ladder=made.ladder).rewind(made.session.requests()[2].id)
    talk(made, 8)
    by.wait.set()
    entry = await made.ladder.compact(Ask(reason="trigger"))
    assert entry is not None
    assert len(by.extended) + len(by.plain) == 2


async def test_a_prepared_record_that_failed_is_asked_for_again(rig: Make) -> None:
    made = rig()
    by = Extending(made, SUMMARY, plain="")
    by.failure = OSError("no")
    talk(made, 8)
    made.report()
    made.compactor.prepare(made.budget)
    await asyncio.sleep(0.01)
    by.failure = None
    entry = await made.ladder.compact(Ask(reason="trigger"))
    assert entry is not None
    assert entry.by == "model"


async def test_closing_gives_up_what_is_being_prepared(rig: Make) -> None:
    made = rig()
    by = Extending(made, SUMMARY)
    talk(made, 8)
    made.report()
    by.wait.clear()
    made.compactor.prepare(made.budget)
    await asyncio.sleep(0)
    await made.compactor.close()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_without_a_model_the_same_log_gives_the_same_record(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    talk(made, 8)
    first = await made.ladder.compact(Ask(reason="user", model=False))
    made.ladder.undo()
    second = await made.ladder.compact(Ask(reason="user", model=False))
    assert first is not None
    assert second is not None
    assert (first.by, first.summary, first.shown) == ("harness", second.summary, second.shown)
    assert made.prompts == []
