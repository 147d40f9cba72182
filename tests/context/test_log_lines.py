"""One line an entry, and back: whatever is in it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import get_args

import pytest
from context_samples import TIME, answer, any_texts, entries, result, said, texts, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.entries import FORMAT_VERSION, KINDS, Entry, MessageLogged, Note, SessionStarted
from deepagent.context.log import LogError, decode, encode, load
from deepagent.context.messages import ToolCall, ToolMessage, clean, text_of
from deepagent.context.session import Session
from hypothesis import given, settings
from hypothesis import strategies as st

STARTED = SessionStarted(id="s", time=TIME, parent=None, version=FORMAT_VERSION, session="x", workspace="/w", cwd="/w")


def check(entry: Entry) -> None:
    line = encode(entry)
    assert decode(line) == entry
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert len(line.splitlines()) == 1
    assert line.endswith(b"\n")


def test_each_entry_has_a_known_kind_of_its_own() -> None:
    kinds = [next(f.default for f in fields(member) if f.name == "kind") for member in get_args(Entry)]
    assert set(kinds) == KINDS
    assert len(kinds) == len(set(kinds))


@settings(max_examples=100, deadline=None)
@given(entries)
def test_any_entry_is_read_back_from_one_line(entry: Entry) -> None:
    check(entry)


@pytest.mark.long
@settings(max_examples=10_000, deadline=None)
@given(entries)
def test_any_entry_is_read_back_from_one_line_at_volume(entry: Entry) -> None:
    check(entry)


def test_two_megabytes_with_line_ends_are_one_line() -> None:
    check(said(user('a\r\n"b"\u2028\x85' * 300_000)))


def test_fields_that_a_later_version_added_are_left_out() -> None:
    raw = json.loads(encode(said(user("hello"))))
    raw["new"] = raw["message"]["new"] = raw["message"]["content"][0]["new"] = {"x": 1}
    entry = decode(json.dumps(raw).encode())
    assert isinstance(entry, MessageLogged)
    assert "hello" in repr(entry)


def test_a_kind_of_a_later_version_is_no_error() -> None:
    assert decode(b'{"kind":"teleported","id":"1","where":{}}') is None


@pytest.mark.parametrize(
    "line", [b"", b"7", b"[]", b"{}", b'{"kind":7}', b'{"kind":"note"}', b"\0\0\0", b'{"kind', b"\xff"]
)
def test_any_other_line_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode(line)


def test_a_nest_of_brackets_is_a_bad_line_and_no_crash() -> None:
    loaded = load("log", encode(STARTED) + b"[" * 200_000 + b"\n")
    assert loaded.entries == (STARTED,)
    assert loaded.notices == ("log:2: a line that cannot be read was skipped",)


def test_a_bad_line_is_skipped_and_named_and_the_rest_is_read() -> None:
    first, second = said(user("one")), said(user("two"))
    data = encode(STARTED) + encode(first) + b'{"kind":"note","id":\n' + b"\n" + b'{"kind":"later"}\n' + encode(second)
    loaded = load("sessions/x.jsonl", data)
    assert loaded.entries == (STARTED, first, second)
    assert loaded.notices == ("sessions/x.jsonl:3: a line that cannot be read was skipped",)
    assert b'{"kind":"later"}' in loaded.lines


def test_a_newer_format_is_refused_with_its_number() -> None:
    newer = encode(STARTED).replace(b'"version":1', b'"version":7')
    with pytest.raises(LogError, match="format 7"):
        load("log", newer)


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", encode(said(user("x")))])
def test_a_log_without_its_first_entry_is_refused(data: bytes) -> None:
    with pytest.raises(LogError, match="does not begin"):
        load("log", data)


@settings(max_examples=100, deadline=None)
@given(st.lists(any_texts, min_size=1, max_size=3), any_texts)
def test_lone_surrogates_are_replaced_in_log_and_memory_alike(parts: list[str], key: str) -> None:
    message = ToolMessage(id="m", time=TIME, call_id="c", tool="t", content=(), log={key: list(parts)})
    line = encode(said(message))
    entry = decode(line)
    assert entry is not None
    check(entry)
    for part in parts:
        assert clean(part).encode().decode() == clean(part)


@given(texts)
def test_text_without_surrogates_is_never_changed(text: str) -> None:
    assert clean(text) == text


def test_a_session_holds_no_lone_surrogates(session: Session, storage: DiskStorage) -> None:
    made = ToolCall(
        id="c\udc97", name="write_file", arguments={"k\udc97": ["\ud800x", {"\udfff": 1}], "ok": "\U0001f600"}
    )
    session.say(answer("half \ud83d of a pair", made))
    session.say(result(made, "bytes \udc97"))
    session.append(Note(**session.header(), text="\udc97"))
    session.sync()
    assert json.dumps([repr(entry) for entry in session.entries], ensure_ascii=False).encode()
    assert "half \ufffd of a pair" in repr(session.view)
    assert "\U0001f600" in repr(session.view)
    last = session.view.messages[-1]
    assert isinstance(last, ToolMessage)
    assert text_of(last) == "bytes \ufffd"
    loaded = load("log", storage.read(f"sessions/{session.id}.jsonl"))
    assert list(loaded.entries) == session.entries


def test_a_log_with_escaped_surrogates_is_read_without_them() -> None:
    line = encode(said(user("x"))).replace(b'"x"', b'"a\\uDC97b\\ud83d\\ude00"')
    assert "a\ufffdb\U0001f600" in repr(decode(line))
