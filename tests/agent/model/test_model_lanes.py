"""Both lanes against one server, over real HTTP: the same answers, the same errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from deepagent.agent.errors import (
    AuthError,
    BadRequestError,
    BrokenStreamError,
    ConnectionFailed,
    ContextOverflowError,
    OutOfCreditError,
    RateLimitError,
    ServerError,
    UnknownModelError,
)
from deepagent.agent.model.patience import Patience
from deepagent.agent.model.types import CallDelta, Model, ModelRequest, ReasoningDelta, TextDelta
from deepagent.context.entries import Usage
from deepagent.context.messages import AssistantMessage, Reasoning, Text, ToolCall, ToolMessage
from server import ModelServer

Server = Callable[..., "ModelServer"]
Ask = Callable[..., ModelRequest]
Lane = Callable[..., Model]


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice]} | more


def called(*calls: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": list(calls)})


def call(index: int | None, id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    marks = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return {**marks, "type": "function", "function": function}


DONE = "data: [DONE]\n\n"
USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}


async def test_text_arrives_in_pieces_and_whole(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    server = model_server({"text": "Hello, this is an answer.", "usage": USAGE})
    deltas, whole = await run(lane(server.url), ask("hi"))
    assert sum(isinstance(d, TextDelta) for d in deltas) > 2
    assert whole.content == (Text(text="Hello, this is an answer."),)
    assert whole.stop == "end"
    assert whole.usage == Usage(input=100, output=7, cache_read=60)


async def test_request_has_everything_and_the_key(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    server = model_server({"text": "ok"})
    await run(lane(server.url), ask("hi", max_output=50))
    body = server.bodies[0]
    assert server.requests[0].headers["authorization"] == "Bearer sk-test"
    assert body["model"] == "test-model"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 50
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert body["tools"][0]["function"]["name"] == "read_file"


async def test_parallel_calls(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    calls = [{"name": "read_file", "arguments": {"path": f"src/file-{n}.py"}} for n in range(3)]
    deltas, whole = await run(lane(model_server({"text": "Reading.", "calls": calls}).url), ask("hi"))
    assert [c.arguments for c in whole.content[1:]] == [c["arguments"] for c in calls]
    assert len({c.id for c in whole.content[1:]}) == 3
    assert whole.stop == "tool_calls"
    pieces = [d for d in deltas if isinstance(d, CallDelta)]
    assert {d.index for d in pieces} == {0, 1, 2}
    assert "".join(d.arguments for d in pieces if d.index == 1) == '{"path": "src/file-1.py"}'


A, B = '{"path":"a"}', '{"path":"b"}'
READ = "read_file"
SHAPES = {
    "two ids at one index": [
        called(call(0, "aa", READ, '{"path":'), call(0, "bb", READ, B)),
        called(call(0, "aa", None, '"a"}')),
    ],
    "whole calls in one chunk": [called(call(0, "aa", READ, A), call(1, "bb", READ, B))],
    "no ids": [called(call(0, None, READ, A)), called(call(1, None, READ, B))],
    "empty ids at one index": [called(call(0, "", READ, A)), called(call(0, "", READ, B))],
    "arguments as objects": [called(call(0, "aa", READ, {"path": "a"})), called(call(1, "bb", READ, {"path": "b"}))],
    "name later": [called(call(0, "aa", "", "")), called(call(0, None, READ, A)), called(call(1, "bb", READ, B))],
}


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
async def test_bent_calls_are_two_calls(
    *, lane: Lane, model_server: Server, ask: Ask, run: Any, shape: list[Any], finish: str
) -> None:
    server = model_server({"chunks": [*shape, chunk({}, finish), DONE]})
    _, whole = await run(lane(server.url), ask("hi"))
    calls = [part for part in whole.content if isinstance(part, ToolCall)]
    assert [(c.name, dict(c.arguments), c.error) for c in calls] == [
        ("read_file", {"path": "a"}, None),
        ("read_file", {"path": "b"}, None),
    ]
    assert len({c.id for c in calls}) == 2
    assert all(c.id for c in calls)
    assert whole.stop == "tool_calls"


async def test_reasoning_comes_and_goes_back(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    from deepagent.agent.model.quirks import Profile

    server = model_server(
        {"thinking": "Let me think about it.", "calls": [{"name": "read_file", "arguments": {"path": "a"}}]}, {}
    )
    model = lane(server.url, profile=Profile(vendor="test-model", thought=True))
    deltas, whole = await run(model, ask("hi"))
    assert whole.content[0] == Reasoning(text="Let me think about it.")
    assert any(isinstance(d, ReasoningDelta) for d in deltas)
    answer = AssistantMessage(id="a", time="", content=whole.content, model=model.name, stop=whole.stop)
    result = ToolMessage(id="t", time="", call_id=answer.calls[0].id, tool="read_file", content=(Text(text="A"),))
    await run(model, ask("hi", answer, result))
    sent = server.bodies[1]["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool"]
    assert sent[2]["reasoning_content"] == "Let me think about it."
    assert "content" not in sent[2] or sent[2]["content"] is None
    assert sent[3]["tool_call_id"] == sent[2]["tool_calls"][0]["id"]


@pytest.mark.parametrize("place", ["last choice", "chunk of its own", "every chunk"])
async def test_usage_wherever_it_stands(lane: Lane, model_server: Server, ask: Ask, run: Any, place: str) -> None:
    start = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    end = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}
    places: dict[str, list[dict[str, Any]]] = {
        "last choice": [chunk({"content": "a"}), chunk({}, "stop", usage=end)],
        "chunk of its own": [chunk({"content": "a"}), chunk({}, "stop"), chunk({}, choices=[], usage=end)],
        "every chunk": [chunk({"content": "a"}, usage=start), chunk({}, "stop", usage=end)],
    }
    _, whole = await run(lane(model_server({"chunks": [*places[place], DONE]}).url), ask("hi"))
    assert whole.usage == Usage(input=100, output=9)


async def test_no_usage_is_none(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    _, whole = await run(lane(model_server({"text": "hi"}).url), ask("hi"))
    assert whole.usage is None


async def test_cut_by_the_output_limit(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    cut = {"name": "write_file", "arguments": '{"path": "a", "content": "half of'}
    _, whole = await run(lane(model_server({"calls": [cut], "finish": "length"}).url), ask("hi"))
    assert whole.stop == "length"
    assert whole.content[0].arguments == {}
    assert "write_file" in whole.content[0].error


async def test_broken_arguments_name_the_problem(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    broken = {"name": "read_file", "arguments": '{"path": }'}
    _, whole = await run(lane(model_server({"calls": [broken]}).url), ask("hi"))
    assert whole.content[0].arguments == {}
    assert "no valid JSON" in whole.content[0].error
    assert '{"path": }' in whole.content[0].error


OVERFLOW = "This model's maximum context length is 8192 tokens. However, your messages resulted in 10346 tokens."


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}, AuthError),
        (402, {"message": "Insufficient balance"}, OutOfCreditError),
        (403, {"message": "Your API key lacks the scope"}, AuthError),
        (404, {"message": "The model `test-model` does not exist", "code": "model_not_found"}, UnknownModelError),
        (400, {"message": "Invalid value for temperature"}, BadRequestError),
        (400, {"message": OVERFLOW, "code": "context_length_exceeded"}, ContextOverflowError),
        (422, {"message": "Unprocessable"}, BadRequestError),
        (429, {"message": "Rate limit reached", "type": "rate_limit_error"}, RateLimitError),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, OutOfCreditError),
        (500, {"message": "Internal error"}, ServerError),
        (503, {"message": "Overloaded"}, ServerError),
    ],
)
async def test_statuses_are_errors(
    *, lane: Lane, model_server: Server, ask: Ask, fails: Any, status: int, error: dict[str, str], kind: type
) -> None:
    server = model_server({"status": status, "body": {"error": error}})
    deltas, caught = await fails(lane(server.url), ask("hi"))
    assert type(caught) is kind
    assert caught.status == status
    assert error["message"].rstrip(".") in str(caught)
    assert not deltas
    assert len(server.bodies) == 1, "a lane repeats nothing by itself"


async def test_overflow_names_the_window(lane: Lane, model_server: Server, ask: Ask, fails: Any) -> None:
    server = model_server({"status": 400, "body": {"error": {"message": OVERFLOW}}})
    _, caught = await fails(lane(server.url), ask("hi"))
    assert caught.window == 8192


async def test_retry_after_is_read(lane: Lane, model_server: Server, ask: Ask, fails: Any) -> None:
    answer = {"status": 429, "headers": {"retry-after": "17"}, "body": {"error": {"message": "Slow down"}}}
    _, caught = await fails(lane(model_server(answer).url), ask("hi"))
    assert caught.retry_after == 17


async def test_wrong_key_says_what_to_do(lane: Lane, model_server: Server, ask: Ask, fails: Any) -> None:
    server = model_server({"status": 401, "body": {"error": {"message": "wrong key"}}})
    _, caught = await fails(lane(server.url), ask("hi"))
    assert "OPENAI_API_KEY" in str(caught)
    assert "deepagent auth set openai" in str(caught)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "prompt is too long: 210000 tokens > 200000 maximum"}, ContextOverflowError),
        ({"message": "Overloaded", "type": "overloaded_error"}, ServerError),
        ({"message": "Rate limit exceeded", "code": 429}, RateLimitError),
    ],
)
async def test_errors_inside_the_stream(
    *, lane: Lane, model_server: Server, ask: Ask, fails: Any, error: dict[str, Any], kind: type
) -> None:
    server = model_server({"chunks": [chunk({"content": "par"}), chunk({"content": "tial"}), {"error": error}]})
    deltas, caught = await fails(lane(server.url), ask("hi"))
    assert type(caught) is kind
    assert len(deltas) == 2


@pytest.mark.parametrize("answer", [{"text": "Hello, hello", "cut": 2}, {"text": "Hello, hello", "finish": None}])
async def test_cut_stream(lane: Lane, model_server: Server, ask: Ask, fails: Any, answer: dict[str, Any]) -> None:
    deltas, caught = await fails(lane(model_server(answer).url), ask("hi"))
    assert type(caught) is BrokenStreamError
    assert deltas, "what came before is shown"


async def test_slow_stream(lane: Lane, model_server: Server, ask: Ask, fails: Any) -> None:
    server = model_server({"chunks": [chunk({"content": "a"}), 5, chunk({"content": "b"}), chunk({}, "stop")]})
    _, caught = await fails(lane(server.url, patience=Patience(next=0.2)), ask("hi"))
    assert type(caught) is BrokenStreamError
    assert "too long" in str(caught)


async def test_silence_before_the_answer(lane: Lane, model_server: Server, ask: Ask, fails: Any, run: Any) -> None:
    server = model_server({"wait": 0.5, "text": "late"}, {"wait": 0.5, "text": "late"})
    _, caught = await fails(lane(server.url, patience=Patience(first=0.1)), ask("hi"))
    assert type(caught) is BrokenStreamError
    _, whole = await run(lane(server.url, patience=Patience(first=None, next=0.1)), ask("hi"))
    assert whole.content == (Text(text="late"),)


async def test_nothing_listens(lane: Lane, model_server: Server, ask: Ask, fails: Any) -> None:
    server = model_server()
    url, port = server.url, server.port
    server.close()
    _, caught = await fails(lane(url), ask("hi"))
    assert type(caught) is ConnectionFailed
    assert f"127.0.0.1:{port}" in str(caught)
    assert "refused" in str(caught)


async def test_cancelling_ends_the_request(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    model = lane(model_server({"text": "never ending", "pace": 0.3}, {"text": "next"}).url)
    started = asyncio.Event()

    async def consume() -> None:
        async for _ in model.stream(ask("hi")):
            started.set()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(started.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 2)
    _, whole = await run(model, ask("again"))
    assert whole.content == (Text(text="next"),)


async def test_hard_text_survives(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    text = 'ünï 🦊 </s> <|endoftext|> \u2028 \x00 "quoted" \\ \ud800'
    server = model_server({"text": "🦊 back"})
    _, whole = await run(lane(server.url), ask(text))
    assert server.bodies[0]["messages"][1]["content"] == text.replace("\ud800", "\ufffd")
    assert whole.content == (Text(text="🦊 back"),)


async def test_connection_is_kept(lane: Lane, model_server: Server, ask: Ask, run: Any) -> None:
    server = model_server(*({"text": f"answer {n}", "usage": USAGE} for n in range(4)))
    model = lane(server.url)
    for _ in range(4):
        await run(model, ask("hi"))
    assert server.connections == 1
