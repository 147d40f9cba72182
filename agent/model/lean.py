"""The lean lane: providers and servers that speak OpenAI's chat stream, over httpx alone. Starts in milliseconds.

The only module that imports httpx. What is sent and what comes back is shared with the litellm lane (`wire`,
`assemble`, `translate`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import httpx

from ... import __version__
from ...context.messages import AssistantMessage
from ...context.tokens import Returned
from ..errors import BadRequestError, ConfigError, ModelError
from .assemble import StreamAssembler
from .patience import Patience, next_piece
from .quirks import Profile
from .served import Server
from .sse import EventReader, whole_event
from .tls import trust
from .translate import Origin, broken_answer, exception_error, http_error
from .types import Delta, ModelRequest
from .wire import Encoder, Wire

_CONNECT = 10.0
_IDLE_CONNECTION = 60.0
"""Seconds that a connection is kept for the next turn."""
_ERROR_BYTES = 64_000


class LeanModel:
    """A model behind an OpenAI-shaped endpoint. One client, one connection that is kept between turns."""

    lane = "lean"

    def __init__(
        self,
        name: str,
        *,
        origin: Origin,
        profile: Profile,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        patience: Patience | None = None,
        proxies: bool = True,
        server: Server | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`name` is the user's name for it, `origin.model` the provider's, `origin.endpoint` the address with `/v1`.

        `server` is who can be asked for the window.
        """
        self.name = name
        self.endpoint = origin.endpoint
        self.server = server
        self._origin = origin
        self._wire = Wire(origin.model, profile)
        self._encoder = Encoder()
        self._patience = patience or Patience()
        self._proxies = proxies
        self._environ = environ
        self._client: httpx.AsyncClient | None = None
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"deepagent/{__version__}",
            **({"Authorization": f"Bearer {key}"} if key else {}),
            **(headers or {}),
        }

    def returned(self, message: AssistantMessage) -> Returned:
        """What of an answer's reasoning goes out with it."""
        return self._wire.returned(message)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Answers `request`."""
        assembler = StreamAssembler(request, self._origin, limit=self._wire.limit(request))
        try:
            async with aclosing(self._chunks(request, assembler)) as chunks:
                async for chunk in chunks:
                    for delta in assembler.feed(chunk):
                        yield delta
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            if not assembler.ended:
                raise exception_error(error, self._origin) from error
        yield assembler.finish()

    async def aclose(self) -> None:
        """Gives back the connection."""
        client, self._client = self._client, None
        if client:
            await client.aclose()

    async def _chunks(self, request: ModelRequest, assembler: StreamAssembler) -> AsyncGenerator[dict[str, Any], None]:
        body = self._encoder.encode(self._wire.body(request))
        client = self._open()
        message = client.build_request("POST", f"{self.endpoint}/chat/completions", content=body, headers=self._headers)
        async with asyncio.timeout(self._patience.first):
            response = await client.send(message, stream=True)
        try:
            if not response.is_success:
                raise await self._refusal(response)
            async with aclosing(self._answer(response, assembler)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            await response.aclose()

    async def _answer(
        self, response: httpx.Response, assembler: StreamAssembler
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of an answer, streamed or whole."""
        kind = response.headers.get("content-type", "").lower()
        if "text/html" in kind:
            raise BadRequestError(
                f"{self.endpoint} answers with a web page. Is it the address of an OpenAI-shaped API? "
                "Such addresses mostly end with /v1."
            )
        data = response.aiter_bytes()
        if "application/json" in kind:
            async with asyncio.timeout(self._patience.first):
                body = await response.aread()
            for chunk in self._read(whole_event(body)):
                yield chunk
            return
        reader = EventReader()
        while not reader.done and (piece := await next_piece(data, b"", self._patience, assembler)):
            for chunk in self._read(reader.feed(piece)):
                yield chunk
        for chunk in self._read(reader.feed(b"\n\n")):
            yield chunk
        with suppress(TimeoutError):  # a body that was read to its end leaves the connection usable
            async with asyncio.timeout(0.25):
                while await anext(data, b""):
                    pass

    def _read(self, events: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
        """The chunks that `events` gives, or our error where they cannot be read."""
        try:
            return list(events)
        except ValueError as error:
            raise broken_answer(error, self._origin) from error

    async def _refusal(self, response: httpx.Response) -> ModelError:
        body = b""
        with suppress(TimeoutError, httpx.HTTPError):
            async with asyncio.timeout(_CONNECT):
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > _ERROR_BYTES:
                        break
        if location := response.headers.get("location"):
            body = f"it redirects to {location}; use that address".encode()
        return http_error(response.status_code, body.decode("utf-8", "replace"), response.headers, self._origin)

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            try:
                self._client = httpx.AsyncClient(
                    verify=trust(self.endpoint, self._environ),
                    timeout=httpx.Timeout(None, connect=_CONNECT),
                    limits=httpx.Limits(keepalive_expiry=_IDLE_CONNECTION),
                    trust_env=self._proxies,
                )
            except (ImportError, ValueError) as error:  # a SOCKS proxy without its package, or no proxy's address
                raise ConfigError(f"The proxy in the environment cannot be used: {error}") from error
        return self._client
