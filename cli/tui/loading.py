"""How heavy things are loaded behind the screen without making keys late. What is loaded is the business of `app`.

A thread of its own is not enough. A garbage collection stops all threads, for a tenth of a second where much has been
loaded; a key passes through three threads, each of which waits for its turn; and the tokenizer's tables are made in one
go that nothing can interrupt, so they wait for a pause in typing.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

_PAUSE = 1.0
"""Seconds without a key that count as a pause."""
_TURN = 0.0005
"""Seconds after which a thread gives way to another; Python's own are ten times as many."""

_MUCH = 20_000
"""New objects from which on something large was loaded."""


@contextmanager
def background() -> Generator[None]:
    """While things are loaded in another thread: no garbage collections, and short turns.

    After much was loaded, all that is there is taken for what stays, and the collector does not look at it again.
    """
    turn = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MUCH:
            gc.freeze()
        gc.enable()
        sys.setswitchinterval(turn)


class Typing:
    """Whether somebody types."""

    def __init__(self) -> None:
        self._typed = asyncio.Event()

    def key(self) -> None:
        """Something was typed now."""
        self._typed.set()

    async def pause(self) -> None:
        """Returns once nothing has been typed for a moment; at once if nothing ever was."""
        while self._typed.is_set():
            self._typed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await self._typed.wait()
