"""The whole screen, driven by keys: `DeepagentApp` on a scripted model in a real folder, as its users have it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from deepagent.agent.workspace import Workspace, find_workspace
from deepagent.cli.options import RunOptions
from deepagent.cli.tui.answers import AnswerText
from deepagent.cli.tui.app import DeepagentApp
from deepagent.context.entries import Entry
from deepagent.context.log import load
from deepagent.context.messages import Message
from deepagent.context.storage import log_name
from server import ModelServer
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widget import Widget

Json = dict[str, Any]
_PATIENCE = 20
"""Seconds after which something that should happen counts as not happening."""


def call(name: str, **arguments: object) -> Json:
    """A tool call of a script."""
    return {"name": name, "arguments": arguments}


def write(path: str, text: str) -> None:
    """Writes a file of the workspace, its folders included."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def read(path: str) -> str | None:
    """The text of a file of the workspace; None where there is none."""
    return Path(path).read_text() if Path(path).exists() else None


def git(*args: str) -> None:
    """Runs git in the workspace."""
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *args], check=True, capture_output=True)


def script(folder: Path, *steps: Mapping[str, object], **more: object) -> str:
    """The model that plays these steps, as `-m` takes it. The script lies beside `folder`."""
    number = len(list(folder.parent.glob("script-*.json")))
    path = folder.parent / f"script-{number}.json"
    path.write_text(json.dumps({"steps": steps, **more}))
    return f"scripted:{path}"


class Screen:
    """The app while it runs."""

    def __init__(self, app: DeepagentApp, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot

    # What is seen

    @property
    def text(self) -> str:
        """What stands on the screen, a line a row."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def escape(self) -> str:
        """What the footer says that Esc would do."""
        return self.app.footer.escape

    def widgets(self, kind: str) -> list[Widget]:
        """The widgets of a kind, by its name."""
        return list(self.app.screen.query(kind))

    async def until(self, so: Callable[[], object], what: str = "") -> None:
        """Waits until `so`."""
        end = time.monotonic() + _PATIENCE
        while not so():
            assert time.monotonic() < end, f"{what}\n{self.text}"
            await asyncio.sleep(0.02)

    async def sees(self, *texts: str) -> None:
        """Waits until all of these texts stand on the screen."""
        await self.until(lambda: all(text in self.text for text in texts), f"waits for {texts}")

    async def settle(self) -> None:
        """Waits until nothing runs and everything is on the screen."""
        await self.until(lambda: not self.busy, "waits for the end of the run")
        await self.until(lambda: not any(not worker.is_finished for worker in self.app.workers), "waits for workers")
        await self.until(
            lambda: not any(answer._stream for answer in self.app.screen.query(AnswerText)), "waits for text"
        )
        await self.pilot.pause()
        await self.pilot.pause()

    # What is done

    async def press(self, *keys: str) -> None:
        """Presses keys as fast as a script does."""
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.app.post_message(events.Key(name, key if len(key) == 1 else None))
        await self.pilot.pause()

    async def write(self, text: str) -> None:
        """Types a text."""
        await self.press(*("ctrl+j" if c == "\n" else c for c in text))

    async def say(self, text: str) -> None:
        """Types a text and sends it."""
        await self.write(text)
        await self.press("enter")

    async def run(self, text: str) -> None:
        """Sends a text and waits until the run has ended."""
        await self.say(text)
        await self.settle()

    async def decide(self, *keys: str) -> None:
        """Answers a question: waits until it is asked and deliberate keys count, then presses these."""
        await self.until(lambda: self.question is not None and self.question.is_mounted, "waits for a question")
        await asyncio.sleep(0.45)
        await self.press(*keys)

    async def resize(self, width: int, height: int) -> None:
        """Makes the terminal so large."""
        await self.pilot.resize_terminal(width, height)

    # What is behind it

    @property
    def busy(self) -> bool:
        """Something runs."""
        return self.app._conversation is not None and self.app.conversation.busy

    @property
    def question(self) -> Any:
        """The card that asks, if one does."""
        return self.app._presenter.question if self.app._presenter else None

    @property
    def agent(self) -> Any:
        """The agent that is open."""
        agent = self.app.conversation.agent
        assert agent is not None
        return agent

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The session's log as it lies on the disk."""
        return entries_of(self.agent.session.id)

    @property
    def messages(self) -> list[Message]:
        """The messages on the disk."""
        return [entry.message for entry in self.entries if entry.kind == "message"]


def workspace_here() -> Workspace:
    """The places of a run in the working directory."""
    return find_workspace(Path.cwd(), environ=os.environ)


def entries_of(session: str) -> tuple[Entry, ...]:
    """A session's log, read from the disk."""
    name = log_name(session)
    return load(name, workspace_here().storage().read(name)).entries


@contextmanager
def model_server(*answers: object) -> Generator[ModelServer]:
    """A model server of this machine that gives these answers."""
    server = ModelServer(*answers)  # pyright: ignore[reportArgumentType] - tests pass what it takes
    try:
        yield server
    finally:
        server.close()


@asynccontextmanager
async def on_screen(
    *steps: Mapping[str, object],
    size: tuple[int, int] = (80, 24),
    model: str | None = None,
    flags: Mapping[str, object] | None = None,
    theme: str | None = None,
    opened: bool = True,
    more: Mapping[str, object] | None = None,
    **options: Any,
) -> AsyncGenerator[Screen]:
    """The app in the working directory; the model plays `steps`, or is `model`. `more` belongs to the script."""
    name = model if model is not None else script(Path.cwd(), *steps, **(more or {}))
    given = {"model": name or None, "context.window": 32_000, "sandbox.mode": "off", **(flags or {})}
    app = DeepagentApp(RunOptions(flags=given, **options))
    if theme:
        app.theme = theme
    async with app.run_test(size=size) as pilot:
        screen = Screen(app, pilot)
        if opened:
            await screen.until(lambda: app._conversation and app.conversation.agent, "waits for the agent")
            await screen.settle()
        yield screen
