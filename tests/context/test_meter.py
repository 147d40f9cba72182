"""The one figure for how full the window is: right after every step, and never a running sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from context_samples import TIME, Rig, answer, no_tables, step, user
from deepagent.context.entries import CompactionUndone, Usage, UsageReported
from deepagent.context.messages import Message, new_id
from deepagent.context.meter import MARGIN, Meter
from deepagent.context.record import Ask
from deepagent.context.session import Session
from deepagent.context.tokens import Counter
from hypothesis import given, settings
from hypothesis import strategies as st


def words() -> Counter:
    """A tokenizer of words."""
    counter = Counter(lambda: lambda text: range(len(text.split())))
    counter.prepare()
    return counter


def report(tokens: int, counted: int, *, message: str | None = None, **changes: object) -> UsageReported:
    made = UsageReported(
        id=new_id(),
        time=TIME,
        parent=None,
        model="m",
        usage=Usage(input=tokens, output=50),
        cost=None,
        purpose="turn",
        message=message,
        counted=counted,
    )
    return replace(made, **changes)  # pyright: ignore[reportArgumentType] - a test names the fields


def say(count: int) -> Message:
    """A message of `count` tokens by `words`."""
    return user("w " * (count - 4))


def test_before_the_first_report_it_is_our_count_with_a_margin() -> None:
    meter = Meter(words(), "m")
    meter.overhead = 1_000
    used = meter.used([say(2_000)])
    assert (used.tokens, used.source) == (int(3_000 * MARGIN), "counted")
    estimating = Meter(Counter(no_tables), "m")
    assert estimating.used([say(2_000)]).source == "estimated"


def test_after_a_report_it_is_the_report_and_what_came_since_scaled() -> None:
    meter = Meter(words(), "m")
    meter.overhead = 1_000
    messages = [say(9_000)]
    meter.add(report(12_000, meter.count(messages)))
    assert meter.used(messages) == replace(meter.used(messages), tokens=12_000, source="reported")
    assert meter.used([*messages, say(1_000)]).tokens == pytest.approx(13_200, abs=5)
    assert meter.scale(1_000) == 1_200
    meter.overhead = 1_500
    assert meter.used(messages).tokens == pytest.approx(12_600, abs=5)


@pytest.mark.parametrize("tokens", [4_096, 45_000])
def test_a_ratio_that_cannot_be_is_flagged_and_never_learned(tokens: int) -> None:
    meter = Meter(words(), "m")
    messages = [say(10_000)]
    meter.add(report(11_000, 10_000))
    odd = report(tokens, 20_000)
    meter.add(odd)
    assert meter.suspicious is odd
    assert meter.scale(1_000) == 1_100
    assert meter.used(messages).tokens == 11_000
    meter.add(report(11_000, 10_000))
    assert meter.suspicious is None


def test_a_short_request_teaches_no_ratio() -> None:
    meter = Meter(words(), "m")
    meter.add(report(900, 100))
    assert meter.suspicious is None
    assert meter.used([say(200)]).tokens == 1_000


@pytest.mark.parametrize("tokens", [0, -1])
def test_a_server_that_reports_nothing_as_zero_is_not_believed(tokens: int) -> None:
    meter = Meter(words(), "m")
    meter.add(report(tokens, 20_000))
    meter.add(report(tokens, 100))
    assert meter.suspicious is None
    assert meter.used([say(1_000)]).tokens == int(1_000 * MARGIN)


def test_five_calls_are_not_added_up() -> None:
    meter = Meter(words(), "m")
    messages = [say(50_000)]
    for _ in range(5):
        meter.add(report(50_000, 50_000, usage=Usage(input=50_000, output=900, cache_read=49_000)))
    assert meter.used(messages).tokens == 50_000


def test_summaries_and_other_models_are_not_this_models_filling() -> None:
    meter = Meter(words(), "m")
    meter.add(report(10_000, 10_000))
    meter.add(report(99_000, 90_000, purpose="summary"))
    meter.add(report(99_000, 90_000, model="other"))
    assert meter.used([say(10_000)]).tokens == 10_000


async def test_it_is_right_at_once_after_a_compaction_its_undo_and_a_resume(session: Session) -> None:
    counter = words()
    rig = Rig(session, window=60_000, counter=counter)
    rig.meter.overhead = 500
    for number in range(20):
        rig.say(*step("w " * 1_000 + str(number)))
    counted = rig.meter.count(session.view.messages)
    entry = report(int(1.1 * counted), counted)
    session.append(entry)
    rig.meter.add(entry)
    before = rig.ladder.used
    done = await rig.ladder.compact(Ask(reason="user"))
    assert done is not None
    after = rig.ladder.used
    assert after.tokens == pytest.approx(1.1 * rig.meter.count(session.view.messages), abs=3)
    assert after.tokens == pytest.approx(done.tokens_after, abs=3)
    assert done.tokens_before == before.tokens
    assert after.source == "counted"
    undone = CompactionUndone(**session.header(), compaction=done.id)
    session.append(undone)
    rig.meter.add(undone)
    assert rig.ladder.used.tokens == before.tokens
    again = Meter(counter, "m")
    for logged in session.entries:
        again.add(logged)
    again.overhead = 500
    assert again.used(session.view.messages).tokens == before.tokens


def test_a_resume_before_the_tables_are_there_estimates_only_what_is_new() -> None:
    """Estimates are a third too high; on a whole history that would compact for nothing."""
    messages = [user("some words that are rather short " * 1_000), answer("yes"), user("go on")]
    exact = words()
    meter = Meter(Counter(no_tables), "m")
    meter.add(report(110_000, 100_000, message=messages[1].id))
    meter.overhead = 5_000
    used = meter.used(messages)
    assert 110_000 < used.tokens < 110_100
    assert Meter(exact, "m").count(messages) < 10_000


def test_until_the_tables_are_there_a_changed_view_is_estimated_whole() -> None:
    counter = Counter(no_tables)
    meter = Meter(counter, "m")
    messages = [user("before"), answer("yes")]
    meter.add(report(110_000, 100_000, message=messages[1].id))
    meter.add(CompactionUndone(id="u", time=TIME, parent=None, compaction="c"))
    used = meter.used(messages)
    assert (used.tokens, used.source) == (counter.messages(messages), "estimated")


pool = [say(number + 10) for number in range(30)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from(pool), max_size=12), max_size=8), st.booleans())
def test_counting_what_differs_is_counting_all(views: list[Sequence[Message]], overhead: bool) -> None:
    counter = words()
    meter = Meter(counter, "m")
    for view in views:
        meter.overhead = 7 if overhead else 0
        assert meter.count(tuple(view)) == meter.overhead + sum(counter.message(message) for message in view)
