"""Pictures of the screen that tell a user's story, compared with those in `snapshots/`.

`SNAPSHOTS=write pytest tests/cli/tui/test_tui_app_snapshots.py` writes them anew; look at each before it is committed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tui_stage import Json, Screen, call, on_screen, script, write

_FOLDER = Path(__file__).with_name("snapshots")
_PICTURES = Path(__file__).parents[3] / "scripts" / "pictures.py"
_TOKENS = re.compile(
    r"\b(?:prompt|margin|memory) \d+|^\s*−?[\d,]+\s+−?\d+\.\d$|[\d,]+ of \S+ tokens, \d+%"
    r"|~[\d.]+k/\S+ \d+%|\d+k? → \S+|[\d,]+ until compaction.*?;|~\S+ tokens"
)
"""Figures that depend on the workspace's path, which is another in each run."""
REPAIR: list[Json] = [
    {
        "text": "I look first.",
        "calls": [
            call(
                "write_todos",
                todos=[{"text": "Find the bug", "status": "in_progress"}, {"text": "Test it", "status": "pending"}],
            ),
            call("read_file", path="add.py"),
            call("read_file", path="subtract.py"),
            call("execute", command="grep -n return add.py"),
        ],
        "usage": {"input": 2_300, "output": 60},
    },
    {
        "text": "The sign is **wrong**.",
        "calls": [call("edit_file", path="add.py", old_string="a - b", new_string="a + b")],
        "usage": {"input": 2_600, "output": 60},
    },
    {"text": "`add` adds now:\n\n```python\nreturn a + b\n```", "usage": {"input": 2_900, "output": 60}},
]


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace that is called `~/shop` in every run."""
    (tmp_path / "shop").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "shop")
    write("add.py", "def add(a, b):\n    return a - b\n")


def story(**options: Any) -> dict[str, Any]:
    """The options of a screen on which the repair is played."""
    path = script(Path.cwd(), *REPAIR).removeprefix("scripted:")
    return {"model": "demo", "demo": Path(path), **options}


def _change(text: str) -> str:
    return _TOKENS.sub(lambda found: re.sub(r"\d", "9", found[0]), _pictures().unchanging(text))


def _pictures() -> Any:
    """`scripts/pictures.py`, which draws them."""
    if "deepagent_pictures" not in sys.modules:
        spec = importlib.util.spec_from_file_location("deepagent_pictures", _PICTURES)
        assert spec and spec.loader
        sys.modules["deepagent_pictures"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["deepagent_pictures"]


def _words(svg: str) -> list[str]:
    """What a picture says, for reading a difference."""
    return [unescape(text) for text in re.findall(r">([^<>]+)</text>", svg)]


def compare(screen: Screen, name: str) -> None:
    """Fails where the screen is not what the picture shows."""
    made = _pictures().svg(screen.app, _change)
    path = _FOLDER / f"{name}.svg"
    if os.environ.get("SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(made)
    kept = path.read_text()
    assert _words(made) == _words(kept)
    assert made == kept, f"{name}: the words are the same, but not their places or colours"


async def test_a_session_is_offered_at_the_start() -> None:
    options = story(flags={"permissions.mode": "yolo", "context.window": None})
    async with on_screen(**options) as screen:
        await screen.run("add(2, 3) gives -1. Repair it.")
    async with on_screen(**options) as screen:
        await screen.sees("Enter on the empty line")
        compare(screen, "start-80x24-dark")


async def test_a_turn_with_its_cards() -> None:
    async with on_screen(theme="textual-light", **story(flags={"permissions.mode": "yolo"})) as screen:
        await screen.run("add(2, 3) gives -1. Repair it.")
        compare(screen, "turn-80x24-light")


async def test_a_question() -> None:
    async with on_screen(size=(160, 50), **story(flags={"permissions.mode": "default"})) as screen:
        await screen.say("add(2, 3) gives -1. Repair it.")
        await screen.decide("y")
        await screen.sees("Allow edit_file?", "Esc: say no")
        await screen.pilot.pause(0.3)
        compare(screen, "question-160x50-dark")


async def test_a_compaction_that_is_opened_and_what_fills_the_window() -> None:
    async with on_screen(**story(flags={"permissions.mode": "yolo", "context.window": 8_000})) as screen:
        await screen.run("add(2, 3) gives -1. Repair it.")
        await screen.run("/compact the tests")
        for key in ("tab", "enter"):
            await screen.press(key)
        await screen.sees("Requests kept word for word")
        await screen.pilot.pause(0.2)
        compare(screen, "compaction-80x24-dark")
        await screen.press("escape")
        await screen.resize(160, 50)
        screen.app.theme = "textual-light"
        await screen.say("/context")
        await screen.sees("Together")
        compare(screen, "context-160x50-light")
