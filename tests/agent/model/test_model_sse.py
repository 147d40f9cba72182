"""Server-sent events, split anywhere."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from deepagent.agent.model.sse import EventReader, whole_event
from hypothesis import given
from hypothesis import strategies as st

OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=12) | st.integers(), max_size=3), max_size=6)


def read(*pieces: bytes) -> list[dict[str, Any]]:
    reader = EventReader()
    return [event for piece in (*pieces, b"\n\n") for event in reader.feed(piece)]


@given(OBJECTS, st.sampled_from(["\n", "\r\n"]), st.lists(st.integers(0, 400), max_size=8), st.booleans())
def test_any_split_gives_the_same_events(
    objects: list[dict[str, Any]], end: str, cuts: list[int], comments: bool
) -> None:
    text = "".join(
        f"{': keep-alive' + end + end if comments else ''}data: {json.dumps(o, ensure_ascii=False)}{end}{end}"
        for o in objects
    )
    data = text.encode("utf-8", "surrogatepass")
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(bounds)]
    assert read(*pieces) == read(data)
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert read(data) == objects


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b'data:{"a":1}\n\n', [{"a": 1}]),
        (b'\xef\xbb\xbfdata: {"a":1}\n\n', [{"a": 1}]),
        (b'data: {"a":\ndata: 1}\n\n', [{"a": 1}]),
        (b'data: {"a":1}\rdata: {"b":2}\r\r', [{"a": 1}, {"b": 2}]),
        (b'data: {"a":1}\ndata: {"b":2}\n\n', [{"a": 1}, {"b": 2}]),
        (b'id: 7\nretry: 10\nevent: chunk\ndata: {"a":1}\n\n', [{"a": 1}]),
        (b'event: error\ndata: {"message":"no"}\n\n', [{"error": {"message": "no"}}]),
        (b'event: error\ndata: {"error":{"message":"no"}}\n\n', [{"error": {"message": "no"}}]),
        (b'data: {"a":1}', [{"a": 1}]),
        (b'{"error":"plain"}\n', [{"error": "plain"}]),
        (b"data:\n\n: only a comment\n\n", []),
    ],
)
def test_shapes_of_servers(data: bytes, events: list[dict[str, Any]]) -> None:
    assert read(data) == events


def test_done_ends_and_is_no_event() -> None:
    reader = EventReader()
    assert list(reader.feed(b'data: {"a":1}\n\ndata: [DO')) == [{"a": 1}]
    assert not reader.done
    assert list(reader.feed(b"NE]\n\n")) == []
    assert reader.done


@pytest.mark.parametrize("data", [b'data: {"a":\n\n', b"data: [1]\n\n", b"data: 3\n\n"])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"no JSON object|Expecting"):
        read(data)


def test_an_answer_that_was_not_streamed() -> None:
    assert list(whole_event(b'{\r\n "a": "x\\ny"\r\n}')) == [{"a": "x\ny"}]
    with pytest.raises(ValueError, match="no JSON object"):
        list(whole_event(b"[]"))
