"""Makes the pictures of the README from the demo: the real screen, driven by keys, written as SVG.

`.venv/bin/python scripts/pictures.py [FOLDER] [--size 100x30] [--theme textual-dark]`. What differs from run to run –
ids of sessions, times – is replaced, so that a picture changes only when the screen does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from deepagent.agent.git import make_repository
from deepagent.cli.demo import _REPOSITORY, PROMPT, WINDOW
from deepagent.cli.options import RunOptions
from deepagent.cli.tui.app import DeepagentApp
from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual.pilot import Pilot
from textual.strip import Strip

CELL, LINE, SIZE = 8.4, 18, 14
"""Pixels: width and height of a cell, and the font's size."""
_FONTS = "'DejaVu Sans Mono', Menlo, Consolas, ui-monospace, monospace"
_CHANGING = (
    (re.compile(r"20\d{6}-\d{6}(-[0-9a-z]{0,4})?"), "20260401-093000-demo"),
    (re.compile(r"\b\d\.\d s\b"), "0.1 s"),
    (re.compile(r"\d+ min ago"), "just now"),
)
"""What differs from run to run, and what stands in its place: as long as the original, or shorter by as much."""
_PATIENCE = 60
"""Seconds."""


def unchanging(text: str) -> str:
    """`text` with what differs from run to run replaced."""
    for pattern, instead in _CHANGING:
        text = pattern.sub(lambda found, instead=instead: instead[: len(found[0])], text)
    return text


def svg(app: DeepagentApp, change: Callable[[str], str] = unchanging) -> str:
    """The screen as an SVG picture, with `change` made to the text of each run of one style."""
    width, height = app.size
    base = app.theme_variables["background"]
    rows = [_runs(strip, change) for strip in app.screen._compositor.render_strips()]
    w, h = (width + 2) * CELL, (height + 1) * LINE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:g} {h:g}" width="{w:g}" height="{h:g}">',
        f'<rect width="100%" height="100%" rx="6" fill="{base}"/>',
        f'<g font-family="{escape(_FONTS)}" font-size="{SIZE}">',
        *(part for y, row in enumerate(rows) for part in _row(row, y, base)),
        "</g></svg>\n",
    ]
    return "\n".join(parts)


def _runs(strip: Strip, change: Callable[[str], str]) -> list[tuple[str, Style]]:
    """The texts of a row with their styles, neighbours of one style together."""
    segments = [(segment.text, segment.style or Style()) for segment in strip if not segment.control]
    groups = groupby(segments, lambda one: one[1])
    return [(change("".join(text for text, _ in group)), style) for style, group in groups]


def _row(runs: list[tuple[str, Style]], y: int, base: str) -> Iterator[str]:
    """A row's backgrounds and words; each word group stands at its own place, whatever the font."""
    top, x = (y + 0.5) * LINE, 0
    for text, style in runs:
        front, back = _colour(style.color, "#888888"), _colour(style.bgcolor, base)
        if style.reverse:
            front, back = back, front
        if back.casefold() != base.casefold():
            width = cell_len(text) * CELL
            yield f'<rect x="{(x + 1) * CELL:g}" y="{top:g}" width="{width:g}" height="{LINE}" fill="{back}"/>'
        look = "".join(f' {name}="{value}"' for name, value, on in _looks(style) if on)
        for group in re.finditer(r"\S+(?: \S+)*", text):
            left, width = (x + 1 + cell_len(text[: group.start()])) * CELL, cell_len(group[0]) * CELL
            place = f'x="{left:g}" y="{top + LINE * 0.74:g}" textLength="{width:g}" lengthAdjust="spacingAndGlyphs"'
            yield f'<text {place} fill="{front}"{look}>{escape(group[0])}</text>'
        x += cell_len(text)


def _looks(style: Style) -> tuple[tuple[str, str, bool | None], ...]:
    return (
        ("font-weight", "bold", style.bold),
        ("font-style", "italic", style.italic),
        ("text-decoration", "underline", style.underline),
    )


def _colour(colour: Color | None, otherwise: str) -> str:
    return otherwise if colour is None or colour.triplet is None else colour.triplet.hex


class Demo:
    """The demo in a home of its own."""

    def __init__(self, size: tuple[int, int], theme: str) -> None:
        self._size = size
        self._theme = theme
        home = Path(tempfile.gettempdir()) / "demo"
        home.mkdir()
        self.home = home
        self._shop = home / "src" / "shop"
        shutil.copytree(_REPOSITORY, self._shop, ignore=shutil.ignore_patterns("__pycache__"))
        os.environ.update(HOME=str(home), LITELLM_LOCAL_MODEL_COST_MAP="True")
        make_repository(self._shop, "A small shop")
        os.chdir(self._shop)

    def app(self, prompt: str | None = None, session: str | None = None) -> DeepagentApp:
        """The screen, with the demo's model."""
        flags: dict[str, object] = {"model": "demo", "context.window": WINDOW}
        app = DeepagentApp(RunOptions(prompt=prompt, session=session, flags=flags))
        app.theme = self._theme
        return app

    async def pictures(self) -> dict[str, str]:
        """Every picture by its name."""
        made: dict[str, str] = {}
        app = self.app(PROMPT)
        async with app.run_test(size=self._size) as pilot:
            await self._work(app, pilot, made)
            await self._open_pages(app, pilot, made)
        app = self.app()
        async with app.run_test(size=self._size) as pilot:
            await _until(lambda: app.start_panel.offered)
            await _settle(app, pilot)
            made["start"] = svg(app)
        return made

    async def _work(self, app: DeepagentApp, pilot: Pilot[int], made: dict[str, str]) -> None:
        """The run, with every question answered; the main view is the one in which a file is about to change."""
        while "All tests pass." not in _text(app):
            if app._question is not None and app._question.has_focus:
                await asyncio.sleep(0.5)
                if "edit_file" in _text(app) and "main" not in made:
                    await _settle(app, pilot)
                    made["main"] = svg(app)
                await pilot.press("y")
            await asyncio.sleep(0.05)
        await _until(lambda: not app.conversation.busy)

    async def _open_pages(self, app: DeepagentApp, pilot: Pilot[int], made: dict[str, str]) -> None:
        await pilot.press("tab")
        while app.focused is not None and type(app.focused).__name__ != "StepLine":
            await pilot.press("up")
        await pilot.press("enter")
        await _settle(app, pilot)
        made["compaction"] = svg(app)
        await pilot.press("escape", *"/context", "enter")
        await _until(lambda: "Together" in _text(app))
        await _settle(app, pilot)
        made["context"] = svg(app)

    def close(self) -> None:
        """Removes everything."""
        shutil.rmtree(self.home)


def _text(app: DeepagentApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def _settle(app: DeepagentApp, pilot: Pilot[int]) -> None:
    """Waits until the screen does not change any more."""
    before = ""
    while (now := _text(app)) != before:
        before = now
        await asyncio.sleep(0.4)
        await pilot.pause()


async def _until(so: Callable[[], object]) -> None:
    end = time.monotonic() + _PATIENCE
    while not so():
        if time.monotonic() > end:
            sys.exit("the demo does not come to its end")
        await asyncio.sleep(0.05)


def main() -> None:
    """Writes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "docs" / "pictures")
    parser.add_argument("--size", default="100x30")
    parser.add_argument("--theme", default="textual-dark")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    width, height = map(int, arguments.size.split("x"))
    demo = Demo((width, height), arguments.theme)
    try:
        for name, picture in asyncio.run(demo.pictures()).items():
            (folder / f"{name}.svg").write_text(picture, "utf-8")
    finally:
        demo.close()


if __name__ == "__main__":
    main()
