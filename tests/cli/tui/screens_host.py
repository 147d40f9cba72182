"""What the tests of screens share: an app around one screen, its text line by line, and words that mean harm."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

SIZES = ((80, 24), (160, 50))
HOSTILE = (
    "[/b] [=x,y] [data: /m?id=b] [ \x1b]52;c;aGk=\x07 \x1b]8;;http://x\x07 \x1b[?1049l \x1bP\x1b 中文 😀 \u202e\u2066"
)
"""Markup, half markup, control sequences, wide characters, directions."""
LITERAL = "[/b] [=x,y] [data: /m?id=b] ["
"""The beginning of it, as it has to be seen."""


class Host(App[None], inherit_bindings=False):
    """An app with nothing of its own. What a screen gives back is in `results`."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, widget: Widget | None = None) -> None:
        super().__init__()
        self._widget = widget
        self.results: list[object] = []

    def compose(self) -> Iterator[Widget]:
        if self._widget is not None:
            yield self._widget


def lines(app: App[Any]) -> list[str]:
    """The screen's lines, without the blanks at their ends."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def text(app: App[Any]) -> str:
    """The screen's text."""
    return "\n".join(lines(app))


def assert_harmless(app: App[Any]) -> None:
    """No control code, no turned direction is on the screen."""
    shown = text(app)
    assert not [c for c in shown if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0]
    assert "\u202e" not in shown
    assert "\u2066" not in shown


async def settle(pilot: Pilot[Any]) -> None:
    """Returns when the workers have ended and what they did is on the screen."""
    await pilot.pause()
    await cast(Any, pilot.app.workers).wait_for_complete()
    await pilot.pause()


@asynccontextmanager
async def showing(screen: Screen[Any], size: tuple[int, int] = (80, 24)) -> AsyncGenerator[tuple[Host, Pilot[None]]]:
    """A screen, ready."""
    app = Host()
    async with app.run_test(size=size) as pilot:
        app.push_screen(screen, app.results.append)
        await settle(pilot)
        yield app, pilot
