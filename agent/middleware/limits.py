"""Limits of a run: model calls, tokens, money. The time limit is the loop's, since it cuts across everything."""

from __future__ import annotations

from ..config import LimitSettings
from .base import Middleware, RunState, RunStopped


class Limits(Middleware):
    """Ends the run before the model call that would pass a limit."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits

    async def before_model(self, run: RunState) -> None:
        limits = self._limits
        tokens = run.usage.input + run.usage.output
        if limits.max_turns is not None and run.turns >= limits.max_turns:
            raise RunStopped("max_turns", f"the limit of {limits.max_turns} model calls is reached")
        if limits.max_tokens is not None and tokens >= limits.max_tokens:
            raise RunStopped("max_tokens", f"{tokens:,} tokens were used; the limit is {limits.max_tokens:,}")
        if limits.max_cost is not None and (run.cost is None or run.cost >= limits.max_cost):
            spent = "an unknown sum" if run.cost is None else f"${run.cost:.4f}"
            raise RunStopped("max_cost", f"{spent} was spent; the limit is ${limits.max_cost:g}")
