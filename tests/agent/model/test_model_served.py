"""Asking servers for the window that they serve: each in its own form, over real HTTP."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from deepagent.agent.model.choose import open_model, server_of
from deepagent.agent.model.served import Served, Server, ask_server
from server import ModelServer

Make = Callable[..., "ModelServer"]


def listed(*rows: dict[str, Any]) -> dict[str, Any]:
    """An answer to `/v1/models`."""
    return {"object": "list", "data": [{"object": "model", **row} for row in rows]}


def loaded(*rows: dict[str, Any]) -> dict[str, Any]:
    """An answer to Ollama's `/api/ps`."""
    return {"models": list(rows)}


def shown(context_length: int | None = None, parameters: str = "", **more: Any) -> dict[str, Any]:
    """An answer to Ollama's `/api/show`."""
    info = {"general.architecture": "llama"} | ({"llama.context_length": context_length} if context_length else {})
    return {"model_info": info, "parameters": parameters, **more}


SERVERS: dict[str, tuple[dict[str, object], Served]] = {
    "vLLM": ({"/v1/models": listed({"id": "other", "max_model_len": 9}, {"id": "m", "max_model_len": 40_960})},
             Served(tokens=40_960)),
    "an only model of another name": ({"/v1/models": listed({"id": "/models/m.gguf", "max_model_len": 8_192})},
                                      Served(tokens=8_192)),
    "a gateway": ({"/v1/models": listed({"id": "m", "context_length": 131_072}, {"id": "n"})}, Served(tokens=131_072)),
    "a gateway in other words": ({"/v1/models": listed({"id": "m", "context_window": "65536"}, {"id": "n"})},
                                 Served(tokens=65_536)),
    "a gateway with details": (
        {"/v1/models": listed({"id": "m", "top_provider": {"context_length": 32_768}}, {"id": "n"})},
        Served(tokens=32_768),
    ),
    "llama.cpp": (
        {
            "/v1/models": listed({"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072, "n_ctx": 9_999}}),
            "/props": {"default_generation_settings": {"n_ctx": 4_096}, "total_slots": 4},
        },
        Served(tokens=4_096, ceiling=131_072, slots=4),
    ),
    "llama.cpp that keeps its properties to itself": (
        {"/v1/models": listed({"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}})},
        Served(ceiling=131_072),
    ),
    "LM Studio, loaded": (
        {
            "/v1/models": listed({"id": "m"}, {"id": "n"}),
            "/api/v0/models": listed(
                {"id": "m", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 8_192}
            ),
        },
        Served(tokens=8_192, ceiling=131_072),
    ),
    "LM Studio, not loaded": (
        {"/api/v0/models": listed({"id": "m", "state": "not-loaded", "max_context_length": 131_072})},
        Served(ceiling=131_072, waits=True),
    ),
    "text-generation-inference": ({"/info": {"model_id": "m", "max_total_tokens": 4_096}}, Served(tokens=4_096)),
    "Ollama by its other API, loaded": (
        {"/api/ps": loaded({"name": "m:latest", "context_length": 4_096}), "/api/show": shown(131_072)},
        Served(tokens=4_096, ceiling=131_072),
    ),
    "Ollama by its other API, not loaded": (
        {
            "/api/ps": loaded({"name": "n", "context_length": 4_096}),
            "/api/show": shown(131_072, "num_ctx    16384\nstop x"),
        },
        Served(ceiling=131_072, fixed=16_384, waits=True),
    ),
    "a server that says nothing": ({}, Served()),
    "figures that are none": (
        {"/v1/models": listed({"id": "m", "max_model_len": True, "context_length": -1, "context_window": "many"})},
        Served(),
    ),
    "rubbish": (
        {"/v1/models": "<html>", "/props": [1], "/api/v0/models": {"data": [3, None]}, "/api/ps": {"models": 7}},
        Served(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SERVERS)
async def test_each_server_is_understood(model_server: Make, name: str) -> None:
    routes, expected = SERVERS[name]
    server = model_server(routes={"/v1/models": {}, **routes})
    assert await ask_server(Server(endpoint=server.url, model="m")) == expected
    assert [request.body for request in server.requests if request.method == "POST"] in ([], [{"model": "m"}])


OLLAMA: dict[str, tuple[dict[str, object], Served]] = {
    "loaded": (
        {"/api/ps": loaded({"model": "m", "context_length": 65_536}), "/api/show": shown(131_072)},
        Served(tokens=65_536, ceiling=131_072),
    ),
    "not loaded": ({"/api/ps": loaded(), "/api/show": shown(8_192)}, Served(ceiling=8_192, waits=True)),
    "a model that runs elsewhere": (
        {"/api/ps": loaded(), "/api/show": shown(262_144, remote_host="https://models.example")},
        Served(tokens=262_144, ceiling=262_144),
    ),
    "an older one": ({"/api/show": shown(None, "num_ctx 4096")}, Served(fixed=4_096, waits=True)),
}


@pytest.mark.parametrize("name", OLLAMA)
async def test_ollama_is_understood(model_server: Make, name: str) -> None:
    routes, expected = OLLAMA[name]
    server = model_server(routes=routes)
    asked = Server(endpoint=server.url.removesuffix("/v1"), model="m", ollama=True)
    assert await ask_server(asked) == expected
    assert {request.path for request in server.requests} == {"/api/ps", "/api/show"}


async def test_the_key_goes_along_and_is_not_shown(model_server: Make) -> None:
    server = model_server()
    asked = Server(endpoint=server.url, model="m", key="sk-test-1234567890")
    await ask_server(asked)
    assert {request.headers.get("authorization") for request in server.requests} == {"Bearer sk-test-1234567890"}
    assert "sk-test" not in repr(asked)


async def test_a_server_is_asked_one_thing_at_a_time_on_one_connection(model_server: Make) -> None:
    server = model_server()
    await ask_server(Server(endpoint=server.url, model="m"))
    assert len(server.requests) >= 4
    assert server.connections == 1


async def test_nobody_there_is_none() -> None:
    assert await ask_server(Server(endpoint="http://127.0.0.1:9/v1", model="m")) is None
    assert await ask_server(Server(endpoint="http://[", model="m")) is None


async def test_a_server_that_never_answers_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        began = time.monotonic()
        asked = Server(endpoint=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", model="m")
        assert await ask_server(asked, limit=0.2) is None
        assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("name", "environ", "expected"),
    [
        ("openai/gpt-5", {}, None),
        ("gpt-4o", {"OPENAI_BASE_URL": "https://api.openai.com/v1"}, None),
        ("openrouter/qwen/qwen3", {}, None),
        ("groq/llama", {}, None),
        ("anthropic/claude-sonnet-4-5", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, None),
        ("qwen3", {"OPENAI_BASE_URL": "http://10.0.0.7:8000/v1"}, ("http://10.0.0.7:8000/v1", "qwen3", False)),
        ("groq/llama", {"GROQ_API_BASE": "http://10.0.0.7/v1"}, ("http://10.0.0.7/v1", "llama", False)),
        ("lm_studio/qwen3", {}, ("http://localhost:1234/v1", "qwen3", False)),
        ("llamacpp/m", {}, ("http://localhost:8080/v1", "m", False)),
        ("ollama_chat/llama3.1:8b", {}, ("http://localhost:11434", "llama3.1:8b", True)),
        ("ollama/m", {"OLLAMA_HOST": "10.0.0.7:11434"}, ("http://10.0.0.7:11434", "m", True)),
    ],
)
def test_only_servers_of_ones_own_are_asked(
    name: str, environ: dict[str, str], expected: tuple[str, str, bool] | None
) -> None:
    server = server_of(open_model(name, keys=lambda _: "key-for-tests", environ=environ))
    assert (server and (server.endpoint, server.model, server.ollama)) == expected
