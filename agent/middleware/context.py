"""The context layer as a middleware: it makes room before each request, and after an overflow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from ...context.ladder import Ladder
from ..errors import ContextOverflowError
from ..model.types import Delta, ModelRequest, Withdrawn
from .base import Middleware, ModelHandler, RunState

RESCUES = 3
"""How often one request may be made smaller and sent again."""


class ContextCare(Middleware):
    """Keeps requests within the window."""

    def __init__(self, ladder: Ladder) -> None:
        self._ladder = ladder

    async def before_model(self, run: RunState) -> None:
        ladder = self._ladder
        if not ladder.counter.exact and ladder.used.tokens > ladder.budget.trim // 2:
            await asyncio.to_thread(ladder.counter.prepare)
        await ladder.make_room()

    async def wrap_model(self, run: RunState, request: ModelRequest, call: ModelHandler) -> AsyncIterator[Delta]:
        attempt = 0
        while True:
            try:
                async for delta in call(request):
                    yield delta
                return
            except ContextOverflowError as error:
                attempt += 1
                if error.window is not None and error.window < self._ladder.budget.window.tokens:
                    self._ladder.lower_window(error.window)
                if attempt > RESCUES:
                    raise
                reason = "the request was longer than the window; it is made shorter"
                yield Withdrawn(reason=reason, attempt=attempt + 1, wait=0)
                if not await self._ladder.rescue(attempt):
                    raise
                request = replace(request, messages=run.session.view.messages)
