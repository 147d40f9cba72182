"""The window that is really served: asked for at first use, remembered, and corrected by what happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deepagent.agent.events import GaugeChanged
from server import Answer, ModelServer

if TYPE_CHECKING:
    from .conftest import Talk

Server = Callable[..., "ModelServer"]
Make = Callable[..., "Talk"]
HI: Answer = {"text": "Hi."}


def stated(tokens: int) -> dict[str, Any]:
    """What vLLM answers to `/v1/models`."""
    return {"/v1/models": {"data": [{"id": "m", "max_model_len": tokens}]}}


def test_nothing_is_asked_at_launch(model_server: Server, talk: Make) -> None:
    server = model_server(HI, routes=stated(8_192))
    assert talk(server).window == (32_000, "assumed")
    assert server.requests == []


async def test_the_server_is_asked_before_the_first_request(model_server: Server, talk: Make) -> None:
    server = model_server(HI, HI, routes=stated(8_192))
    one = talk(server)
    await one.say("hello")
    assert [request.method for request in server.requests] == ["GET", "POST"]
    assert one.window == (8_192, "server")
    assert one.on_windows == ["window: 8,192 tokens from now on (the server serves 8,192 tokens; 32,000 were assumed)"]
    assert next(e.gauge.window for e in one.events if isinstance(e, GaugeChanged)) == 8_192
    await one.say("and again")
    assert [request.method for request in server.requests] == ["GET", "POST", "POST"]
    assert len(one.on_windows) == 1


async def test_the_first_prompt_already_suits_the_window(model_server: Server, talk: Make) -> None:
    servers = [model_server(HI, routes=stated(tokens)) for tokens in (8_192, 128_000)]
    for server in servers:
        await talk(server).say("hello")
    small, large = (len(json.dumps(server.bodies[0])) for server in servers)
    assert small < 0.75 * large


async def test_what_was_found_out_is_used_at_once_the_next_time(
    model_server: Server, talk: Make, isolated: Path
) -> None:
    server = model_server(HI, HI, routes=stated(8_192))
    await talk(server).say("hello")
    file = isolated / ".deepagents" / "cache" / "windows.json"
    assert file.stat().st_mode & 0o777 == 0o600
    server.routes = stated(16_384)
    again = talk(server)
    assert again.window == (8_192, "server")
    await again.say("hello")
    assert again.window == (16_384, "server")
    assert again.on_windows == [
        "window: 16,384 tokens from now on (the server serves 16,384 tokens; 8,192 the server stated)"
    ]
    assert talk(server).window == (16_384, "server")


async def test_the_users_figure_stands_above_the_servers_which_is_not_even_asked(
    model_server: Server, talk: Make
) -> None:
    server = model_server(HI, routes=stated(8_192))
    one = talk(server, context={"window": 20_000})
    await one.say("hello")
    assert one.window == (20_000, "user")
    assert [request.method for request in server.requests] == ["POST"]


async def test_a_server_that_says_nothing_leaves_the_assumption(model_server: Server, talk: Make) -> None:
    one = talk(model_server(HI))
    ended = await one.say("hello")
    assert ended.text == "Hi."
    assert one.window == (32_000, "assumed")
    assert one.notices == []


async def test_a_ceiling_alone_can_only_lower(model_server: Server, talk: Make) -> None:
    for ceiling, window in ((131_072, (32_000, "assumed")), (8_192, (8_192, "server"))):
        row = {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": ceiling}}
        one = talk(model_server(HI, routes={"/v1/models": {"data": [row]}}))
        await one.say("hello")
        assert one.window == window


async def test_a_model_that_the_first_request_loads_is_asked_for_after_it(model_server: Server, talk: Make) -> None:
    def count(_: Any) -> int:
        server.routes["/api/ps"] = {"models": [{"name": "m:latest", "context_length": 4_096}]}
        return 2_000

    routes: dict[str, object] = {"/api/ps": {"models": []}, "/api/show": {"model_info": {"x.context_length": 131_072}}}
    server = model_server(HI, HI, routes=routes, count=count)
    one = talk(server)
    await one.say("hello")
    assert one.window == (4_096, "server")
    asked = len(server.requests)
    await one.say("hello")
    assert len(server.requests) == asked + 1


# Overflow errors


TOO_LONG = "This model's maximum context length is 9000 tokens. However, your messages resulted in 9200 tokens."


async def test_what_an_overflow_error_teaches_is_remembered(model_server: Server, talk: Make) -> None:
    refusal = {"status": 400, "body": {"error": {"message": TOO_LONG}}}
    server = model_server(*({"text": "words and more words " * 150} for _ in range(6)), refusal, HI, HI)
    one = talk(server)
    for number in range(7):
        assert (await one.say(f"question {number}")).outcome == "success"
    assert one.window == (9_000, "overflow")
    assert one.on_windows == ["window: 9,000 tokens from now on (the provider names 9,000; 32,000 were assumed)"]
    assert talk(server).window == (9_000, "overflow")
    server.routes = stated(16_384)
    later = talk(server)
    server.answers.append(HI)
    await later.say("hello")
    assert later.window == (16_384, "server")


# A window that is larger than was believed


def quarter(body: Any) -> int:
    """A token for four characters."""
    return len(json.dumps(body)) // 4


async def test_a_request_that_was_taken_raises_the_window_and_it_is_said_once(model_server: Server, talk: Make) -> None:
    server = model_server(*({"text": f"Answer {n}."} for n in range(7)), count=quarter)
    one = talk(server, context={"auto_compact": False})
    shares: list[float] = []
    for number in range(7):
        await one.say(f"question {number} " + "with rather many words in it " * 700)
        shares.append(one.gauge.used / one.gauge.window)
    assert max(shares) <= 1
    assert one.window[0] >= quarter(server.bodies[-1]) > 32_000
    assert one.window[1] == "assumed"
    assert len(one.on_windows) == 1
    assert "was taken; 32,000 were assumed" in one.on_windows[0]


async def test_a_figure_of_the_users_is_never_raised(model_server: Server, talk: Make) -> None:
    server = model_server(*({"text": f"Answer {n}."} for n in range(4)), count=quarter)
    one = talk(server, context={"auto_compact": False, "window": 9_000})
    for number in range(4):
        await one.say(f"question {number} " + "with rather many words in it " * 300)
    assert quarter(server.bodies[-1]) > 9_000
    assert one.window == (9_000, "user")


# Ollama


OLLAMA = "ollama_chat/m"


@pytest.mark.parametrize(
    ("routes", "context", "expected"),
    [
        ({"/api/ps": {"models": []}, "/api/show": {"model_info": {"x.context_length": 131_072}}}, {}, 32_000),
        ({"/api/ps": {"models": []}, "/api/show": {"model_info": {"x.context_length": 8_192}}}, {}, 8_192),
        ({"/api/ps": {"models": [{"name": "m:latest", "context_length": 4_096}]}}, {}, 32_000),
        ({"/api/ps": {"models": [{"name": "m:latest", "context_length": 65_536}]}}, {}, 65_536),
        ({"/api/show": {"parameters": "num_ctx 16384"}}, {}, 16_384),
        ({"/api/show": {"parameters": "num_ctx 16384"}}, {"window": 12_000}, 12_000),
        ({}, {}, 32_000),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
async def test_ollama_is_told_the_same_window_with_each_request(
    model_server: Server, talk: Make, routes: dict[str, object], context: dict[str, int], expected: int
) -> None:
    answers: list[Answer] = [
        {"body": {"model": "m", "message": {"role": "assistant", "content": "Hi."}, "done": True}}
    ] * 2
    server = model_server(*answers, routes=routes)
    one = talk(server, OLLAMA, context=context, environ={"OLLAMA_API_BASE": server.url.removesuffix("/v1")})
    for _ in range(2):
        await one.say("hello")
    told = [request.body["options"]["num_ctx"] for request in server.requests if request.path == "/api/chat"]
    assert told == [expected] * 2
    assert one.window[0] == expected
