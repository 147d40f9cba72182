"""The context layer as a middleware: it makes room before each request, after an overflow, and after a silent cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from ...context.budget import LEAST_WINDOW
from ...context.ladder import Ladder
from ...context.messages import AssistantMessage, Reasoning
from ..errors import ContextOverflowError
from ..events import Gauge, GaugeChanged, Noticed
from ..model.types import Completed, Delta, ModelRequest, Withdrawn
from ..window_keeper import WindowKeeper
from .base import Middleware, ModelHandler, RunState

RESCUES = 3
"""How often one request may be made smaller and sent again."""
_CUT = 0.6
"""Reported share of the tokens that we count below which the server has not read the whole request."""
_STALLED = 0.25
"""Reported share of what came since the last report below which the server has not read all of that."""
_ADDED, _ADDED_SHARE = 500, 0.05
"""Tokens, and share of the request, that must have come for that."""
_WORDLESS = 0.05
"""Share of a request that an answer without a word has at most when the window was full."""
_NEAR = 0.8
"""Share of a window that the server stated from which such an answer means that it was full."""


class ContextCare(Middleware):
    """Keeps requests within the window."""

    def __init__(self, ladder: Ladder, windows: WindowKeeper, gauge: Callable[[], Gauge]) -> None:
        """`gauge` counts what every request begins with, and says how full the window is."""
        self._ladder = ladder
        self._windows = windows
        self._gauge = gauge
        self._most = 0
        """The longest request that was taken whole, in tokens as the server counts."""
        self._cuts: set[int] = set()
        """The windows that were answered as a cut: once each."""

    async def before_model(self, run: RunState) -> None:
        ladder = self._ladder
        self._tell(run)
        if not ladder.counter.exact and ladder.used.tokens > ladder.budget.trim // 2:
            await self._count_exactly()
        await ladder.make_room()

    async def after_model(self, run: RunState, answer: AssistantMessage) -> None:
        report = self._ladder.meter.last_report
        taken = report.usage.input if report is not None and report.message == answer.id else 0
        self._most = max(self._most, taken)
        await self._windows.answered(taken)
        self._tell(run)

    async def wrap_model(self, run: RunState, request: ModelRequest, call: ModelHandler) -> AsyncIterator[Delta]:
        attempt = 0
        while True:
            completed: Completed | None = None
            attempt += 1
            try:
                async for delta in call(request):
                    if isinstance(delta, Completed):
                        completed = delta
                    else:
                        yield delta
            except ContextOverflowError as error:
                self._windows.refused(error.window)
                self._tell(run)
                if attempt > RESCUES:
                    raise
                reason = "the request was longer than the window; it is made shorter"
                yield Withdrawn(reason=reason, attempt=attempt + 1, wait=0)
                if not await self._ladder.rescue(attempt):
                    raise
            else:
                if completed is None:
                    return
                took = await self._cut(completed) if attempt <= RESCUES else None
                if took is None or not await self._answer_cut(took, run):
                    yield completed
                    return
                reason = f"the server took only {took:,} tokens of the request; it is made shorter"
                yield Withdrawn(reason=reason, attempt=attempt + 1, wait=0)
            request = replace(request, messages=run.session.view.messages)

    async def _cut(self, completed: Completed) -> int | None:
        """What the server took of a request that it cut without a word, in tokens; None where it took all."""
        if not self._windows.own_server:
            return None
        took = await self._partly_read(completed) or self._left_no_room(completed)
        window = self._ladder.budget.window
        if took is None or (took := min(took, window.tokens)) < LEAST_WINDOW or took in self._cuts:
            return None
        return took

    async def _partly_read(self, completed: Completed) -> int | None:
        """The size that was read, where that is far from what was sent."""
        read = completed.usage.input if completed.usage else 0
        if read <= 0 or not self._odd(read):
            return None
        await self._count_exactly()
        if not self._odd(read) or read < self._most // 2:  # some servers leave out what they remember
            return None
        return max(read, self._most)

    def _odd(self, read: int) -> bool:
        """Whether a report of `read` tokens is far below what was sent, or hardly above the last one."""
        if read < _CUT * self._sent:
            return True
        used, last = self._ladder.used, self._ladder.meter.last_report
        if used.source != "reported" or last is None:
            return False
        before = last.usage.input
        added = used.tokens - before
        return added >= max(_ADDED, _ADDED_SHARE * before) and read - before < _STALLED * added

    def _left_no_room(self, completed: Completed) -> int | None:
        """The size that fills the window, where an answer ended at its limit before the first word."""
        if completed.stop != "length" or not all(isinstance(part, Reasoning) for part in completed.content):
            return None
        window, usage = self._ladder.budget.window, completed.usage
        written = usage.output if usage else 0
        size = (usage.input if usage and usage.input > 0 else self._sent) + written
        stated = window.source == "server" and size < _NEAR * window.tokens
        return None if stated or written > _WORDLESS * size else size

    async def _answer_cut(self, took: int, run: RunState) -> bool:
        """Makes the request fit into what the server takes; False where it does not get shorter."""
        ladder, before = self._ladder, self._counted
        self._cuts.add(took)
        self._windows.cut(took)
        self._tell(run)
        await ladder.make_room()
        for attempt in (1, 2):
            if ladder.used.tokens > ladder.budget.tokens:
                await ladder.rescue(attempt)
        return self._counted < before

    @property
    def _counted(self) -> int:
        return self._ladder.meter.count(self._ladder.session.view.messages)

    @property
    def _sent(self) -> int:
        """Tokens of the request, as far as they can be told from our count."""
        return self._ladder.meter.expected(self._counted)

    async def _count_exactly(self) -> None:
        if not self._ladder.counter.exact:
            await asyncio.to_thread(self._ladder.counter.prepare)
            self._gauge()  # what every request begins with was only estimated until now

    def _tell(self, run: RunState) -> None:
        """Tells what is new of the window."""
        news = self._windows.news()
        for line in news or ():
            run.emit(Noticed(text=line))
        if news is not None:
            run.emit(GaugeChanged(gauge=self._gauge()))
