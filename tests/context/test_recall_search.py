"""Recall: whatever was said is found and read back byte for byte, with an index, with a broken one, and without."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from context_samples import SUMMARY, Rig, answer, call, result, step, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.messages import Message, clean
from deepagent.context.recall import Found, Recall
from deepagent.context.recall_query import Mode, Query, QueryError
from deepagent.context.recall_read import read_page
from deepagent.context.recall_store import INDEX_NAME
from deepagent.context.recall_text import found_text
from deepagent.context.record import Ask
from deepagent.context.session import Session
from deepagent.context.tokens import estimate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Make = Callable[..., Rig]
NEEDLES = [
    "a<5",
    "`b`",
    "日本語",
    "x\x00y",
    "tab\there",
    "<|endoftext|>",
    "```",
    "ÄÖ ü",
    "--flag=1",
    "x\u2028y",
    "'\"\\",
]


def search(session: Session, text: str, mode: Mode = "literal", **more: object) -> Found:
    """What is found, by the index."""
    query = Query(text=text, mode=mode, session=session.id)
    found = Recall(session.storage).search(replace(query, **more))  # pyright: ignore[reportArgumentType]
    assert found.notices == ()
    return found


def whole(session: Session, message: str, part: int, tokens: int = 60) -> str:
    """A text read back page by page."""
    passages = Recall(session.storage).message(session.id, message)
    assert passages is not None
    text, lines, last = "", "", 0
    while True:
        page = read_page(passages, part, lines, tokens=tokens, count=estimate)
        assert page.rows
        for row in page.rows:
            text += ("\n" if last and row.line > last else "") + row.text
            last = row.line
        if page.next is None or page.next[0] != part:
            return text
        lines = page.next[1]


def talk(*needles: str) -> list[Message]:
    """Each needle in a request, a result, an argument and an answer."""
    made: list[Message] = []
    for number, needle in enumerate(needles):
        write = call("write_file", path=f"src/f{number}.py", content=f"before {needle} after {number}\n")
        made += [user(f"ask {number}: {needle}"), answer(f"say {number} {needle}", write)]
        made += [result(write, f"wrote {needle} {number}", path=f"src/f{number}.py")]
    return made


@pytest.mark.parametrize("needle", NEEDLES)
def test_a_text_is_found_wherever_it_stands(session: Session, needle: str) -> None:
    for message in talk(needle, "something else"):
        session.say(message)
    found = search(session, needle)
    assert found.total == 4
    assert found.exact
    assert {hit.passage.kind for hit in found.hits} == {"text", "argument", "result"}
    for hit in found.hits:
        start, end = hit.span
        assert hit.passage.text[start:end] == needle


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(min_size=3, max_size=60).map(clean), min_size=1, max_size=5), tokens=st.integers(6, 80))
def test_any_text_is_found_and_read_back(storage: DiskStorage, texts: Sequence[str], tokens: int) -> None:
    session = Session.start(storage, workspace="/w", cwd="/w")
    try:
        for text in texts:
            one = call("write_file", path="f", content=text)
            session.say(message := answer(one))
            session.say(done := result(one, text))
            session.sync()
            found = search(session, text)
            if text.strip():
                assert {hit.passage.message for hit in found.hits} >= {message.id, done.id}
            assert whole(session, done.id, 1, tokens) == text
            passages = Recall(storage).message(session.id, message.id)
            assert passages is not None
            (content,) = [passage for passage in passages if passage.name == "content"]
            assert whole(session, message.id, content.part, tokens) == text
    finally:
        session.close()


async def test_what_was_offloaded_stubbed_trimmed_and_archived_is_found(rig: Make) -> None:
    made = rig(answers=[SUMMARY])
    content = "def needle_one(): pass\n" * 200
    write = call("write_file", path="x.py", content=content)
    long = call("execute", command="make")
    made.say(user("go"), answer(write), result(write, "ok"), answer(long))
    made.say(*made.ladder.admit_results([result(long, "noise\n" * 3_000 + "needle_two\n" + "noise\n" * 3_000)]))
    made.say(*step("needle_three " * 300), *step("newer " * 900), user("and?"))
    made.ladder.trim()
    await made.ladder.compact(Ask(reason="user"))
    assert not any(f"needle_{n}" in str(made.session.view.tail) for n in ("one", "two", "three"))
    for number, total in (("one", 1), ("two", 1), ("three", 1)):
        found = search(made.session, f"needle_{number}")
        assert found.total == total
        assert search(made.session, f"needle_{number}", "words").total == total
    (hit,) = search(made.session, "needle_one").hits
    assert whole(made.session, hit.passage.message, hit.passage.part, 300) == content


def test_words_find_what_has_all_of_them_the_best_first(session: Session) -> None:
    session.say(user("the parser reads numbers"))
    session.say(answer("numbers, and far away from it: " + "x " * 500 + " parser"))
    session.say(user("a Parser, of NUMBERS"))
    found = search(session, "parser numbers", "words")
    assert found.total == 3
    some = search(session, "parser zebra", "words")
    assert some.partly
    assert search(session, '"reads numbers"', "words").total == 1


def test_filters(session: Session) -> None:
    for message in talk("needle", "needle"):
        session.say(message)
    assert search(session, "needle", role="user").total == 2
    assert search(session, "needle", tool="write_file").total == 4
    assert search(session, "needle", file="f1.py").total == 2
    assert search(session, "needle", file="*.py").total == 4
    assert search(session, "needle", after="2099").total == 0
    assert search(session, "needle", before="2000").total == 0
    with pytest.raises(QueryError):
        search(session, "needle", after="yesterday")


def test_a_regular_expression_is_stopped_when_it_takes_too_long(session: Session) -> None:
    session.say(user("a" * 60 + "!"))
    session.say(user("port=48213"))
    assert search(session, r"port=\d+", "regex").total == 1
    found = Recall(session.storage).search(Query(text="(a+)+$", mode="regex", session=session.id), seconds=0.5)
    assert not found.exact
    assert "time is over" in found.notices[0]
    with pytest.raises(QueryError, match="cannot be read"):
        search(session, "(", "regex")


def _zero(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _other_version(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [Path.unlink, _zero, _truncate, _other_version, _folder])
def test_the_index_is_never_needed(session: Session, harm: Callable[[Path], object]) -> None:
    for message in talk("needle"):
        session.say(message)
    assert search(session, "needle").total == 4
    path = session.storage.own(INDEX_NAME)
    assert path.stat().st_mode & 0o777 == 0o600
    harm(path)
    session.say(user("one needle more"))
    wanted: tuple[tuple[str, Mode, int], ...] = (("needle", "literal", 5), ("needle more", "words", 1))
    for text, mode, total in wanted:
        assert Recall(session.storage).search(Query(text=text, mode=mode, session=session.id)).total == total


def test_a_log_that_is_another_one_now_is_indexed_anew(session: Session) -> None:
    session.say(user("the first needle"))
    session.sync()
    assert search(session, "needle").total == 1
    name = f"sessions/{session.id}.jsonl"
    log = session.storage.own(name)
    log.write_bytes(log.read_bytes().replace(b"first needle", b"other thing!"))
    assert search(session, "needle").total == 0
    assert search(session, "other thing!").total == 1


def test_what_comes_later_is_found_without_reading_all_again(session: Session) -> None:
    for number in range(30):
        session.say(user(f"needle {number}"))
        assert search(session, "needle").total == number + 1


def test_other_sessions_are_searched_if_asked_also_by_their_archive(rig: Make, storage: DiskStorage) -> None:
    made = rig(answers=[SUMMARY])
    made.say(user("here"))
    other = Session.start(storage, workspace="/w", cwd="/w")
    other.say(user("there is a needle"))
    other.close()
    recall = Recall(storage)
    assert recall.search(Query(text="needle", session=made.session.id)).total == 0
    (hit,) = recall.search(Query(text="needle")).hits
    assert hit.session == other.id


def test_an_answer_has_at_most_its_tokens_and_ids_to_go_on(session: Session) -> None:
    for number in range(60):
        session.say(user(f"needle {number} " + "words around it " * 200))
    query = Query(text="needle", session=session.id)
    found = Recall(session.storage).search(query)
    text = found_text(found, query, this=session.id, in_view=lambda _: True, tokens=1_500, count=estimate)
    assert estimate(text) <= 1_500
    assert text.startswith("60 passages in this session with all the words. ")
    assert text.count("in view") >= 5
    assert f"{found.hits[0].passage.message}#1" in text


def test_the_end_of_a_single_long_line_is_read(session: Session) -> None:
    line = "".join(f"{number:06d}," for number in range(43_000)) + "the end"
    one = call("read_file", path="one")
    session.say(answer(one))
    session.say(done := result(one, line))
    (hit,) = search(session, "the end").hits
    assert hit.passage.text[hit.span[0] :] == "the end"
    passages = Recall(session.storage).message(session.id, done.id)
    assert passages is not None
    start = len(line) - 20
    page = read_page(passages, 1, f"1:{start + 1}-", tokens=100, count=estimate)
    assert [row.text for row in page.rows] == [line[start:]]


def test_a_place_that_no_text_can_have_is_refused(session: Session) -> None:
    session.say(message := user("one line"))
    passages = Recall(session.storage).message(session.id, message.id)
    assert passages is not None
    for lines in ("9" * 5_000, f"1:{'9' * 5_000}", "999999999999999"):
        with pytest.raises(QueryError):
            read_page(passages, 1, lines, tokens=100, count=estimate)
