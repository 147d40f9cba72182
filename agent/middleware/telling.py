"""Telling: the model knows of changed memory, skills and modes before it is asked again."""

from __future__ import annotations

from ..head import Head
from .base import Middleware, RunState


class Telling(Middleware):
    """Tells before the ladder looks at what is to be sent."""

    def __init__(self, head: Head) -> None:
        self._head = head

    async def before_model(self, run: RunState) -> None:
        await self._head.renew(run.emit)


class Settling(Middleware):
    """Folds what was told into the prompt where the ladder has just changed the prefix."""

    def __init__(self, head: Head) -> None:
        self._head = head

    async def before_model(self, run: RunState) -> None:
        await self._head.settle(run.emit)
