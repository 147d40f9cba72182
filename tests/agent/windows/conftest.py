"""Fixtures of the tests on windows: model servers over real HTTP, and agents that use them."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from deepagent.agent.agent import Agent
from deepagent.agent.build import Extras, build
from deepagent.agent.config import settings_from
from deepagent.agent.events import Event, Gauge, Noticed, RunEnded
from deepagent.agent.sessions import Choice
from deepagent.agent.workspace import find_workspace

if TYPE_CHECKING:
    from ...server import ModelServer


def _load(path: Path) -> ModuleType:
    """A helper module of the tests, by its path: test folders are no packages and not on the path."""
    name = f"deepagent_tests_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def model_server() -> Iterator[Callable[..., ModelServer]]:
    """Makes servers: `model_server({"text": "hi"}, …, routes={…}, count=…)`; they stop with the test."""
    servers: list[ModelServer] = []

    def make(*answers: object, **options: object) -> ModelServer:
        servers.append(_load(Path(__file__).parents[2] / "server.py").ModelServer(*answers, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


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
