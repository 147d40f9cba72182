"""Model servers on this machine: real ones over loopback, and those that are none, are slow, or lie."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from deepagent.agent.local_servers import USUAL, LocalServer, find_local_servers

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncGenerator[int]:
    """A server on a free port of the loopback address; yields the port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(await reader.readuntil(b"\r\n\r\n"), writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def replying(body: bytes, *, status: str = "200 OK", length: bool = True, hang: bool = False) -> Answer:
    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        assert request.startswith(b"GET /v1/models HTTP/1.")
        size = f"Content-Length: {len(body)}\r\n" if length else ""
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{size}\r\n".encode() + body)
        await writer.drain()
        if hang:
            await asyncio.sleep(5)

    return answer


async def silent(request: bytes, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


def listing(*names: object) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in names]}).encode()


async def test_servers_and_their_models() -> None:
    async with (
        serving(replying(listing("qwen3:8b", "llama"))) as one,
        serving(replying(listing(), length=False)) as two,
    ):
        found = await find_local_servers((("Ollama", one), ("vLLM", two)), limit=2)
    assert found == (
        LocalServer(name="Ollama", url=f"http://127.0.0.1:{one}", models=("qwen3:8b", "llama")),
        LocalServer(name="vLLM", url=f"http://127.0.0.1:{two}", models=()),
    )


async def test_a_server_that_keeps_the_connection_open_is_not_waited_for() -> None:
    async with serving(replying(listing("m"), hang=True)) as port:
        start = time.perf_counter()
        (server,) = await find_local_servers((("x", port),), limit=2)
        assert time.perf_counter() - start < 1.5
    assert server.models == ("m",)


@pytest.mark.parametrize(
    "answer",
    [
        replying(b"<html>", status="200 OK"),
        replying(b"{}"),
        replying(b'{"data": {"id": 1}}'),
        replying(b"[1]"),
        replying(b"\xff\xfe"),
        replying(b"[" * 100_000),
        replying(listing("m" * 2**21)),
        replying(listing("m"), status="404 Not Found"),
        replying(listing("m"), status="401 Unauthorized"),
    ],
    ids=["html", "no data", "odd data", "list", "no utf-8", "deep", "huge", "404", "401"],
)
async def test_other_servers_are_none(answer: Answer) -> None:
    async with serving(answer) as port:
        assert await find_local_servers((("x", port),), limit=2) == ()


async def test_odd_entries_are_left_out() -> None:
    body = json.dumps({"data": [{"id": "good"}, {"id": 5}, {}, "x", {"id": ""}, {"id": "a\x1b[31mb"}]}).encode()
    async with serving(replying(body)) as port:
        (server,) = await find_local_servers((("x", port),), limit=2)
    assert server.models == ("good",)


async def test_silence_closed_ports_and_floods_end_within_the_limit() -> None:
    async def flood(request: bytes, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async def endless_body(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await flood(request, writer)

    async with serving(silent) as a, serving(flood) as b, serving(endless_body) as c, serving(silent) as closed:
        pass
    async with (
        serving(silent) as a,
        serving(flood) as b,
        serving(endless_body) as c,
        serving(replying(listing("m"))) as d,
    ):
        start = time.perf_counter()
        found = await find_local_servers((("a", a), ("b", b), ("c", c), ("closed", closed), ("d", d)))
        took = time.perf_counter() - start
    assert [server.name for server in found] == ["d"]
    assert took < 1


def test_only_the_usual_ports_of_this_machine_are_asked() -> None:
    assert dict(USUAL) == {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
