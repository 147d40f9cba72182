"""Where a compaction cuts: pairs whole, open calls and the newest messages kept, as much as the keep allows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from context_samples import answer, assert_valid, call, conversations, result, step, user
from deepagent.context.messages import AssistantMessage, Message, ToolMessage
from deepagent.context.pairs import repair
from deepagent.context.plan import Plan, plan_cut
from hypothesis import given, settings
from hypothesis import strategies as st


def cost(message: Message) -> int:
    return len(repr(message.content))


def tokens(messages: Sequence[Message]) -> int:
    return sum(cost(message) for message in messages)


def groups(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages that may not be parted."""
    made: list[list[Message]] = []
    for message in messages:
        if isinstance(message, ToolMessage) and made:
            made[-1].append(message)
        else:
            made.append([message])
    return made


def open_calls(messages: Sequence[Message]) -> set[str]:
    answered = {message.call_id for message in messages if isinstance(message, ToolMessage)}
    last = groups(messages)[-1][0]
    return {c.id for c in last.calls if c.id not in answered} if isinstance(last, AssistantMessage) else set()


def check(history: list[Message], plan: Plan | None, keep: int) -> None:
    found = groups(history)
    if plan is None:
        assert len(found) == 1
        return
    assert [*plan.evicted, *plan.kept] == history
    assert plan.evicted
    assert not isinstance(plan.kept[0], ToolMessage)
    assert [m for group in groups(plan.kept) for m in group] == list(plan.kept)
    assert groups(plan.evicted) + groups(plan.kept) == found, "a pair was parted"
    assert not open_calls(plan.evicted) & open_calls(history)
    if groups(plan.kept) != found[-1:]:
        assert tokens(plan.kept) <= keep
    if len(groups(plan.evicted)) > 1:
        more = [*groups(plan.evicted)[-1], *plan.kept]
        assert tokens(more) > keep or tokens(more) > tokens(history) // 2, "more would have fitted"
    assert_valid(repair(plan.kept))


@settings(max_examples=100, deadline=None)
@given(conversations(), st.integers(0, 20_000))
def test_any_history_is_cut_between_groups(history: list[Message], keep: int) -> None:
    check(history, plan_cut(history, cost=cost, keep=keep), keep)


@settings(max_examples=60, deadline=None)
@given(conversations(most_calls=25), st.integers(0, 20_000))
def test_twenty_five_parallel_calls_are_no_exception(history: list[Message], keep: int) -> None:
    check(history, plan_cut(history, cost=cost, keep=keep), keep)


@pytest.mark.long
@settings(max_examples=10_000, deadline=None)
@given(conversations(most_calls=25), st.integers(0, 20_000))
def test_any_history_is_cut_between_groups_at_volume(history: list[Message], keep: int) -> None:
    check(history, plan_cut(history, cost=cost, keep=keep), keep)


@settings(max_examples=80, deadline=None)
@given(conversations(), st.integers(1, 12))
def test_a_number_of_messages_is_kept_where_the_window_is_assumed(history: list[Message], number: int) -> None:
    plan = plan_cut(history, cost=cost, keep=0, keep_messages=number)
    if plan is not None:
        assert len(plan.kept) <= number or groups(plan.kept) == groups(history)[-1:]
        assert not isinstance(plan.kept[0], ToolMessage)


@pytest.mark.parametrize("number", [1, 6, 25, 26, 40])
def test_a_batch_of_twenty_five_is_kept_or_goes_whole(number: int) -> None:
    made = [call("read_file") for _ in range(25)]
    batch = [answer(*made), *(result(one, "x") for one in made)]
    history = [*[user("earlier")] * 60, *batch, user("newest")]
    plan = plan_cut(history, cost=cost, keep=0, keep_messages=number)
    assert plan is not None
    assert len([m for m in plan.kept if m in batch]) in {0, 26}
    assert (len(plan.kept) >= 27) == (number >= 27)


def test_an_open_call_and_the_results_that_it_has_stay() -> None:
    one, two = call(), call()
    history: list[Message] = [user("a"), user("b"), answer(one, two), result(one, "x " * 500)]
    plan = plan_cut(history, cost=cost, keep=0)
    assert plan is not None
    assert plan.kept == tuple(history[2:])


def test_a_call_that_a_later_request_left_open_may_go() -> None:
    history: list[Message] = [user("a"), answer(call()), user("b"), user("c")]
    plan = plan_cut(history, cost=cost, keep=0)
    assert plan is not None
    assert plan.kept == (history[-1],)


def test_the_newest_request_stays_though_it_is_long() -> None:
    history = [*step("old"), user("newest " * 5000)]
    plan = plan_cut(history, cost=cost, keep=10)
    assert plan is not None
    assert plan.kept == (history[-1],)


@pytest.mark.parametrize("history", [[], [user("alone")], list(step("one group alone"))])
def test_nothing_goes_where_there_is_one_group(history: list[Message]) -> None:
    assert plan_cut(history, cost=cost, keep=0) is None


def test_when_all_would_fit_half_goes_so_that_the_summary_pays() -> None:
    history = [user(f"message {number}") for number in range(10)]
    plan = plan_cut(history, cost=lambda _: 100, keep=10**6)
    assert plan is not None
    assert plan.kept == tuple(history[5:])
    plan = plan_cut(history, cost=lambda _: 100, keep=0, keep_messages=50)
    assert plan is not None
    assert plan.kept == tuple(history[5:])
