"""Finds model servers that listen on this machine. Asks the loopback address alone, all ports at once, and briefly.

Which window such a server really serves is found out elsewhere; here it is only seen that it is there.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

LIMIT = 0.3
"""Seconds that the whole search may take."""
_MAX_ANSWER = 1024 * 1024
_MAX_MODELS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A server that answered."""

    name: str
    """`Ollama`, `LM Studio`, `llama.cpp` or `vLLM`: by its usual port, so it is a guess."""
    url: str
    """Without a path: `http://127.0.0.1:11434`."""
    models: tuple[str, ...]


USUAL = (("Ollama", 11434), ("LM Studio", 1234), ("llama.cpp", 8080), ("vLLM", 8000))
"""Names and ports; each of these servers lists its models under `/v1/models`."""


async def find_local_servers(
    candidates: tuple[tuple[str, int], ...] = USUAL, *, limit: float = LIMIT
) -> tuple[LocalServer, ...]:
    """Those of `candidates` that answer like a model server within `limit` seconds. Raises nothing."""
    found = await asyncio.gather(*(_ask(name, port, limit) for name, port in candidates))
    return tuple(server for server in found if server is not None)


async def _ask(name: str, port: int, limit: float) -> LocalServer | None:
    with suppress(OSError, TimeoutError, ValueError, EOFError, asyncio.LimitOverrunError, RecursionError):
        async with asyncio.timeout(limit):
            models = _models(await _get(port, "/v1/models"))
        if models is not None:
            return LocalServer(name=name, url=f"http://127.0.0.1:{port}", models=models)
    return None


async def _get(port: int, path: str) -> bytes:
    """The body of a successful answer. HTTP/1.0, so that no server sends it in chunks."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not re.match(rb"HTTP/1\.[01] 200\b", head):
            raise ValueError("not found here")
        length = re.search(rb"(?im)^content-length:[ \t]*(\d+)", head)
        return await _body(reader, int(length[1]) if length else _MAX_ANSWER)
    finally:
        writer.transport.abort()  # `close` would wait for a server that does not


async def _body(reader: asyncio.StreamReader, length: int) -> bytes:
    body = b""
    length = min(length, _MAX_ANSWER)
    while len(body) < length and (piece := await reader.read(length - len(body))):
        body += piece
    return body


def _models(body: bytes) -> tuple[str, ...] | None:
    """The ids in `{"data": [{"id": …}, …]}`; None if the answer has another form."""
    answer: object = json.loads(body)
    data = cast(dict[str, object], answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        return None
    items = [cast(dict[str, object], item) for item in cast(list[object], data) if isinstance(item, dict)]
    ids = [item.get("id") for item in items[:_MAX_MODELS]]
    return tuple(i for i in ids if isinstance(i, str) and i.isprintable() and i)
