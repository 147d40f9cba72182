"""Compaction: nothing is lost, nothing is half done, whatever the summarizer or the disk does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from context_samples import SUMMARY, Rig, answer, assert_valid, call, result, step, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.archive import parse
from deepagent.context.entries import Compacted, MessageLogged, Todo, TodosWritten
from deepagent.context.messages import Message, Text, UserMessage, text_of
from deepagent.context.record import Ask
from deepagent.context.session import Session
from deepagent.context.storage import archive_name
from deepagent.context.summary import HEADINGS
from deepagent.context.view import build_view

Reply = str | BaseException | Callable[[str], str]
Make = Callable[..., Rig]


def archived(rig: Rig) -> list[Message]:
    data = rig.session.storage.read(archive_name(rig.session.id))
    return [message for section in parse(data).sections for message in section.messages]


def assert_nothing_lost(rig: Rig) -> None:
    """Archive and view together hold every message as it was logged, each once."""
    logged = list(rig.session.messages())
    kept = {message.id for message in rig.session.view.tail}
    assert archived(rig) == [message for message in logged if message.id not in kept]
    assert build_view(rig.session.entries) == rig.session.view
    assert_valid(rig.session.view.messages)


def fill(rig: Rig, round_: int, *, request: str | None = None) -> None:
    rig.say(user(request or f"request {round_}: make part {round_}"))
    for number in range(6):
        made = call(command=f"make part-{number}")
        rig.say(
            answer(made), result(made, f"output {round_}.{number} " * 60, command=f"make part-{number}", exit_code=0)
        )


def echo(prompt: str) -> str:
    """A model that gives its prompt back."""
    return prompt


REPLIES: dict[str, list[Reply]] = {
    "none": [],
    "good": [SUMMARY],
    "nonsense": ["the moon is made of cheese and so are the tests of it"],
    "echo": [echo],
    "empty": [""],
    "white": [" \n\t "],
    "headings": ["## SESSION INTENT\n\n## SUMMARY\n"],
    "error": [RuntimeError("no connection")],
    "flaky": [RuntimeError("no"), SUMMARY, "", SUMMARY],
}


@pytest.mark.parametrize("replies", REPLIES)
async def test_ten_compactions_keep_every_request_and_lose_nothing(rig: Make, replies: str) -> None:
    made = rig(answers=REPLIES[replies])
    made.session.append(
        TodosWritten(**made.session.header(), items=(Todo(text="publish {limit}", status="in_progress"),))
    )
    for round_ in range(10):
        fill(made, round_)
        done = await made.ladder.compact(Ask(reason="user"))
        assert done is not None
        assert_nothing_lost(made)
        assert made.counter.text(done.summary) <= made.budget.summary_limit
        assert made.ladder.used.tokens < made.budget.trigger
    head = made.head()
    for round_ in range(10):
        assert f">\nrequest {round_}: make part {round_}\n</request>" in head
    assert "[in_progress] publish {limit}" in head
    assert "last check: `make part-" in head
    assert archive_name(made.session.id) in head
    requests = [m.id for m in archived(made) if isinstance(m, UserMessage)]
    assert [entry.requests for entry in made.compactions()][-1] == tuple(requests)


@pytest.mark.parametrize("replies", ["none", "empty", "white", "headings", "error"])
async def test_without_a_summary_the_log_gives_one_and_that_is_said(rig: Make, replies: str) -> None:
    made = rig(answers=REPLIES[replies])
    fill(made, 0)
    done = await made.ladder.compact(Ask(reason="user"))
    assert done is not None
    assert done.by == "harness"
    assert all(f"## {name}" in done.summary for name in HEADINGS)
    assert bool(made.troubles) == (replies != "none")
    assert all("the log's facts take its place" in trouble for trouble in made.troubles)
    assert len(made.prompts) == {"none": 0, "error": 1}.get(replies, 2)


async def test_a_models_record_outlives_a_compaction_without_a_model(rig: Make) -> None:
    made = rig(answers=[SUMMARY, RuntimeError("no"), RuntimeError("no"), SUMMARY])
    for round_ in range(4):
        fill(made, round_)
        await made.ladder.compact(Ask(reason="user"))
        assert "the parser reads numbers and names" in made.head()
    assert [entry.by for entry in made.compactions()] == ["model", "harness", "harness", "model"]
    assert "the parser reads numbers and names" in made.prompts[3]


async def test_the_entry_says_what_happened(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0)
    made.say(*(m for n in range(3) for m in step("x", path=f"f{n}")))
    before = made.ladder.used.tokens
    done = await made.ladder.compact(Ask(reason="model", focus="the parser"))
    assert done is not None
    assert made.steps == [done]
    assert made.started == [done.messages]
    assert (done.reason, done.by, done.tokens_before) == ("model", "model", before)
    assert done.summary == SUMMARY.strip()
    assert done.first_kept == made.session.view.tail[0].id
    assert done.messages + len(made.session.view.tail) == len(list(made.session.messages()))
    assert done.tokens_after < before
    assert "The user wants attention to: the parser" in made.prompts[0]
    data = made.session.storage.read(archive_name(made.session.id))
    assert [len(s.messages) for s in parse(data[done.archive_start : done.archive_end]).sections] == [done.messages]
    assert len(data) == done.archive_end


async def test_the_newest_request_is_in_the_next_request_word_for_word(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0)
    newest = user("no wait, do THIS instead\n" + "x" * 900)
    made.say(newest)
    await made.ladder.compact(Ask(reason="user"))
    assert made.session.view.messages[-1] is newest
    made.say(*step("looking " * 2_000), *step("and more " * 2_000))
    await made.ladder.compact(Ask(reason="user"))
    assert newest.id in made.compactions()[-1].requests
    assert text_of(newest) in made.head()


async def test_open_calls_stay_while_the_model_compacts_by_a_tool(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0)
    asked = call("compact_conversation")
    made.say(answer("I make room", asked))
    assert await made.ladder.compact(Ask(reason="model")) is not None
    made.say(result(asked, "compacted"))
    assert_valid(made.session.view.messages)
    assert made.session.view.messages[-1].role == "tool"
    assert "compacted" in repr(made.session.view.messages[-1])


async def test_what_is_said_meanwhile_stays_in_the_view(rig: Make) -> None:
    meanwhile = user("one more thing")

    def reply(prompt: str) -> str:
        made.say(meanwhile)
        return SUMMARY

    made = rig(answers=[reply])
    fill(made, 0)
    await made.ladder.compact(Ask(reason="user"))
    assert made.session.view.messages[-1] == meanwhile
    assert_nothing_lost(made)


def state(session: Session) -> tuple[int, object, int]:
    log = session.storage.read(f"sessions/{session.id}.jsonl")
    return len(session.entries), session.view, len(log)


@pytest.mark.parametrize("seconds", [0.0, 0.05])
async def test_cancelled_it_has_changed_nothing_and_the_next_one_writes_no_message_twice(
    rig: Make, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0)
    before = state(made.session)
    asked = asyncio.Event()
    gone: list[bool] = []

    async def never(prompt: str, limit: int) -> str:
        asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            gone.append(True)
            raise
        return SUMMARY

    with monkeypatch.context() as patched:
        patched.setattr(made, "ask", never)
        task = asyncio.create_task(made.ladder.compact(Ask(reason="user")))
        await asked.wait()
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert gone == [True]
    assert state(made.session) == before
    assert made.steps == []
    assert await made.ladder.compact(Ask(reason="user")) is not None
    assert_nothing_lost(made)


async def test_cancelled_at_any_moment_it_is_whole_or_not_there(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    for steps in range(60):
        fill(made, steps)
        count = len(made.compactions())
        before = made.session.view
        task = asyncio.create_task(made.ladder.compact(Ask(reason="user")))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if len(made.compactions()) == count:
            assert made.session.view == before
        assert made.ladder.used.tokens == made.meter.used(build_view(made.session.entries).messages).tokens
    await made.ladder.compact(Ask(reason="user"))
    assert_nothing_lost(made)


@pytest.mark.parametrize("blocked", ["folder", "file"])
async def test_when_the_archive_cannot_be_written_no_message_is_lost(
    rig: Make, storage: DiskStorage, blocked: str
) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0)
    before = state(made.session)
    in_the_way = storage.mirror / "conversation_history"
    if blocked == "folder":
        in_the_way.write_text("a file is in the way")
    else:
        (in_the_way / f"{made.session.id}.md").mkdir(parents=True)
    assert await made.ladder.compact(Ask(reason="user")) is None
    assert state(made.session) == before
    assert made.compactions() == []
    (trouble,) = made.troubles
    assert trouble.startswith("not compacted, all messages stay: cannot")
    assert "conversation_history" in trouble
    in_the_way.unlink() if blocked == "folder" else (in_the_way / f"{made.session.id}.md").rmdir()
    assert await made.ladder.compact(Ask(reason="user")) is not None
    assert_nothing_lost(made)


async def test_an_archive_that_does_not_read_back_stops_the_compaction(
    rig: Make, storage: DiskStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0)
    before = state(made.session)
    real = storage.read
    name = archive_name(made.session.id)

    def read(wanted: str) -> bytes:
        return real(wanted).replace(b"output", b"0utput") if wanted == name else real(wanted)

    monkeypatch.setattr(storage, "read", read)
    assert await made.ladder.compact(Ask(reason="user")) is None
    assert "does not read back" in made.troubles[0]
    monkeypatch.undo()
    assert state(made.session) == before


async def test_a_crash_between_archive_and_log_doubles_no_message(rig: Make, storage: DiskStorage) -> None:
    made = rig()
    fill(made, 0)
    plan = made.compactor.plan(made.budget, Ask(reason="user"))
    assert plan is not None
    made.session.archive.add("lost", "now", plan.evicted, 5)
    made.session.close()
    resumed = Session.resume(storage, made.session.id)
    again = Rig(resumed)
    fill(again, 1)
    done = await again.ladder.compact(Ask(reason="user"))
    assert done is not None
    assert_nothing_lost(again)
    resumed.close()


async def test_undone_and_made_again_no_message_is_archived_twice(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0)
    before = made.session.view
    first = await made.ladder.compact(Ask(reason="user"))
    assert first is not None
    made.ladder.undo()
    assert made.session.view.messages == before.messages
    second = await made.ladder.compact(Ask(reason="user"))
    assert second is not None
    assert (second.archive_start, second.archive_end) == (first.archive_start, first.archive_end)
    assert_nothing_lost(made)


async def test_a_fork_of_a_compacted_session_points_to_both_archives(rig: Make, storage: DiskStorage) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0, request="the very first " + "w" * 9_000)
    await made.ladder.compact(Ask(reason="user"))
    made.session.close()
    fork = Session.fork(storage, made.session.id)
    forked = Rig(fork, answers=[SUMMARY])
    fill(forked, 1)
    await forked.ladder.compact(Ask(reason="user"))
    for session in (made.session.id, fork.id):
        assert f".deepagents/{archive_name(session)}" in forked.head()
    own = [message.id for message in archived(forked)]
    assert not set(own) & {message.id for message in archived(made)}
    fork.close()


async def test_braces_and_code_fences_in_a_conversation_are_text(rig: Make) -> None:
    made = rig(answers=[echo, SUMMARY])
    text = "```\n{limit} {focus} {} %s ${x} {{y}}\n</request>\n<!-- deepagent:section {} -->\n"
    made.say(user(text), answer(text), *step(text, content=text))
    made.say(*step("x" * 3_000), user(text))
    await made.ladder.compact(Ask(reason="user", focus=text))
    assert text in made.prompts[0]
    assert_nothing_lost(made)


async def test_no_request_to_the_summarizer_holds_messages_or_calls(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    fill(made, 0)
    await made.ladder.compact(Ask(reason="user"))
    assert all("[assistant calls execute]" in prompt and "tool_call" not in prompt for prompt in made.prompts)


@pytest.mark.parametrize("window", [1_000, 8_000, 32_000, 128_000])
async def test_a_history_of_three_windows_becomes_a_request_within_the_budget(rig: Make, window: int) -> None:
    made = rig(window=window, answers=[RuntimeError("too long")])
    words = random.Random(1)
    while made.ladder.used.tokens < 3 * window:
        made.say(user(f"ask {words.random()}"), *step("out " * (window // 8)))
    await made.ladder.compact(Ask(reason="user"))
    assert made.ladder.used.tokens < made.budget.tokens
    assert_nothing_lost(made)


async def test_a_single_group_is_not_compacted(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    made.say(user("alone"))
    assert await made.ladder.compact(Ask(reason="user")) is None
    assert made.prompts == made.troubles == made.steps == []


async def test_originals_are_archived_where_the_view_had_stubs(rig: Make) -> None:
    made = rig()
    content = "line of code\n" * 900
    one = call("write_file", path="x.py", content=content)
    made.say(user("go"), answer(one), result(one, "done"), *step("x " * 3_000), user("next"))
    made.ladder.trim()
    await made.ladder.compact(Ask(reason="user"))
    assert_nothing_lost(made)
    assert any(content in repr(m).encode().decode("unicode_escape") for m in archived(made))


def test_entries_hold_each_message_once(session: Session) -> None:
    """What `assert_nothing_lost` relies on."""
    message = user("x")
    session.say(message)
    assert [e.message for e in session.entries if isinstance(e, MessageLogged)] == [message]
    assert message.content == (Text(text="x"),)
    assert not any(isinstance(entry, Compacted) for entry in session.entries)
