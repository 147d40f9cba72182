"""Repeats attempts that failed for a passing reason; any model can be wrapped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from random import random as _random
from typing import cast

from ...context.messages import AssistantMessage
from ...context.tokens import Returned, as_thought
from ..errors import ConnectionFailed, RetryableError
from .served import Server
from .types import Delta, Model, ModelRequest, Withdrawn


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long. All times are seconds."""

    attempts: int = 5
    """How many times a request is sent at most."""
    connects: int = 3
    """The same where the provider is not even reached: what refuses to connect mostly goes on to."""
    base: float = 1.0
    """The wait before the second attempt; it doubles with each further one."""
    longest: float = 60.0
    """The longest wait."""
    too_long: float = 120.0
    """A provider that asks for more than this is not waited for."""


class RetryingModel:
    """Repeats a model's failed attempts. Before each new attempt comes a `Withdrawn`: drop what came so far."""

    def __init__(
        self,
        model: Model,
        policy: RetryPolicy | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = _random,
    ) -> None:
        """`random` gives numbers from 0 to 1, for the jitter."""
        self.model = model
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._random = random

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self.model.name

    async def prepare(self) -> None:
        """Loads what the wrapped model's first request needs."""
        load: Callable[[], Awaitable[None]] | None = getattr(self.model, "prepare", None)
        if load is not None:
            await load()

    @property
    def lane(self) -> str:
        """The wrapped model's lane."""
        return getattr(self.model, "lane", "")

    @property
    def endpoint(self) -> str:
        """The wrapped model's endpoint."""
        return getattr(self.model, "endpoint", "")

    def returned(self, message: AssistantMessage) -> Returned:
        """What of an answer's reasoning goes back to the wrapped model."""
        returned = getattr(self.model, "returned", as_thought)
        return returned(message)

    @property
    def server(self) -> Server | None:
        """Who can be asked for the wrapped model's window."""
        return getattr(self.model, "server", None)

    def serve(self, window: int) -> None:
        """Tells the wrapped model's server to serve a window of so many tokens, if it takes that."""
        if (serve := getattr(self.model, "serve", None)) is not None:
            serve(window)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Answers `request`, with as many attempts as the policy allows."""
        attempt = 1
        while True:
            deltas = cast(AsyncGenerator[Delta, None], self.model.stream(request))
            try:
                async with aclosing(deltas):
                    async for delta in deltas:
                        yield delta
                return
            except RetryableError as error:
                wait = self._wait(error, attempt)
                if wait is None:
                    raise
                reason = str(error)
            attempt += 1
            yield Withdrawn(reason=reason, attempt=attempt, wait=wait)
            await self._sleep(wait)

    async def aclose(self) -> None:
        """Gives back the wrapped model's connections."""
        await self.model.aclose()

    def _wait(self, error: RetryableError, attempt: int) -> float | None:
        """Seconds to wait after the failed `attempt`, or None to give up."""
        policy = self._policy
        most = min(policy.attempts, policy.connects) if isinstance(error, ConnectionFailed) else policy.attempts
        if attempt >= most or (error.retry_after or 0) > policy.too_long:
            return None
        backoff = policy.base * 2 ** (attempt - 1) * (0.75 + self._random() / 2)
        return min(max(error.retry_after or 0, backoff), policy.longest)
