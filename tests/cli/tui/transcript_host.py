"""What tests of the transcript share: a host app, hostile texts, events as the agent makes them, and what is seen."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from deepagent.agent.events import Answered, Gauge, GaugeChanged, RunStarted, ToolFinished
from deepagent.cli.tui.presenter import Presenter
from deepagent.cli.tui.transcript import Transcript
from deepagent.context.entries import Compacted
from deepagent.context.messages import (
    AssistantMessage,
    Part,
    Pointer,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from pydantic import JsonValue
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

MARKUP = "[/b] [=x,y] [data: /m?id=b] ["
DANGER = "\x1b\x07\x9b\u202e\u200b\U000e0041\ud800"
"""What must never reach the terminal."""
CONTROLS = (
    "\x1b]52;c;aGk=\x07 \x1b]8;;http://e.x\x1b\\link \x1b[?1049l \x1bP1q\x1b\\ \x1b \x9b31m "
    "\u202e \u200b \U000e0041 \ud800"
)
WIDE = "日本語 👩‍👩‍👧 e\u0301 ｆｕｌｌ"
HOSTILE = f"{MARKUP} {CONTROLS} {WIDE}"


class Host(App[None]):
    """A transcript and nothing else."""

    ENABLE_COMMAND_PALETTE = False
    kept = "in this session"
    """Where rules are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.gauges: list[Gauge] = []
        self.heard: list[object] = []

    def compose(self) -> ComposeResult:
        yield Transcript(id="transcript")

    def on_mount(self) -> None:
        self.presenter = Presenter(self.transcript, on_gauge=self.gauges.append, kept=lambda: self.kept)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    def on_approval_card_decided(self, message: object) -> None:
        self.heard.append(message)

    def on_step_line_undo_wanted(self, message: object) -> None:
        self.heard.append(message)


@asynccontextmanager
async def hosted(size: tuple[int, int] = (80, 24)) -> AsyncGenerator[tuple[Host, Pilot[None]]]:
    """The host while it runs."""
    app = Host()
    async with app.run_test(size=size) as pilot:
        yield app, pilot


def screen(app: App[None]) -> list[str]:
    """The rows of the screen, without the column of the scrollbar."""
    return [strip.text[:-1].rstrip() for strip in app.screen._compositor.render_strips()]


def rows(app: App[None]) -> list[str]:
    """The rows of the screen that say something."""
    return [row for row in screen(app) if row]


async def until(pilot: Pilot[None], condition: Callable[[], object], seconds: float = 10) -> None:
    """Waits for something that comes soon."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, rows(pilot.app)
        await asyncio.sleep(0.01)
    await pilot.pause()


async def sees(pilot: Pilot[None], *texts: str) -> str:
    """Waits until the screen holds all texts, and returns it."""
    await until(pilot, lambda: all(text in "\n".join(screen(pilot.app)) for text in texts))
    return "\n".join(rows(pilot.app))


def neutral(app: App[None]) -> bool:
    """Whether the screen holds nothing that a terminal acts on or cannot encode."""
    text = "".join(screen(app))
    text.encode()
    return not any(unicodedata.category(c) == "Cc" or c in DANGER for c in text)


def widgets(app: App[None], kind: str) -> list[Widget]:
    """The mounted widgets of a kind."""
    return list(app.query(kind))


# Events


def user(text: str, id: str = "u") -> UserMessage:
    return UserMessage(id=id, time="", content=(Text(text=text),))


def started(text: str, id: str = "u") -> RunStarted:
    return RunStarted(session="s", message=user(text, id))


def call(name: str, id: str = "c", **arguments: JsonValue) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def answered(text: str = "", *calls: ToolCall, id: str = "a", thinking: str = "") -> Answered:
    thoughts: list[Part] = [Reasoning(text=thinking)] if thinking else []
    content = (*thoughts, *([Text(text=text)] if text else []), *calls)
    message = AssistantMessage(id=id, time="", content=content, model="m", stop="end")
    return Answered(message=message, usage=None, cost=None)


def finished(
    of: ToolCall,
    text: str = "ok",
    *,
    summary: str = "",
    id: str = "t",
    error: bool = False,
    seconds: float = 0.1,
    pointer: bool = False,
    **log: JsonValue,
) -> ToolFinished:
    whole = Pointer(path="p", sha256="", bytes=1, lines=1, tokens=7_212, shown=text)
    message = ToolMessage(
        id=id,
        time="",
        call_id=of.id,
        tool=of.name,
        content=(whole if pointer else Text(text=text),),
        is_error=error,
        log=log,
    )
    return ToolFinished(call=of, message=message, summary=summary, seconds=seconds)


def gauge(used: int = 1_000, *, cost: float | None = 1.0) -> GaugeChanged:
    return GaugeChanged(
        gauge=Gauge(
            used=used,
            source="reported",
            window=200_000,
            window_source="table",
            budget=174_000,
            trigger=170_000,
            cost=cost,
        )
    )


def compacted(
    first_kept: str | None, *requests: str, id: str = "k", messages: int = 2, summary: str = "S"
) -> Compacted:
    return Compacted(
        id=id,
        time="",
        parent=None,
        first_kept=first_kept,
        summary=summary,
        by="model",
        shown="",
        requests=requests,
        archive="a.md",
        archive_start=0,
        archive_end=1,
        tokens_before=171_000,
        tokens_after=23_000,
        messages=messages,
        files_read=("read.py",),
        files_changed=("changed.py",),
        reason="trigger",
    )
