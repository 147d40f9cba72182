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
from deepagent.agent import local_servers
from tui_stage import Json, Screen, call, on_screen, script, write

_FOLDER = Path(__file__).with_name("snapshots")
_PICTURES = Path(__file__).parents[3] / "scripts" / "pictures.py"
_COLUMNS = re.compile(r" {2,}−?[\d,]+ +−?\d+\.\d$")
"""Tokens and per cent of a row of /context."""
_INLINE = re.compile(
    r"(?:prompt|tools|memory|margin) [\d.]+k?|~[\d.]+k? tokens|[\d.]+k → [\d.]+k tokens \(\d+ → \d+ %\)"
    r"|~[\d.]+k?(?=/)|(?<= )\d+ s$|[\d,]+(?= of [\d,]+ tokens)"
)
_BAR = re.compile(r"(?<=~).*\[([▪·]+│[▪·]+)\]")
"""A gauge of our own count."""
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
AFTERWARDS: Json = {"text": "There are none yet.", "usage": {"input": 2_400, "output": 60}}


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace that is called `~/shop` in every run."""
    (tmp_path / "shop").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "shop")
    write("add.py", "def add(a, b):\n    return a - b\n")


def story(*steps: Json, **options: Any) -> dict[str, Any]:
    """The options of a screen on which the repair is played, or these steps."""
    path = script(Path.cwd(), *(steps or (*REPAIR, AFTERWARDS))).removeprefix("scripted:")
    return {"model": "demo", "demo": Path(path), **options}


def _change(text: str) -> str:
    """Replaces figures that depend on the workspace's path, which is another in each run, by others as long."""
    text = _pictures().unchanging(text)
    text = _COLUMNS.sub(lambda found: "9,999   99.9".rjust(len(found[0])), text)
    if _BAR.search(text):
        text = re.sub(r"(?<= )\d+%(?= \[)", lambda found: re.sub(r"\d", "9", found[0]), text.replace("▪", "·"))
    return _INLINE.sub(lambda found: re.sub(r"\d", "9", found[0]), text)


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
        await screen.run("Which tests are there?")
        await screen.resize(160, 50)
        screen.app.theme = "textual-light"
        await screen.say("/context")
        await screen.sees("Together")
        compare(screen, "context-160x50-light")


async def test_a_command_that_fails_shows_its_output() -> None:
    write("report.txt", "".join(f"test_add.py:{number}: assert {number} == {number + 1}\n" for number in range(30)))
    failing: Json = {"text": "I run the tests.", "calls": [call("execute", command="cat report.txt; exit 1")]}
    answer: Json = {"text": "All 30 fail.", "usage": {"input": 2_700, "output": 20}}
    async with on_screen(**story(failing, answer, flags={"permissions.mode": "yolo"})) as screen:
        await screen.run("Run the tests.")
        compare(screen, "failure-80x24-dark")


async def test_what_is_written_during_a_run_waits() -> None:
    running: Json = {
        "text": "I wait for the build.",
        "calls": [call("execute", command="until [ -e built ]; do sleep 0.05; done")],
        "usage": {"input": 2_700, "output": 20},
    }
    async with on_screen(**story(running, {"text": "Built."}, flags={"permissions.mode": "yolo"})) as screen:
        await screen.say("Build it.")
        await screen.sees("sleep 0.05")
        await screen.say("Use the release settings.")
        await screen.write("Then write the notes.")
        await screen.press("tab")
        await screen.sees("Then write the notes.", "Esc: stop the run")
        await screen.pilot.pause(0.2)
        compare(screen, "waiting-80x24-dark")
        write("built", "")
        await screen.settle()


async def test_without_a_key_the_start_offers_ways_to_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_servers, "USUAL", ())
    async with on_screen(model="", theme="textual-light", opened=False) as screen:
        await screen.sees("Which model?")
        await screen.pilot.pause(0.2)
        compare(screen, "login-80x24-light")
