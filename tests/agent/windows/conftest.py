"""Fixtures of the tests on windows: model servers over real HTTP, and agents that use them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.agent import Agent
from deepagent.agent.build import Extras, build
from deepagent.agent.config import settings_from
from deepagent.agent.events import Event, Gauge, Noticed, RunEnded
from deepagent.agent.sessions import Choice
from deepagent.agent.workspace import find_workspace
from server import ModelServer


@dataclass(slots=True)
class Talk:
    """An agent over HTTP, and all that it told."""

    agent: Agent
    events: list[Event] = field(default_factory=list[Event])
    seen: Callable[[Event], None] = lambda _: None
    """Looks at each event as it comes."""

    async def say(self, prompt: str) -> RunEnded:
        """Runs a prompt to its end."""
        async for event in self.agent.astream(prompt):
            self.events.append(event)
            self.seen(event)
        ended = self.events[-1]
        assert isinstance(ended, RunEnded)
        return ended

    @property
    def gauge(self) -> Gauge:
        return self.agent.gauge()

    @property
    def window(self) -> tuple[int, str]:
        """The window's tokens and where they come from."""
        return self.gauge.window, self.gauge.window_source

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Noticed)]

    @property
    def on_windows(self) -> list[str]:
        """What was told of the window."""
        return [text for text in self.notices if text.startswith("window: ")]


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Callable[..., Talk]]:
    """Makes agents: `talk(server)`, `talk(server, name="…", context={…}, environ={…})`; they close with the test."""
    made: list[Talk] = []

    def make(
        server: ModelServer,
        name: str = "openai/m",
        *,
        context: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        session: str | None = None,
        **settings: Any,
    ) -> Talk:
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        tree = {"model": name, "permissions": {"mode": "yolo"}, "context": context or {}, **settings}
        given = {**os.environ, "OPENAI_BASE_URL": server.url, **(environ or {})}
        workspace = find_workspace(folder, environ=given)
        agent = build(settings_from(tree), workspace, environ=given, choice=Choice(session=session), extras=Extras())
        made.append(Talk(agent))
        return made[-1]

    yield make
    for one in made:
        await one.agent.aclose()
