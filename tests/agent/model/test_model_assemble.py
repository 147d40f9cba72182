"""Chunks become one answer, however a provider cuts and bends them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from deepagent.agent.errors import BrokenStreamError, ContextOverflowError, RateLimitError, ServerError
from deepagent.agent.model.assemble import StreamAssembler
from deepagent.agent.model.translate import Origin
from deepagent.agent.model.types import (
    CallDelta,
    Completed,
    Delta,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolSchema,
)
from deepagent.context.messages import AssistantMessage, Reasoning, Text, ToolCall
from hard_inputs import hard_input
from hypothesis import given
from hypothesis import strategies as st

REQUEST = ModelRequest(system="", messages=())
Chunk = dict[str, Any]


def assemble(
    chunks: Iterable[Chunk], request: ModelRequest = REQUEST, *, limit: int | None = None
) -> tuple[list[Delta], Completed]:
    assembler = StreamAssembler(request, Origin(provider="test"), limit=limit)
    deltas = [delta for chunk in chunks for delta in assembler.feed(chunk)]
    return deltas, assembler.finish()


def chunk(delta: Chunk, finish: str | None = None, **more: Any) -> Chunk:
    return {"choices": [{"delta": delta, "finish_reason": finish}]} | more


def calls_of(*pieces: Any) -> list[ToolCall]:
    _, whole = assemble([*(chunk({"tool_calls": piece}) for piece in pieces), chunk({}, "tool_calls")])
    return [part for part in whole.content if isinstance(part, ToolCall)]


def piece(name: str | None = None, arguments: Any = None, **marks: Any) -> Chunk:
    return {**marks, "function": {"name": name, "arguments": arguments}}


WORDS = st.text(st.characters(codec="utf-8"), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(
    st.tuples(st.sampled_from(["read_file", "execute"]), st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)),
    max_size=4,
)


def cut(text: str, draw: Callable[[], int]) -> list[str]:
    """`text` in pieces of drawn sizes."""
    pieces: list[str] = []
    while text:
        size = draw()
        pieces.append(text[:size])
        text = text[size:]
    return pieces


@given(st.data(), st.text(max_size=40), st.text(max_size=40), CALLS)
def test_any_cut_gives_the_same_answer(
    data: st.DataObject, thought: str, text: str, calls: list[tuple[str, Any]]
) -> None:
    def size() -> int:
        return data.draw(st.integers(1, 12))

    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({"reasoning_content": p}) for p in cut(thought, size)]
    chunks += [chunk({"content": p}) for p in cut(text, size)]
    for index, (name, arguments) in enumerate(calls):
        chunks.append(chunk({"tool_calls": [piece(name, "", index=index, id=f"id_{index}_long")]}))
        chunks += [chunk({"tool_calls": [piece(None, p, index=index)]}) for p in cut(json.dumps(arguments), size)]
    chunks.append(chunk({}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 4}))
    deltas, whole = assemble(chunks)
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == text
    assert "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)) == thought
    expected = [ToolCall(id=f"id_{i}_long", name=n, arguments=a) for i, (n, a) in enumerate(calls)]
    assert [part for part in whole.content if isinstance(part, ToolCall)] == expected
    for index, (_, arguments) in enumerate(calls):
        shown = "".join(d.arguments for d in deltas if isinstance(d, CallDelta) and d.index == index)
        assert json.loads(shown) == arguments
    assert whole.stop == ("tool_calls" if calls else "end")


Expected = list[tuple[str, dict[str, Any]]]
ONE: Expected = [("read_file", {"p": 1})]
NO_ARGUMENTS: Expected = [("read_file", {})]
NESTED: Expected = [("a", {"p": {"p": 1}})]
TWO: Expected = [("read_file", {"p": 1}), ("read_file", {"p": 2})]


@hard_input(
    "Tool calls",
    "deltas with equal or missing indices or ids, a name that comes late or again, arguments as an object or repeated",
    "each call once, whole, with its own arguments",
)
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([[piece("read_file", '{"p":1}')], [piece("read_file", '{"p":2}')]], TWO),  # neither id nor index
        ([[piece("read_file", '{"p":', id="a1b2")], [piece(None, "1}")]], ONE),  # no index, continued
        ([[piece("read_file", '{"p":', id="a1b2")], [piece(None, "1}", id="a1b2")]], ONE),  # id repeated
        ([[piece("read_file", '{"p":', index=0)], [piece("read_file", "1}", index=0)]], ONE),  # name repeated
        ([[piece("read_file", '{"p":1}', index=0)], [piece("read_file", "", index=0)]], ONE),  # an empty end
        ([[piece("read_file", '{"p":', index=0, id="x9")], [piece(None, "1}", index=0, id="y8")]], ONE),  # ids change
        ([[piece("read_file", '{"p":1}', index=0, id="x9")], [piece("read_file", '{"p":2}', index=0, id="y8")]], TWO),
        ([[piece("read_file", '{"p":1}', index=0, id="ab")], [piece("read_file", '{"p":2}', index=1, id="ab")]], TWO),
        ([[piece("read_file", {"p": 1}, index=0)], [piece("read_file", {"p": 2}, index=0)]], TWO),  # objects
        ([[piece("read_file", '{"p":1}', index="0", id="a1b2")]], ONE),  # index as text
        ([[piece(None, '{"p":', index=0, id="a1b2")], [piece("read_file", "1}", index=0)]], ONE),  # name late
        ([[piece("read_file", None, index=0, id="a1b2")]], NO_ARGUMENTS),  # no arguments at all
        ([[piece("read_file", "  ", index=0, id="a1b2")]], NO_ARGUMENTS),
        ([[piece("read_file", '{"p":1}', id="a1b2")], [piece("read_file", '{"p":1}', id="a1b2")]], ONE),  # said twice
        ([[piece("read_file", '{"p":', id="ab")], [piece(None, "1}")], [piece(None, '{"p":1}', id="ab")]], ONE),
        ([[piece("read_file", '{"p"', id="ab")], [piece("read_file", '{"p":1}', id="ab")]], ONE),  # longer each time
        ([[piece("a", '{"p":', id="ab")], [piece(None, '{"p":1}', id="ab")], [piece(None, "}")]], NESTED),
    ],
)  # fmt: skip
def test_which_piece_belongs_to_which_call(pieces: list[Any], expected: list[tuple[str, Any]]) -> None:
    calls = calls_of(*pieces)
    assert [(c.name, dict(c.arguments)) for c in calls] == expected
    assert not any(c.error for c in calls)
    assert len({c.id for c in calls}) == len(calls)
    assert all(c.id for c in calls)


def test_interleaved_calls() -> None:
    calls = calls_of(
        [piece("a", '{"x"', index=0, id="one1"), piece("b", '{"y"', index=1, id="two2")],
        [piece(None, ":1}", index=0), piece(None, ":2}", index=1)],
    )
    assert [(c.id, c.name, dict(c.arguments)) for c in calls] == [("one1", "a", {"x": 1}), ("two2", "b", {"y": 2})]


@hard_input(
    "Tool calls",
    "arguments `{`, `[]`, `3`, `NaN`, two objects in a row",
    "the call is kept with `{}`, and answered with what is wrong; every later request is valid",
)
@pytest.mark.parametrize(
    "arguments", ["{", "[]", '"ls"', "3", "null x", '{"a": NaN}', '{"a":1}{"b":2}', [1], "nonsense"]
)
def test_arguments_that_are_no_object_are_an_error_for_the_model(arguments: Any) -> None:
    (call,) = calls_of([piece("execute", arguments, index=0, id="abcd")])
    assert dict(call.arguments) == {}
    assert call.error
    assert "execute" in call.error


def test_a_call_without_a_name_is_an_error_for_the_model() -> None:
    (call,) = calls_of([piece(None, '{"a":1}', index=0, id="abcd")])
    assert call.error
    assert call.name == "unnamed_tool"


def test_ids_are_unique_in_the_session() -> None:
    old = ToolCall(id="abc123", name="execute", arguments={})
    message = AssistantMessage(id="m", time="", content=(old,), model="m", stop="tool_calls")
    request = ModelRequest(system="", messages=(message,))
    chunks = [chunk({"tool_calls": [piece("execute", "{}", index=0, id="abc123")]}), chunk({}, "stop")]
    _, whole = assemble(chunks, request)
    assert isinstance(whole.content[0], ToolCall)
    assert whole.content[0].id != "abc123"


@pytest.mark.parametrize("counted", ["call_0", "0", "tool-3", "call12"])
def test_ids_that_a_server_counts_are_replaced(counted: str) -> None:
    (call,) = calls_of([piece("execute", "{}", index=0, id=counted)])
    assert call.id != counted


@pytest.mark.parametrize("kept", ["call_Ab3dEf", "functions.execute:0", "9f1c2a7b0", "toolu_01"])
def test_other_ids_are_kept(kept: str) -> None:
    (call,) = calls_of([piece("execute", "{}", index=0, id=kept)])
    assert call.id == kept


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        *(("stop", "end"), ("eos", "end"), ("tool_calls", "end"), ("content_filter", "filter"), ("SAFETY", "filter")),
        *((reason, "length") for reason in ("length", "max_tokens", "MAX_TOKENS", "model_context_window_exceeded")),
    ],
)
def test_finish_reasons(reason: str, stop: str) -> None:
    _, whole = assemble([chunk({"content": "a"}), chunk({}, reason)])
    assert whole.stop == stop


@hard_input(
    "Tool calls",
    "a stream that ends without a finish reason",
    "the connection broke: asked again, and what had come is dropped",
)
def test_no_finish_reason_is_a_broken_stream() -> None:
    with pytest.raises(BrokenStreamError):
        assemble([chunk({"content": "a"})])
    with pytest.raises(BrokenStreamError):
        assemble([])


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "abort"])
def test_a_provider_that_breaks_off_is_tried_again(reason: str) -> None:
    with pytest.raises(ServerError):
        assemble([chunk({"content": "a"}), chunk({}, reason)])


WRITE = ToolSchema(name="write_file", description="", parameters={"type": "object", "required": ["path", "content"]})
LIST = ToolSchema(name="ls", description="", parameters={"type": "object", "properties": {"path": {"type": "string"}}})


@hard_input(
    "Tool calls",
    "an answer that just reaches the output limit, or passes it with `{}` or half a JSON, under another finish reason",
    "it counts as cut: nothing of it runs",
)
@pytest.mark.parametrize(
    ("name", "arguments", "output", "stop"),
    [
        ("write_file", '{"path": "a', 10, "length"),
        ("write_file", '{"path": "a', 9, "tool_calls"),  # broken, but not by the limit
        ("write_file", '{"path": "a', 14, "length"),  # what was thought is counted in
        ("write_file", "{}", 10, "length"),
        ("write_file", "{}", 9, "tool_calls"),
        ("write_file", '{"path": "a"}', 14, "length"),  # mended by the provider
        ("write_file", '{"path": "a", "content": "half"}', 10, "length"),
        ("write_file", '{"path": "a", "content": "half"}', 14, "tool_calls"),
        ("ls", "{}", 14, "tool_calls"),
        ("ls", "{}", None, "tool_calls"),
    ],
)
def test_a_cut_that_the_provider_hides(name: str, arguments: str, output: int | None, stop: str) -> None:
    request = ModelRequest(system="", messages=(), tools=(WRITE, LIST))
    start = chunk({"tool_calls": [piece(name, arguments, index=0, id="abcd")]})
    usage = {"usage": {"prompt_tokens": 5, "completion_tokens": output}} if output else {}
    _, whole = assemble([start, chunk({}, "tool_calls", **usage)], request, limit=10)
    assert whole.stop == stop
    _, whole = assemble([start, chunk({}, "tool_calls", **usage)], request)
    assert whole.stop == "tool_calls"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"message": "maximum context length is 4096 tokens"}}, ContextOverflowError),
        ({"error": "Too many requests", "choices": []}, RateLimitError),
        ({"error": "Something else", "choices": []}, ServerError),
        ({"error": {"code": 429, "message": "slow"}}, RateLimitError),
        ({"choices": [{"delta": {}, "error": {"code": 502, "message": "bad"}, "finish_reason": "error"}]}, ServerError),
    ],
)
def test_error_objects(error: Chunk, kind: type) -> None:
    with pytest.raises(kind):
        assemble([chunk({"content": "a"}), error])


def test_the_window_that_an_error_in_the_stream_names() -> None:
    with pytest.raises(ContextOverflowError) as caught:
        assemble([{"error": {"message": "maximum context length is 4,096 tokens", "code": 400}}])
    assert caught.value.window == 4096
    assert caught.value.status == 400


def test_content_in_parts_with_thinking() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    deltas, whole = assemble([chunk({"content": [thinking, {"type": "text", "text": "Hi"}]}), chunk({}, "stop")])
    assert whole.content == (Reasoning(text="hm"), Text(text="Hi"))
    assert deltas == [ReasoningDelta(text="hm"), TextDelta(text="Hi")]


def test_reasoning_in_two_fields_counts_once() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "index": 0}]
    deltas, whole = assemble(
        [chunk({"reasoning": "hm", "reasoning_details": details}), chunk({"content": "a"}, "stop")]
    )
    assert deltas[0] == ReasoningDelta(text="hm")
    assert isinstance(whole.content[0], Reasoning)
    assert whole.content[0].text == "hm"
    assert whole.content[0].data == {"reasoning_details": details}


def test_signatures_are_kept() -> None:
    blocks = [
        [{"type": "thinking", "thinking": "Let me ", "signature": None}],
        [{"type": "thinking", "thinking": "see."}],
        [{"type": "thinking", "thinking": "", "signature": "SIG"}],
        [{"type": "thinking", "thinking": "More."}],
        [{"type": "thinking", "thinking": "", "signature": "SIG2"}],
        [{"type": "redacted_thinking", "data": "RED"}],
    ]
    _, whole = assemble([*(chunk({"thinking_blocks": b}) for b in blocks), chunk({"content": "x"}, "stop")])
    assert isinstance(whole.content[0], Reasoning)
    assert whole.content[0].text == "Let me see.More."
    assert whole.content[0].data["thinking_blocks"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "SIG"},
        {"type": "thinking", "thinking": "More.", "signature": "SIG2"},
        {"type": "redacted_thinking", "data": "RED"},
    ]


def test_fields_of_a_call_are_kept_with_it() -> None:
    extra = {"google": {"thought_signature": "S"}}
    call = piece("execute", "{}", index=0, id="abcd", extra_content=extra)
    _, whole = assemble([chunk({"tool_calls": [call]}), chunk({}, "stop")])
    assert isinstance(whole.content[0], Reasoning)
    assert whole.content[0].data == {"calls": {"abcd": {"extra_content": extra}}}


def test_lone_surrogates_are_cleaned() -> None:
    arguments = '{"a": "\\ud800", "\\udfff": ["\\ud83e"]}'
    call = piece("execute", arguments, index=0, id="abcd")
    _, whole = assemble(
        [chunk({"content": "x\ud800", "reasoning": "y\udfff", "tool_calls": [call]}), chunk({}, "stop")]
    )
    assert whole.content[0] == Reasoning(text="y\ufffd")
    assert whole.content[1] == Text(text="x\ufffd")
    assert isinstance(whole.content[2], ToolCall)
    assert whole.content[2].arguments == {"a": "\ufffd", "\ufffd": ["\ufffd"]}


def test_blank_text_beside_calls_is_no_text() -> None:
    call = piece("execute", "{}", index=0, id="abcd")
    _, whole = assemble([chunk({"content": "\n\n"}), chunk({"tool_calls": [call]}), chunk({}, "stop")])
    assert [type(part) for part in whole.content] == [ToolCall]


def test_an_answer_in_one_object_with_an_old_function_call() -> None:
    message = {"content": None, "function_call": {"name": "execute", "arguments": '{"a": 1}'}}
    _, whole = assemble([{"choices": [{"message": message, "finish_reason": "function_call"}]}])
    assert [(c.name, c.arguments) for c in whole.content if isinstance(c, ToolCall)] == [("execute", {"a": 1})]


def test_cost_and_model_of_the_provider() -> None:
    _, whole = assemble([
        chunk({"content": "a"}, "stop", model="vendor/m-1"),
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}},
    ])  # fmt: skip
    assert whole.cost == 0.25
    assert whole.model == "vendor/m-1"
