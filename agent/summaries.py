"""Summaries through a model: one request, its usage logged like any other call's."""

from __future__ import annotations

from collections.abc import Callable

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
        window: int,
        price: Callable[[Completed], float | None],
        masker: Masker,
        run: Callable[[], RunState | None],
    ) -> None:
        self._model = model
        self._session = session
        self._window = window
        self._price = price
        self._masker = masker
        self._run = run

    def summarizer(self) -> Summarizer:
        """What the compactor asks."""
        return Summarizer(ask=self._ask, window=self._window)

    async def _ask(self, prompt: str, limit: int) -> str:
        message = UserMessage(id=new_id(), time=timestamp(self._session.clock), content=(Text(text=prompt),))
        written = sum(isinstance(e, Compacted) and e.by == "model" for e in self._session.entries)
        request = ModelRequest(
            system="",
            messages=(message,),
            max_output=max(limit, _LEAST_OUTPUT),
            purpose="summary",
            position=written,
            session=self._session.id,
        )
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
