"""The litellm lane: every other provider, through litellm. The only module that imports it, late and in a thread: that
takes seconds.

What is sent and what comes back is shared with the lean lane (`wire`, `assemble`, `translate`). litellm's own retries,
prints, logs, token counts, `.env` loading and price download are off: stdout is ours, and figures are the provider's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from functools import cache
from typing import Any, cast

from ...context.messages import AssistantMessage
from ...context.tokens import Returned
from .assemble import StreamAssembler
from .patience import Patience, next_piece
from .quirks import Profile
from .served import Server
from .translate import Origin, exception_error
from .types import Delta, ModelRequest
from .wire import Form, Wire

_FOREVER = 86_400.0
_END: Any = None

_open = 0
"""How many models of this lane are in use; the last one to go closes litellm's connections."""


class LitellmModel:
    """A model that litellm reaches."""

    lane = "litellm"

    def __init__(
        self,
        name: str,
        *,
        origin: Origin,
        profile: Profile,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        window: int | None = None,
        patience: Patience | None = None,
        server: Server | None = None,
    ) -> None:
        """`origin.model` is the name as litellm takes it; `origin.endpoint` its address, or empty for litellm's own.

        `window` (tokens) is what Ollama is told to serve: the same with each request, or it loads the model anew.
        `server` is who can be asked for the window.
        """
        self.name = name
        self.endpoint = origin.endpoint
        self.server = server
        self._origin = origin
        self._wire = Wire(origin.model, profile)
        self._patience = patience or Patience()
        self._more: Form = {
            "api_key": key,
            "api_base": origin.endpoint or None,
            "extra_headers": dict(headers) if headers else None,
            "num_ctx": window if origin.model.startswith("ollama") else None,
        }
        self._used = False

    def serve(self, window: int) -> None:
        """From now on Ollama is told to serve a window of so many tokens. Each change makes it load the model anew."""
        if self._origin.model.startswith("ollama"):
            self._more["num_ctx"] = window

    async def prepare(self) -> None:
        """Imports litellm, off the event loop. Called early, it is there when the first request comes."""
        await asyncio.to_thread(_litellm)

    def returned(self, message: AssistantMessage) -> Returned:
        """What of an answer's reasoning goes out with it."""
        return self._wire.returned(message)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Answers `request`."""
        self._count_use()
        await self.prepare()
        _litellm().ssl_verify = _authorities()
        assembler = StreamAssembler(request, self._origin, limit=self._wire.limit(request))
        async with aclosing(self._chunks(request, assembler)) as chunks:
            async for chunk in chunks:
                for delta in assembler.feed(chunk):
                    yield delta
        yield assembler.finish()

    async def aclose(self) -> None:
        """Gives back the connections, once no other model of this lane is in use."""
        global _open  # noqa: PLW0603  # litellm keeps its connections per process, so their use is counted per process
        if self._used:
            self._used = False
            _open -= 1
            if not _open:
                litellm = _litellm()
                await litellm.close_litellm_async_clients()
                litellm.in_memory_llm_clients_cache.flush_cache()
                cast(dict[str, Any], vars(litellm)).pop(
                    "module_level_aclient", None
                )  # made anew, on the event loop of the next use

    def _count_use(self) -> None:
        global _open  # noqa: PLW0603  # see `aclose`
        if not self._used:
            self._used = True
            _open += 1

    async def _chunks(self, request: ModelRequest, assembler: StreamAssembler) -> AsyncGenerator[Form, None]:
        """The chunks of the answer; raises our errors."""
        answer: Any = None
        try:
            async with asyncio.timeout(self._patience.first):
                answer = await _litellm().acompletion(**self._call(request))
            chunks = aiter(answer)
            while (chunk := await self._next(chunks, assembler)) is not _END:
                yield chunk.model_dump(exclude_none=True, warnings=False)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not assembler.ended:
                raise exception_error(error, self._origin) from error
        finally:
            if answer is not None:
                with suppress(Exception):
                    await answer.aclose()

    async def _next(self, chunks: AsyncIterator[Any], assembler: StreamAssembler) -> Any:
        return await next_piece(chunks, _END, self._patience, assembler)

    def _call(self, request: ModelRequest) -> Form:
        """The arguments of litellm's call; it changes what it gets, so it gets copies."""
        body = cast(Form, _copied(self._wire.body(request)))
        more = {key: value for key, value in self._more.items() if value is not None}
        timeout = self._patience.first or _FOREVER
        return {**body, **more, "timeout": timeout, "num_retries": 0, "max_retries": 0, "drop_params": True}


@cache
def _litellm() -> Any:
    """litellm, imported and made quiet. Takes seconds the first time."""
    before = dict(os.environ)
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download of prices
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # no .env, which it would take from wherever it is installed
    try:
        import litellm
    finally:  # commands that the agent runs are not to see them
        for name in ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_MODE"):
            os.environ.pop(name)
            os.environ.update({name: before[name]} if name in before else {})
    module: Any = litellm
    module.telemetry = False
    module.suppress_debug_info = True
    module.disable_token_counter = True  # a count of its own would pass for the provider's report
    module.disable_aiohttp_transport = True  # httpx knows proxies and certificates as the lean lane does
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], False
    return module


def _authorities() -> str | bool:
    """The file of certificates to trust; True: SSL_CERT_FILE, which litellm reads itself, or the usual ones."""
    return True if os.environ.get("SSL_CERT_FILE") else os.environ.get("REQUESTS_CA_BUNDLE") or True


def _copied(value: object) -> object:
    """`value` with objects and lists of its own; texts are shared."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in cast(dict[str, object], value).items()}
    if isinstance(value, list):
        return [_copied(item) for item in cast(list[object], value)]
    return value
