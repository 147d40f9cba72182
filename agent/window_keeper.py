"""Keeps the window that a session works with true: asks the server once it is needed, and learns from what happens.

A change reaches the ladder as a new budget, the watcher as one line of news, and later sessions through a small file.
How servers are asked is the business of `agent.model.served`, which figure wins that of `agent.windows`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..context.budget import LEAST_WINDOW, Window, budget_for
from ..context.ladder import Ladder
from .known_windows import KnownWindow, KnownWindows
from .model.choose import is_local, server_of
from .model.served import Served, ask_server
from .model.types import Model
from .windows import served_window

_SOURCES = {
    "user": "you set",
    "server": "the server stated",
    "overflow": "an earlier error named",
    "table": "the table says",
    "assumed": "were assumed",
}


@dataclass(slots=True, kw_only=True)
class Finder:
    """Finds out which window one model has: from earlier sessions, and from its server."""

    model: Model
    known: KnownWindows
    window: Window
    """The best that is known so far."""
    environ: Mapping[str, str]
    served: Served | None = None
    """What the server said."""

    def __post_init__(self) -> None:
        self._serve()

    async def find(self) -> bool:
        """Asks the server, where there is one to ask; whether the window is another now. Raises nothing."""
        server = server_of(self.model)
        if server is None or self.served is not None or self.window.source == "user":
            return False
        self.served = await ask_server(server, environ=self.environ)
        return self._take()

    async def ask_again(self) -> bool:
        """Asks a second time, after the first answer, a server that has only now loaded the model."""
        if self.served is None or not self.served.waits or self.window.source == "user":
            return False
        served, self.served = self.served, replace(self.served, waits=False)
        if (server := server_of(self.model)) is None or server.ollama:  # it serves what it was told
            return False
        self.served = replace(await ask_server(server, environ=self.environ) or served, waits=False)
        return self._take()

    def _take(self) -> bool:
        server = server_of(self.model)
        if self.served is None or server is None:
            return False
        found = served_window(self.served, chosen_by_request=server.ollama, assumed=self.window.tokens)
        if found is None:
            return False
        before = self.window
        self.window = replace(before, tokens=max(found.tokens, LEAST_WINDOW), source="server", input_only=False)
        self._serve()
        self.remember("server")
        return self.window != before

    def _serve(self) -> None:
        """Ollama is told to serve the window, the same with each request."""
        server, serve = server_of(self.model), getattr(self.model, "serve", None)
        if server is not None and server.ollama and serve is not None:
            serve(self.window.tokens)

    def remember(self, source: str) -> None:
        """Keeps the window for later sessions."""
        if source in {"server", "overflow"}:
            found = KnownWindow(tokens=self.window.tokens, source="server" if source == "server" else "overflow")
            self.known.put(self.model, found)


class WindowKeeper:
    """The window of a session's working model, and that of the model for its summaries."""

    def __init__(
        self,
        ladder: Ladder,
        model: Model,
        *,
        summary_model: Model,
        summary_window: Window,
        known: KnownWindows,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._ladder = ladder
        self._news: list[str] = []
        self._moved = False
        self._raised = False
        """That a longer request was taken than the window has was said."""
        self._work = Finder(model=model, known=known, window=ladder.budget.window, environ=environ)
        self._summary = (
            None
            if summary_model is model
            else Finder(model=summary_model, known=known, window=summary_window, environ=environ)
        )

    @property
    def summary_window(self) -> int:
        """Tokens of the window that summaries are written in."""
        return self._summary.window.tokens if self._summary else self._ladder.budget.window.tokens

    @property
    def own_server(self) -> bool:
        """The model is served by a server of the user's own: one that may cut what is too long without a word."""
        return server_of(self._work.model) is not None

    @property
    def may_ask_beside(self) -> bool:
        """Whether the server answers a second request beside the first without losing what it has read of that."""
        server, served = server_of(self._work.model), self._work.served
        if served is not None and served.slots is not None:
            return served.slots > 1
        return not is_local(self._work.model) and not (server is not None and server.ollama)

    async def find(self) -> None:
        """Before the first request: asks the servers of both models, one after the other."""
        if await self._work.find():
            self._changed(f"the server serves {self._work.window.tokens:,} tokens")
        if self._summary is not None:
            await self._summary.find()

    async def answered(self, taken: int) -> None:
        """After an answer to a request of `taken` tokens, as the provider counts (0: unknown)."""
        if await self._work.ask_again():
            self._changed(f"the server serves {self._work.window.tokens:,} tokens")
        window = self._ladder.budget.window
        if taken and not window.input_only:
            taken = max(taken, self._ladder.used.tokens)  # the answer had its place in the window too
        if taken > window.tokens and window.source != "user":
            self._work.window = replace(window, tokens=taken)
            self._work.remember(window.source)
            self._changed("" if self._raised else f"a request of {taken:,} tokens was taken")
            self._raised = True

    def refused(self, named: int | None) -> None:
        """After "too long", by an error that named the window or did not; a size that was refused is no window."""
        window = self._ladder.budget.window
        if named is None or (tokens := max(named, LEAST_WINDOW)) >= window.tokens:
            return
        self._work.window = replace(window, tokens=tokens, source="overflow", input_only=False)
        self._work.remember("overflow")
        self._changed(f"the provider names {named:,}")

    def cut(self, took: int) -> None:
        """After the server took only `took` tokens of a longer request."""
        self._work.window = replace(self._ladder.budget.window, tokens=took, source="overflow", input_only=False)
        self._work.remember("overflow")
        self._changed(f"the server took {took:,} tokens of a longer request")

    def _changed(self, why: str) -> None:
        before, window = self._ladder.budget.window, self._work.window
        self._ladder.budget = budget_for(window, self._ladder.settings)
        if why and window.tokens != before.tokens:
            how = _SOURCES[before.source]
            self._news.append(f"window: {window.tokens:,} tokens from now on ({why}; {before.tokens:,} {how})")
        self._moved = True

    def news(self) -> tuple[str, ...] | None:
        """What watchers have not been told yet; empty where only the gauge is another, None where nothing is."""
        news, moved = tuple(self._news), self._moved
        self._news, self._moved = [], False
        return news if moved else None
