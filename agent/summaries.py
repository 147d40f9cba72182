"""Summaries through a model, in either form; their usage is logged like any other call's.

The form that extends the conversation is the next request of the working model with one instruction behind it, all
else unchanged, tools included: so the provider's cache holds, and calls in the history stay legal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..context.entries import Compacted, UsageReported
from ..context.messages import Text, UserMessage, new_id, timestamp
from ..context.session import Session
from ..context.summary import Summarizer
from .middleware.base import NOTHING, RunState
from .model.types import Completed, Model, ModelRequest
from .secrets import Masker

_LEAST_OUTPUT = 4_000
"""Tokens that an answer may always have: models that think spend some before the first word."""


class Summaries:
    """Asks a model for summaries on behalf of one session."""

    def __init__(
        self,
        model: Model,
        session: Session,
        *,
        window: Callable[[], int],
        prompt: str = "",
        request: Callable[[], ModelRequest] | None = None,
        price: Callable[[Completed], float | None],
        masker: Masker,
        run: Callable[[], RunState | None],
    ) -> None:
        self._model = model
        self._session = session
        self._window = window
        self._prompt = prompt
        self._request = request
        self._price = price
        self._masker = masker
        self._run = run

    def summarizer(self) -> Summarizer:
        """What the compactor asks."""
        extend = None if self._request is None else self._extend
        return Summarizer(ask=self._ask, window=self._window(), extend=extend, prompt=self._prompt)

    async def _ask(self, prompt: str, limit: int) -> str:
        request = ModelRequest(
            system="",
            messages=(self._message(prompt),),
            max_output=max(limit, _LEAST_OUTPUT),
            purpose="summary",
            position=self._written,
            session=self._session.id,
        )
        return await self._answer(request)

    async def _extend(self, prompt: str, _: int) -> str:
        assert self._request is not None
        request = self._request()
        messages = (*request.messages, self._message(prompt))
        return await self._answer(replace(request, messages=messages, purpose="summary", position=self._written))

    def _message(self, prompt: str) -> UserMessage:
        return UserMessage(id=new_id(), time=timestamp(self._session.clock), content=(Text(text=prompt),))

    @property
    def _written(self) -> int:
        return sum(isinstance(entry, Compacted) and entry.by == "model" for entry in self._session.entries)

    async def _answer(self, request: ModelRequest) -> str:
        """The answer's text; empty where the model called a tool instead."""
        completed: Completed | None = None
        async for delta in self._model.stream(request):
            if isinstance(delta, Completed):
                completed = delta
        if completed is None:
            return ""
        self._log(completed)
        return self._masker.mask("".join(part.text for part in completed.content if isinstance(part, Text)))

    def _log(self, completed: Completed) -> None:
        usage, cost = completed.usage or NOTHING, self._price(completed)
        entry = UsageReported(
            **self._session.header(),
            model=self._model.name,
            usage=usage,
            cost=cost,
            purpose="summary",
            message=None,
            counted=0,
        )
        self._session.append(entry)
        run = self._run()
        if run is not None:
            run.add_usage(usage, cost)
