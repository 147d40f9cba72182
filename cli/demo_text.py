"""The demo without a screen: each step is a line, with the gauge below it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

from ..agent.agent import Agent
from ..agent.build import Extras, build
from ..agent.config import PermissionSettings, Settings
from ..agent.events import (
    Answered,
    CompactionDone,
    CompactionStarted,
    Event,
    Gauge,
    GaugeChanged,
    Noticed,
    Offloading,
    RunEnded,
    ToolFinished,
    Trimmed,
)
from ..agent.git import changes
from ..agent.sessions import Choice
from ..agent.workspace import find_workspace
from ..context.budget import ContextSettings
from ..context.storage import log_name
from .demo_scene import KEEP_RESULTS, PROMPT, WINDOW
from .gauge import gauge_line, tokens, what_left
from .options import DEMO_SCRIPT
from .terminal import plain

_WIDTH = 76
"""Columns; the gauge stands at their end."""
_SUBJECT = 54
"""Columns for a tool's name and what it works on."""


def run_in_text(shop: Path, user: Path) -> int:
    """Tells the demo line by line; the exit code says whether the script came to its good end."""
    return asyncio.run(_play(shop, user))


async def _play(shop: Path, user: Path) -> int:
    environ = {**os.environ, "DEEPAGENT_HOME": str(user)}
    settings = Settings(
        model="demo",
        context=ContextSettings(window=WINDOW, keep_results=KEEP_RESULTS),
        permissions=PermissionSettings(mode="yolo"),
    )
    workspace = find_workspace(shop, environ=environ)
    agent = build(settings, workspace, environ=environ, choice=Choice(), extras=Extras(demo=DEMO_SCRIPT))
    print(f"deepagent demo: {PROMPT}\nThe repository: {shop}\nThe model is scripted; everything else is real.\n")
    narrator = _Narrator()
    async with aclosing(agent.astream(PROMPT)) as events:
        async for event in events:
            for line in narrator.lines(event):
                print(line, flush=True)
    await agent.aclose()
    _close(agent, shop)
    return 0 if narrator.succeeded else 1


def _close(agent: Agent, shop: Path) -> None:
    print(f"\nWhat was changed:\n{plain(changes(shop, untracked=False))}\n")
    print(f"log      {agent.session.storage.path(log_name(agent.session.id))}")
    print(f"archive  {agent.archive}")


class _Narrator:
    """Tells the events of the demo, a line each."""

    def __init__(self) -> None:
        self._acted = False
        self.succeeded = False

    def lines(self, event: Event) -> Iterator[str]:
        """What to print of an event."""
        match event:
            case GaugeChanged(gauge=gauge):
                yield from self._filling(gauge)
            case Answered(message=message) if message.text:
                yield f"\n● {plain(message.text)}"
            case ToolFinished(call=call, message=message, summary=summary):
                self._acted = True
                yield _tool(call.name, call.arguments.get("command") or call.arguments.get("path"), summary)
            case Offloading(path=path, tokens=whole, shown_tokens=seen):
                yield f"  ◐ offloaded: {tokens(whole)} tokens lie in {path}; the model sees {tokens(seen)}"
            case Trimmed(tokens_saved=saved):
                yield f"── freed {tokens(saved)}: {what_left(event.stubs, len(event.results))}, without a model call ──"
            case CompactionStarted(messages=count):
                yield f"\n── compacting: {count} messages leave the view …"
            case CompactionDone(entry=entry):
                before, after = tokens(entry.tokens_before), tokens(entry.tokens_after)
                yield f"── {before} → {after} tokens · requests kept word for word: {len(entry.requests)} ──"
                yield f"── archived in {entry.archive} ──"
            case Noticed(text=text):
                yield f"  ! {plain(text)}"
            case RunEnded(outcome=outcome):
                self.succeeded = outcome == "success"
                if event.error:
                    yield f"\n✗ {plain(str(event.error['message']))}"
            case _:
                pass

    def _filling(self, gauge: Gauge) -> Iterator[str]:
        """The gauge, once after the tools of a step."""
        if self._acted:
            yield f"  {gauge_line(gauge):>{_WIDTH}}"
        self._acted = False


def _tool(name: str, subject: object, summary: str) -> str:
    what = plain(f"{name} {subject or ''}".strip())
    if len(what) > _SUBJECT:
        what = f"{what[: _SUBJECT - 1]}…"
    return f"  {what:<{_SUBJECT}}  {plain(summary)}"
