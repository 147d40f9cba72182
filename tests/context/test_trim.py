"""Trimming: what the work has passed by leaves the view without a model, when it pays, and can be had again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from context_samples import SUMMARY, Rig, answer, assert_valid, call, result, user
from deepagent.context.budget import ContextSettings
from deepagent.context.cache import CacheTerms, is_cold, pays
from deepagent.context.entries import Shortened
from deepagent.context.facts import ADDED, FIRST_LINE, LAST_LINE, PATH, REMOVED
from deepagent.context.messages import Message, Pointer, ToolMessage, text_of
from deepagent.context.stubs import STUB_MARK
from deepagent.context.tokens import Counter
from deepagent.context.trim import plan_trim
from hypothesis import given, settings
from hypothesis import strategies as st

Make = Callable[..., Rig]


def read(path: str, first: int = 1, last: int = 99, *, words: int = 900) -> list[Message]:
    """A file that is read."""
    made = call("read_file", path=path)
    done = result(made, f"text of {path} " * (words // 3))
    return [answer(made), replace(done, log={PATH: path, FIRST_LINE: first, LAST_LINE: last})]


def edit(path: str) -> list[Message]:
    """A file that is edited."""
    made = call("edit_file", path=path)
    return [answer(made), replace(result(made, "changed"), log={PATH: path, ADDED: 1, REMOVED: 1})]


def run(words: int = 900) -> list[Message]:
    """A command."""
    made = call("execute", command="make")
    return [answer(made), result(made, "out " * words, command="make", exit_code=0)]


def nothing(_: ToolMessage) -> bool:
    return False


def planned(messages: list[Message], tables: Counter, *, keep: int = 50, enough: int = 0) -> dict[str, str]:
    """Which reads and commands would go, by their place among the results, and why."""
    plan = plan_trim(messages, keep=keep, enough=enough, counter=tables, spared=nothing)
    results = [m for m in messages if isinstance(m, ToolMessage)]
    return {f"{results.index(one.message)} {one.message.log.get(PATH, 'command')}": one.why for one in plan.results}


def test_a_read_is_stale_when_its_lines_were_read_again_or_its_file_was_edited(tables: Counter) -> None:
    messages = [
        *read("a", 1, 50),
        *read("a", 51, 99),
        *read("b"),
        *read("a", 1, 60),
        *edit("b"),
        *read("c"),
        *run(),
        user("go on"),
    ]
    assert planned(messages, tables) == {"0 a": "stale", "2 b": "stale"}


def test_a_failed_edit_makes_nothing_stale(tables: Counter) -> None:
    failed = call("edit_file", path="a")
    messages = [
        *read("a"),
        answer(failed),
        replace(result(failed, "no", is_error=True), log={PATH: "a", ADDED: 0}),
        *run(),
    ]
    assert planned(messages, tables) == {}


def test_old_results_go_the_large_and_the_old_first_until_enough_is_free(tables: Counter) -> None:
    messages = [*read("small", words=300), *run(3_000), *run(800), *read("late", words=800), user("go on")]
    assert planned(messages, tables, enough=1) == {"1 command": "old"}
    assert planned(messages, tables, enough=3_000) == {"1 command": "old", "2 command": "old"}
    assert len(planned(messages, tables, enough=10**6)) == 4


def test_what_is_new_or_short_or_spared_stays(tables: Counter) -> None:
    messages = [*run(100), *read("a"), *run()]
    assert planned(messages, tables, keep=10**6, enough=10**6) == {}
    assert planned(messages, tables, keep=1_000, enough=10**6) == {"1 a": "old"}
    plan = plan_trim(messages, keep=0, enough=10**6, counter=tables, spared=lambda m: m.tool == "read_file")
    assert plan.results == ()


def test_the_newest_result_stays_whatever_the_keep(tables: Counter) -> None:
    assert planned([*run()], tables, keep=0, enough=10**6) == {}


async def test_results_leave_the_view_from_trim_on_and_every_byte_can_be_had_again(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    messages: list[Message] = []
    made.say(user("the task"))
    while made.ladder.used.tokens < 0.95 * made.budget.trigger:
        new = [*read(f"f{len(messages)}", words=600), *run(400)]
        messages += new
        made.say(*new)
    made.say(user("and now?"))
    assert made.budget.trim < made.ladder.used.tokens < made.budget.trigger
    await made.ladder.make_room()
    (entry,) = made.steps
    assert isinstance(entry, Shortened)
    assert made.ladder.used.tokens <= made.budget.trim_to + 200
    assert made.prompts == []
    assert_valid(made.session.view.messages)
    originals = {m.id: m for m in messages}
    for block in entry.results:
        original = text_of(originals[block.message])  # pyright: ignore[reportArgumentType] - results only
        if block.pointer.path.startswith(".deepagents"):
            name = block.pointer.path.removeprefix(".deepagents/")
            assert made.session.storage.read(name).decode() == original
        else:
            assert block.pointer.path in original  # a file that can be read again
        assert block.pointer.shown.startswith(STUB_MARK)
        assert block.message in block.pointer.shown or block.pointer.path in block.pointer.shown


async def test_it_waits_where_a_changed_prefix_costs_more_than_it_saves(rig: Make) -> None:
    made = rig()
    made.say(*run(1_000), user("z " * 11_500))
    assert made.budget.trim < made.ladder.used.tokens < made.budget.trigger
    await made.ladder.make_room()
    assert made.steps == []
    made.compactor.recorder = replace(made.compactor.recorder, cache=CacheTerms(read=1.0))
    await made.ladder.make_room()
    assert [step.kind for step in made.steps] == ["shortened"]


async def test_a_pause_longer_than_the_cache_lives_makes_it_free(rig: Make) -> None:
    made = rig(window=32_000)
    made.say(user("the task"), *(m for _ in range(9) for m in run(1_500)), user("and now?"))
    counted = made.report()
    assert made.budget.trim_to < counted < made.budget.trim
    await made.ladder.make_room()
    assert made.steps == []
    now = datetime.now(UTC)
    made.session.clock = lambda: now + timedelta(hours=1)
    await made.ladder.make_room()
    assert [step.kind for step in made.steps] == ["shortened"]
    assert made.ladder.used.tokens < counted / 2


async def test_tools_that_keep_their_results_and_what_was_restored_stay(rig: Make) -> None:
    made = rig(settings=ContextSettings(keep_results=("execute",)))
    made.say(user("the task"), *(m for _ in range(9) for m in run(600)), *read("a", words=3_000), *run(600))
    before = made.session.view.messages
    made.ladder.trim()
    changed = [one for one, other in zip(before, made.session.view.messages, strict=True) if one != other]
    assert [m.log[PATH] for m in changed if isinstance(m, ToolMessage)] == ["a"]


async def test_an_offloaded_result_loses_its_preview_when_it_is_old(rig: Make) -> None:
    made = rig(window=64_000)
    made_call = call("execute", command="make")
    (long,) = made.ladder.admit_results(
        [result(made_call, "\n".join(f"line {n} of the log " * 4 for n in range(3_000)))]
    )
    made.say(answer(made_call), long, *run(9_000), user("go on"))
    made.ladder.trim()
    (short,) = [m for m in made.session.view.messages if m.id == long.id]
    assert isinstance(short, ToolMessage)
    (pointer,), (before,) = short.content, long.content
    assert isinstance(pointer, Pointer)
    assert isinstance(before, Pointer)
    assert replace(pointer, shown="") == replace(before, shown="")
    assert len(pointer.shown) < len(before.shown) / 3


async def test_when_no_file_can_be_written_results_stay_and_stubs_are_made(rig: Make) -> None:
    made = rig()
    made.say(*run(2_000), user("go on"))

    def full(*_: object) -> None:
        raise made_error

    from deepagent.context.storage import StorageError

    made_error = StorageError("the disk is full")
    made.session.storage.create = full  # pyright: ignore[reportAttributeAccessIssue]
    before = made.session.view.messages
    assert not made.ladder.trim()
    assert made.session.view.messages == before
    assert made.troubles == ["old results stay in the view: the disk is full"]


@given(
    saved=st.integers(0, 10**6), resent=st.integers(0, 10**6), growth=st.integers(0, 10**5), read=st.floats(0.0, 1.0)
)
@settings(max_examples=200)
def test_more_saved_or_less_resent_never_pays_less(saved: int, resent: int, growth: int, read: float) -> None:
    terms = CacheTerms(read=read)
    if pays(terms, saved=saved, resent=resent, growth=growth):
        assert pays(terms, saved=saved + 1, resent=resent, growth=growth)
        assert pays(terms, saved=saved, resent=max(0, resent - 1), growth=growth)


def test_a_cache_ends_after_its_life() -> None:
    last = "2026-11-30T21:15:11.042Z"
    at = datetime.fromisoformat(last)
    assert not is_cold(CacheTerms(), last, lambda: at + timedelta(seconds=299))
    assert is_cold(CacheTerms(), last, lambda: at + timedelta(seconds=301))
