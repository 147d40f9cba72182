"""Makes the pictures of the README from the demo: the real screen, driven by keys, written as SVG.

`make pictures`, or `.venv/bin/python scripts/pictures.py [FOLDER] [--size 100x30] [--theme textual-dark]`. What differs
from run to run – times, ids – is replaced or made the same, so that a picture changes only when the screen does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

from deepagent.agent.git import make_repository
from deepagent.cli.demo import FLAGS, REPOSITORY
from deepagent.cli.demo_scene import PROMPT
from deepagent.cli.options import RunOptions
from deepagent.cli.tui.app import DeepagentApp
from deepagent.cli.tui.approval import ApprovalCard
from deepagent.cli.tui.steps import StepLine
from deepagent.context import session
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
_DRAWN = {chr(0x2580 + n): (0.0, 1 - n / 8, 1.0, n / 8) for n in range(1, 9)} | {
    "▌": (0, 0, 0.5, 1),
    "─": (0, 0.47, 1, 0.06),
    "│": (0.44, 0, 0.12, 1),
}
"""Characters drawn as shapes, lest a font leaves gaps between them: left, top, width, height in parts of a cell."""
_GROUP = re.compile(r"([█─])\1*|[▁-▇▌│]|[^\s▁-█─▌│]+(?: [^\s▁-█─▌│]+)*")
"""What is drawn at a place of its own: words with one space between them, or what is in `_DRAWN`."""
_PATIENCE = 60
"""Seconds."""
_DELIBERATE = 0.5
"""Seconds without a key after which a question takes one."""


def unchanging(text: str) -> str:
    """`text` with what differs from run to run replaced."""
    for pattern, instead in _CHANGING:
        text = pattern.sub(lambda found, instead=instead: instead[: len(found[0])], text)
    return text


def svg(app: DeepagentApp, change: Callable[[str], str] = unchanging) -> str:
    """The screen as an SVG picture, with `change` made to the text of each run of one style."""
    width, height = app.size
    base = app.theme_variables["background"]
    rows = [_runs(strip, change) for strip in _strips(app)]
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
    x = 1
    for text, style in runs:
        front, back = _colour(style.color, "#888888"), _colour(style.bgcolor, base)
        if style.reverse:
            front, back = back, front
        if back.casefold() != base.casefold():
            yield _rect(x, y, (0, 0, cell_len(text), 1), back)
        look = "".join(f' {name}="{value}"' for name, value, on in _looks(style) if on)
        for group in _GROUP.finditer(text):
            left, width = x + cell_len(text[: group.start()]), cell_len(group[0])
            if group[0][0] in _DRAWN:
                across, down, wide, high = _DRAWN[group[0][0]]
                yield _rect(left, y, (across, down, wide if width == 1 else width, high), front)
            else:
                place = f'x="{left * CELL:g}" y="{(y + 1.24) * LINE:g}" textLength="{width * CELL:g}"'
                yield f'<text {place} lengthAdjust="spacingAndGlyphs" fill="{front}"{look}>{escape(group[0])}</text>'
        x += cell_len(text)


def _rect(x: int, y: int, part: tuple[float, float, float, float], colour: str) -> str:
    """A part of a cell, or of several; `x` counts from the picture's edge."""
    left, top, width, height = part
    place = (
        f'x="{(x + left) * CELL:g}" y="{(y + 0.5 + top) * LINE:g}" width="{width * CELL:g}" height="{height * LINE:g}"'
    )
    return f'<rect {place} fill="{colour}" shape-rendering="crispEdges"/>'


def _looks(style: Style) -> tuple[tuple[str, str, bool | None], ...]:
    return (
        ("font-weight", "bold", style.bold),
        ("font-style", "italic", style.italic),
        ("text-decoration", "underline", style.underline),
    )


def _colour(colour: Color | None, otherwise: str) -> str:
    return otherwise if colour is None or colour.triplet is None else colour.triplet.hex


class Demo:
    """The demo in a home of its own; its path is the same in each run, since it is counted in tokens."""

    def __init__(self, size: tuple[int, int], theme: str) -> None:
        self._size = size
        self._theme = theme
        self._home = Path(tempfile.gettempdir()).resolve() / "deepagent-pictures"
        self.close()  # what a run left that was killed
        shop = self._home / "src" / "shop"
        shutil.copytree(REPOSITORY, shop, ignore=shutil.ignore_patterns("__pycache__"))
        for name in [name for name in os.environ if name.startswith("DEEPAGENT_") or name == "NO_COLOR"]:
            del os.environ[name]
        os.environ.update(HOME=str(self._home), LITELLM_LOCAL_MODEL_COST_MAP="True")
        make_repository(shop, "A small shop")
        os.chdir(shop)

    def close(self) -> None:
        """Removes everything."""
        os.chdir(self._home.parent)
        if self._home.exists():
            shutil.rmtree(self._home)

    async def pictures(self) -> dict[str, str]:
        """Every picture by its name."""
        made: dict[str, str] = {}
        app = self._app(PROMPT)
        async with app.run_test(size=self._size) as pilot:
            made["main"] = await _work(app, pilot)
            made |= await _pages(app, pilot)
        app = self._app()
        async with app.run_test(size=self._size) as pilot:
            await _until(app, lambda: app.start_panel.offered)
            await _settle(app, pilot)
            made["start"] = svg(app)
        return made

    def _app(self, prompt: str | None = None) -> DeepagentApp:
        """The screen, with the demo's model."""
        app = DeepagentApp(RunOptions(prompt=prompt, flags=FLAGS))
        app.theme = self._theme
        return app


async def _work(app: DeepagentApp, pilot: Pilot[int]) -> str:
    """The run, with every question answered. The picture is that of the first question whether a file may change."""
    picture = ""
    while True:
        await _until(app, lambda: isinstance(app.focused, ApprovalCard) or "All tests pass." in _text(app))
        asking = app.focused
        if not isinstance(asking, ApprovalCard):
            break
        await asyncio.sleep(_DELIBERATE)
        if not picture and "Allow edit_file?" in _text(app):
            await _settle(app, pilot)
            picture = svg(app)
        await pilot.press("y")
        await _until(app, lambda asking=asking: app.focused is not asking)
    await _until(app, lambda: not app.footer.busy)
    await _settle(app, pilot)
    return picture


async def _pages(app: DeepagentApp, pilot: Pilot[int]) -> dict[str, str]:
    """The compaction, opened, what fills the window, and what the next compaction would do."""
    made: dict[str, str] = {}
    await pilot.press("tab")
    while app.focused is not None and not isinstance(app.focused, StepLine):
        await pilot.press("up")
    await pilot.press("enter")
    await _settle(app, pilot)
    made["compaction"] = svg(app)
    await pilot.press("escape", *"/context", "enter")
    await _until(app, lambda: "Together" in _text(app))
    await _settle(app, pilot)
    made["context"] = svg(app)
    await pilot.press("escape", *"/compact preview", "enter")
    await _until(app, lambda: "before it happens" in _text(app))
    await pilot.press("right")
    await _settle(app, pilot)
    made["preview"] = svg(app)
    return made


def _strips(app: DeepagentApp) -> list[Strip]:
    """The rows of the screen. Textual's public way to them is a picture in its own design."""
    return app.screen._compositor.render_strips()


def _text(app: DeepagentApp) -> str:
    return "\n".join(strip.text for strip in _strips(app))


async def _settle(app: DeepagentApp, pilot: Pilot[int]) -> None:
    """Waits until the screen does not change any more."""
    before = ""
    while (now := _text(app)) != before:
        before = now
        await asyncio.sleep(0.4)
        await pilot.pause()


async def _until(app: DeepagentApp, so: Callable[[], object]) -> None:
    end = time.monotonic() + _PATIENCE
    while not so():
        if time.monotonic() > end:
            sys.exit(f"the demo does not come to its end:\n{_text(app)}")
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
        with patch.object(session, "choice", random.Random(1).choice):  # other ids have other numbers of tokens
            made = asyncio.run(demo.pictures())
        for name, picture in made.items():
            (folder / f"{name}.svg").write_text(picture, "utf-8")
    finally:
        demo.close()


if __name__ == "__main__":
    main()
