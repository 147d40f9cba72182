"""Text from outside in every place where it can appear: shown as it is, or with its codes made visible."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from textual import events
from tui_stage import Screen, call, git, on_screen, script, workspace_here, write

pytestmark = pytest.mark.usefixtures("workspace")

MARKUP = "[/b] [=x,y] [data: /m?id=b] [@click=app.exit()]x[/] [bold"
CODES = "\x1b]52;c;aGk=\x07 \x1b]8;;http://x\x1b\\ \x1b[?1049l \x1bPq#0\x1b\\ \x1b \x9b31m \u202eolleh\u202c"
WIDE = "日本語 한국어 👍🏽 👨\u200d👩\u200d👧 e\u0301 \u200fעברית"
HOSTILE = f"{MARKUP} {CODES} {WIDE}"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SHOWN = ("[/b] [=x,y]", "␛]52;c;aGk=", "日本語 한국어")
"""What must stand on the screen, unless a line is cut."""
YOLO: dict[str, Any] = {"flags": {"permissions.mode": "yolo"}, "size": (160, 50)}


def harmless(screen: Screen) -> bool:
    """Whether nothing on the screen could act on a terminal, and every row is exactly as wide as the screen."""
    strips = screen.app.screen._compositor.render_strips()
    assert not any(CONTROL.search(segment.text) for strip in strips for segment in strip if not segment.control)
    assert {strip.cell_length for strip in strips} == {screen.app.size.width}
    return True


async def test_in_prompts_answers_thoughts_calls_and_results() -> None:
    write("hostile.txt", HOSTILE)
    arguments = {"path": f"no{HOSTILE}", HOSTILE: HOSTILE}
    steps = [
        {
            "thinking": HOSTILE,
            "text": f"{HOSTILE}\n\n# {HOSTILE}\n\n- {HOSTILE}\n\n```{HOSTILE}\n{HOSTILE}\n```\n\n[{MARKUP}](file:///{MARKUP})",
            "calls": [
                call("execute", command=f"cat hostile.txt; : '{HOSTILE}'".replace("\x1b", "")),
                call("execute", command="cat hostile.txt; false"),
                call("read_file", path="hostile.txt"),
                call("read_file", **arguments),
                call(f"no_{HOSTILE}", argument=HOSTILE),
                call("write_file", path=f"{MARKUP} {WIDE}.txt".replace("/", ":"), content=HOSTILE),
                call("write_todos", todos=[{"text": HOSTILE, "status": "in_progress"}]),
            ],
        },
        {"text": "Done."},
    ]
    async with on_screen(*steps, **YOLO) as screen:
        screen.app.post_message(events.Paste(HOSTILE))
        await screen.pilot.pause()
        assert harmless(screen)
        await screen.press("enter")
        await screen.sees("Done.")
        await screen.settle()
        await screen.press("ctrl+o")
        for key in ["pageup"] * 6 + ["pagedown"] * 6:
            assert harmless(screen)
            await screen.press(key)
        for text in SHOWN:
            assert text in screen.text
        for command in ("/context", "/diff", "/sessions"):
            await screen.say(command)
            await screen.pilot.pause(0.3)
            assert harmless(screen)
            await screen.press("escape")
        await screen.run("/compact")
        await screen.press("tab")
        await screen.press("enter")
        assert harmless(screen)


async def test_in_questions_and_reasons() -> None:
    steps = [
        {
            "calls": [
                call("execute", command=f"printf '{HOSTILE}'"),
                call("edit_file", path=f"{MARKUP}.txt", old_string=HOSTILE, new_string=HOSTILE),
            ]
        },
        {"text": "Done."},
    ]
    async with on_screen(*steps, size=(160, 50)) as screen:
        await screen.say("begin")
        await screen.sees("Allow execute?", *SHOWN)
        assert harmless(screen)
        await screen.decide("r")
        await screen.say(f"because {MARKUP} {WIDE}")
        await screen.sees("Allow edit_file?", *SHOWN)
        assert harmless(screen)
        await screen.decide("n")
        await screen.settle()
        assert harmless(screen)
        await screen.sees(f"denied: because {MARKUP}")


@pytest.mark.parametrize("kind", ["auth", "bad_request", "server"])
async def test_in_errors_of_the_model(kind: str) -> None:
    failing = {"error": {"kind": kind, "message": HOSTILE, "times": 1}, "text": "Done."}
    async with on_screen(failing, **YOLO) as screen:
        await screen.run("begin")
        await screen.sees(*SHOWN)
        assert harmless(screen)


async def test_in_names_of_folder_branch_model_files_skills_and_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"{MARKUP} {WIDE}\x1b]0;t\x07".replace("/", ":")
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "-q", "-b", "a]=x,y]b")
    write("[=x,y] 日本.txt", "x")
    write("[=x,z] \x1b[2J.txt", "x")
    skill = f"---\nname: release-notes\ndescription: '{MARKUP} {WIDE}'\n---\nWrite.\n"
    write(".agents/skills/release-notes/SKILL.md", skill)
    write(".agents/skills/[b]/SKILL.md", "no front matter")
    write("AGENTS.md", HOSTILE)
    model = script(workspace_here().root, {"text": "Done."})
    named = str(tmp_path / f"{MARKUP} {WIDE}\x1b[1m.json".replace("/", ":"))
    os.rename(model.removeprefix("scripted:"), named)  # noqa: PTH104 - one of pathlib's waits in a thread
    options: dict[str, Any] = {"model": f"scripted:{named}", "size": (160, 50)}
    async with on_screen(**options) as screen:
        await screen.run(f"{MARKUP} {WIDE}")
        await screen.sees("a]=x,y]b", "[=x,y]")
        assert harmless(screen)
    async with on_screen(**options) as screen:
        await screen.sees("“[/b] [=x,y] [data: /m?id=b]", "Enter on the empty line")
        assert harmless(screen)
        await screen.write("@=x")
        await screen.sees("[=x,y] 日本.txt")
        assert harmless(screen)
        await screen.press("escape", "ctrl+u")
        for command in ("/skills", "/memory", "/sessions", "/diff", "/model"):
            await screen.say(command)
            await screen.pilot.pause(0.2)
            assert harmless(screen)
            await screen.press("escape")


async def test_in_what_is_left_in_the_scrollback() -> None:
    async with on_screen(
        {"text": HOSTILE, "calls": [call("write_file", path="a\x1b[1m.txt", content="x")]}, {"text": HOSTILE}, **YOLO
    ) as screen:
        await screen.run(MARKUP)
    assert not CONTROL.search(screen.app.farewell)
    assert MARKUP in screen.app.farewell
