"""Asks a model server which window it serves. Only servers of the user's own are asked, and only when one is used.

Each server is asked in its own way, a question at a time and all of it within seconds; an answer of another form is no
answer. What follows from the figures is `agent.window_keeper`'s business.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from ..errors import ConfigError
from .providers import is_loopback
from .tls import trust

if TYPE_CHECKING:
    import httpx

Row = Mapping[str, Any]

LIMIT = 3.0
"""Seconds that all questions to a server may take together."""
_MAX_ANSWER = 4 * 1024 * 1024
"""Bytes of an answer that are read: lists of models are long, and Ollama tells a model's whole template."""
_SIZES = range(256, 100_000_000)
"""Tokens that a window can have."""
_SERVED = (
    *("max_model_len", "loaded_context_length", "n_ctx", "max_total_tokens"),
    *("context_length", "context_window", "context_size", "max_input_tokens"),
)
"""Fields of vLLM and SGLang, LM Studio, llama.cpp, TGI; then those of gateways, which pass on what others serve."""
_STATED = ("max_context_length", "n_ctx_train", "max_position_embeddings")
"""Fields that say what a model can have, whatever it was loaded with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server of the user's own, and the model there."""

    endpoint: str
    """The address that the lane uses, with `/v1` or without."""
    model: str
    """As the server knows it."""
    key: str | None = field(default=None, repr=False)
    ollama: bool = False
    """It is spoken to in Ollama's own API, and serves the window that a request names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a server says. Sizes are tokens."""

    tokens: int | None = None
    """The window that is served."""
    ceiling: int | None = None
    """The longest window that the model can have."""
    fixed: int | None = None
    """The window that whoever installed the model wrote down for it (`num_ctx`)."""
    slots: int | None = None
    """How many requests the server works on at once."""
    waits: bool = False
    """The server loads the model with the first request; what it then serves can be asked afterwards."""


async def ask_server(server: Server, *, environ: Mapping[str, str] = os.environ, limit: float = LIMIT) -> Served | None:
    """What `server` says of its model; None where nothing answers. Raises nothing but cancellation."""
    import httpx

    asked = _Asked(server)
    with suppress(httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError, ConfigError):
        async with asyncio.timeout(limit), AsyncExitStack() as stack:
            client = httpx.AsyncClient(
                verify=trust(server.endpoint, environ),
                timeout=httpx.Timeout(limit),
                trust_env=not is_loopback(server.endpoint),
            )
            asked.client = await stack.enter_async_context(client)
            await (asked.ollama() if server.ollama else asked.any_server())
    return asked.served if asked.answered else None


class _Asked:
    """One round of questions, and what has come of it so far."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client: httpx.AsyncClient | None = None
        self.served = Served()
        self.answered = False

    async def any_server(self) -> None:
        """A server that is known by its API alone: it is asked as OpenAI's, then as those that have more to say."""
        listed = self._row(await self._get(f"{self.server.endpoint}/models")) or {}
        if listed.get("owned_by") != "llamacpp":  # there, the list is less exact than what follows
            self._take(listed)
        if self.served.tokens is None:
            await self._llama_cpp()
            self._take(listed)
        if self.served.tokens is None:
            await self._lm_studio()
        if self.served.tokens is None:
            self._take(_object(await self._get(f"{self._root}/info")))
        if self.served.tokens is None:
            await self.ollama()

    async def _llama_cpp(self) -> None:
        """`n_ctx` there is a slot's window."""
        props = _object(await self._get(f"{self._root}/props"))
        settings = _object(props.get("default_generation_settings"))
        self._take({"n_ctx": settings.get("n_ctx") or props.get("n_ctx")})
        if isinstance(slots := props.get("total_slots"), int) and slots > 0:
            self.served = replace(self.served, slots=slots)

    async def _lm_studio(self) -> None:
        if row := self._row(await self._get(f"{self._root}/api/v0/models")):
            self._take(row)
            self.served = replace(self.served, waits=row.get("state") == "not-loaded")

    async def ollama(self) -> None:
        """`/api/ps` says what is served, `/api/show` what the model can have and what was written down for it."""
        loaded = _object(await self._get(f"{self._root}/api/ps"))
        if not (self.server.ollama or isinstance(loaded.get("models"), list)):
            return
        running = self._row(loaded, within="models")
        if running:
            self._take({"n_ctx": running.get("context_length")})
        shown = _object(await self._get(f"{self._root}/api/show", {"model": self.server.model}))
        sizes = _object(shown.get("model_info")).items()
        ceiling = next((_size(size) for key, size in sizes if key.endswith(".context_length")), None)
        written = re.search(r"(?m)^\s*num_ctx\s+(\d+)", str(shown.get("parameters", "")))
        elsewhere = bool(shown.get("remote_host") or shown.get("remote_model"))  # then nothing is loaded here
        self.served = replace(
            self.served,
            tokens=self.served.tokens or (ceiling if elsewhere else None),
            ceiling=ceiling or self.served.ceiling,
            fixed=_size(int(written[1])) if written else None,
            waits=not running and not elsewhere,
        )

    def _take(self, row: Row) -> None:
        """Takes the sizes that a row states; what was taken before stays."""
        rows = (row, *(_object(row.get(key)) for key in ("meta", "model_info", "top_provider")))
        tokens, ceiling = (next(_sizes(rows, keys), None) for keys in (_SERVED, _STATED))
        self.served = replace(self.served, tokens=self.served.tokens or tokens, ceiling=self.served.ceiling or ceiling)

    def _row(self, answer: object, *, within: str = "data") -> Row | None:
        """What a list of models says of ours. A list of one is believed to mean it: servers rename their only model."""
        listed = _object(answer).get(within)
        rows = [_object(row) for row in cast(list[object], listed)] if isinstance(listed, list) else []
        names = {self.server.model, f"{self.server.model}:latest"}
        named = (row for row in rows if any(row.get(key) in names for key in ("id", "name", "model")))
        return next(named, rows[0] if len(rows) == 1 and within == "data" else None)

    @property
    def _root(self) -> str:
        """The address without the API's path."""
        parts = urlsplit(self.server.endpoint)
        path = re.sub(r"/v\d+/?$", "", parts.path).rstrip("/")
        return urlunsplit((parts.scheme, parts.netloc, path, "", ""))

    async def _get(self, url: str, body: Row | None = None) -> object:
        """The JSON of a successful answer, else None. Raises `httpx.HTTPError` where nothing answers."""
        assert self.client is not None
        headers = {"Authorization": f"Bearer {self.server.key}"} if self.server.key else {}
        async with self.client.stream("POST" if body else "GET", url, json=body, headers=headers) as response:
            self.answered = True
            data = b""
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > _MAX_ANSWER:
                    return None
        with suppress(ValueError, RecursionError):
            return json.loads(data) if response.is_success else None
        return None


def _object(value: object) -> Row:
    return cast(Row, value) if isinstance(value, dict) else {}


def _sizes(rows: Iterable[Row], keys: tuple[str, ...]) -> Iterator[int]:
    return (size for key in keys for row in rows if (size := _size(row.get(key))) is not None)


def _size(value: object) -> int | None:
    """A number of tokens, or None for what cannot be one."""
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value.strip())
    return int(value) if isinstance(value, (int, float)) and value in _SIZES else None
