"""The edge for callers without an event loop: what is async inside runs on one loop of its own, which lasts.

One loop for all calls, because connections, locks and commands that a call left running belong to the loop they began
in. What runs on it is the business of `agent.agent`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Edge:
    """Runs coroutines one at a time; its loop is made at the first one and ends with `close`."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work` returns. Raises `RuntimeError` where an event loop runs already."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._runner = self._runner or asyncio.Runner()
            return self._runner.run(work())
        raise RuntimeError("an event loop runs here: use ainvoke, astream and aclose")

    def iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """The items as they come; whoever stops taking them ends what makes them."""
        try:
            while True:
                try:
                    yield self.run(lambda: _next(items))
                except StopAsyncIteration:
                    return
        finally:
            self.run(items.aclose)

    def close(self) -> None:
        """Ends the loop and whatever is left on it."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()


async def _next(items: AsyncGenerator[T, None]) -> T:
    return await anext(items)
