"""The keys of the whole screen: Esc, Ctrl+C in each state, leaving, modes, folding, help, and where typing goes."""

from __future__ import annotations

from typing import Any

import pytest
from deepagent.cli.tui.keys import KEYS
from tui_stage import Screen, call, on_screen, read, write

pytestmark = pytest.mark.usefixtures("workspace")

WAITS = {"calls": [call("execute", command="until [ -e go ]; do sleep 0.02; done")]}
YOLO: dict[str, Any] = {"flags": {"permissions.mode": "yolo"}}


def left(screen: Screen) -> bool:
    """Whether the app is about to end."""
    return screen.app._exit


async def test_ctrl_c_in_each_state() -> None:
    async with on_screen({"text": "Some words."}, WAITS, **YOLO) as screen:
        await screen.run("begin")
        await screen.say("wait")
        await screen.until(lambda: screen.widgets("ToolCard"))
        await screen.write("draft")

        await screen.press("shift+home", "ctrl+c")  # a selection is copied, and nothing else happens
        assert screen.app.clipboard == "draft"
        assert (screen.busy, screen.app.prompt.text) == (True, "draft")

        await screen.press("end", "ctrl+c")  # a run is stopped
        await screen.settle()
        assert (screen.busy, screen.app.prompt.text) == (False, "draft")

        await screen.press("ctrl+c")  # the line is cleared; ↑ has it
        assert screen.app.prompt.text == ""
        await screen.press("up")
        assert screen.app.prompt.text == "draft"
        await screen.press("ctrl+c")
        assert not left(screen)

        await screen.press("ctrl+c")  # twice: leaves
        assert screen.escape == "nothing to stop · Ctrl+C again leaves"
        assert not left(screen)
        await screen.press("ctrl+c")
        assert left(screen)


async def test_ctrl_c_copies_what_the_mouse_selected() -> None:
    async with on_screen({"text": "Some words."}) as screen:
        await screen.run("begin")
        row = next(y for y, line in enumerate(screen.text.split("\n")) if "Some words." in line)
        await screen.pilot.mouse_down(offset=(3, row))
        await screen.pilot.hover(offset=(6, row))
        await screen.pilot.mouse_up(offset=(6, row))
        await screen.press("ctrl+c")
        assert screen.app.clipboard == "Some"
        await screen.press("x")
        assert screen.app.prompt.text == "x"
        assert not left(screen)


async def test_once_in_a_while_ctrl_c_does_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen() as screen:
        await screen.press("ctrl+c")
        screen.app._stopped_at -= 10
        await screen.press("ctrl+c")
        assert not left(screen)


async def test_ctrl_d_leaves_on_the_empty_line_only() -> None:
    async with on_screen() as screen:
        await screen.write("ab")
        await screen.press("home", "ctrl+d")
        assert (screen.app.prompt.text, left(screen)) == ("b", False)
        await screen.press("ctrl+d", "ctrl+d")
        assert left(screen)
        assert screen.app.return_code == 0


async def test_ctrl_q_and_the_palette_do_nothing() -> None:
    async with on_screen() as screen:
        before = screen.text
        await screen.press("ctrl+q", "ctrl+p", "ctrl+backslash")
        assert not left(screen)
        assert screen.text == before


async def test_ctrl_d_leaves_while_a_run_goes_on_and_logs_its_end() -> None:
    async with on_screen(WAITS, **YOLO) as screen:
        await screen.say("begin")
        await screen.until(lambda: screen.widgets("ToolCard"))
        agent = screen.agent
        await screen.press("ctrl+d")
        assert left(screen)
    assert agent.session.entries[-1].kind == "ended"
    assert f"go on with: deepagent -r {agent.session.id}" in screen.app.farewell


async def test_modes_in_turn_and_the_next_call_obeys() -> None:
    steps = [{"calls": [call("write_file", path=f"{n}.txt", content="x")]} for n in range(3)]
    async with on_screen(*steps, {"text": "Done."}) as screen:
        await screen.press("shift+tab")
        assert " accept-edits ⇧Tab" in screen.text
        await screen.say("write three files")
        await screen.until(lambda: read("2.txt") is not None)
        await screen.settle()
        seen: list[str] = []
        for _ in range(4):
            await screen.press("shift+tab")
            seen.append(screen.app.footer.mode)
        assert seen == ["plan", "yolo", "default", "accept-edits"]


async def test_a_mode_holds_from_the_next_call_on_during_a_run() -> None:
    steps = [WAITS, {"calls": [call("write_file", path="a.txt", content="x")]}, {"text": "Not written."}]
    async with on_screen(*steps, **YOLO) as screen:
        await screen.say("begin")
        await screen.until(lambda: screen.widgets("ToolCard"))
        await screen.press("shift+tab", "shift+tab", "shift+tab")
        assert screen.app.footer.mode == "plan"
        write("go", "")
        await screen.settle()
        assert read("a.txt") is None
        assert "✗ write_file  a.txt  denied: " in screen.text


async def test_ctrl_o_unfolds_and_folds() -> None:
    write("a.txt", "the text of a\n")
    async with on_screen({"calls": [call("read_file", path="a.txt")]}, {"text": "Read."}) as screen:
        await screen.run("read")
        assert "the text of a" not in screen.text
        await screen.write("draft")
        await screen.press("ctrl+o")
        await screen.sees("the text of a")
        await screen.press("ctrl+o")
        await screen.until(lambda: "the text of a" not in screen.text)
        assert screen.app.prompt.text == "draft"


async def test_help() -> None:
    async with on_screen(size=(100, 50)) as screen:
        await screen.press("?")
        await screen.sees("Keys", "Commands")
        for key, _ in KEYS:
            assert f"  {key} " in screen.text
        await screen.press("escape")
        assert screen.app.prompt.text == ""
        await screen.write("why?")
        assert screen.app.prompt.text == "why?"


async def test_esc_goes_back_to_the_prompt_before_it_stops_a_run() -> None:
    async with on_screen(WAITS, **YOLO) as screen:
        await screen.say("begin")
        await screen.until(lambda: screen.widgets("ToolCard"))
        await screen.press("tab")
        await screen.until(lambda: screen.escape == "back to the prompt")
        await screen.press("escape")
        await screen.until(lambda: screen.escape == "stop the run")
        assert screen.busy
        await screen.press("escape")
        await screen.settle()
        assert screen.escape == "nothing to stop"


async def test_what_is_typed_goes_to_the_prompt_whatever_has_the_focus() -> None:
    write("a.txt", "one\n")
    async with on_screen({"calls": [call("read_file", path="a.txt")]}, {"text": "Read."}) as screen:
        await screen.run("read")
        await screen.press("tab")
        assert screen.app.focused is screen.widgets("ToolCard")[0]
        await screen.write("next")
        assert screen.app.prompt.text == "next"
        assert screen.app.focused is screen.app.prompt


async def test_escape_closes_the_list_before_it_stops_a_run() -> None:
    async with on_screen(WAITS, **YOLO) as screen:
        await screen.say("begin")
        await screen.until(lambda: screen.widgets("ToolCard"))
        await screen.write("/co")
        await screen.until(lambda: screen.escape == "close the list")
        await screen.press("escape")
        await screen.until(lambda: screen.escape == "stop the run")
        assert (screen.busy, screen.app.prompt.text) == (True, "/co")


async def test_paging_scrolls_the_transcript_and_keeps_the_prompt() -> None:
    long = "\n\n".join(f"Paragraph {n}." for n in range(60))
    async with on_screen({"text": long}) as screen:
        await screen.run("write")
        await screen.sees("Paragraph 59.")
        await screen.press("a", "pageup")
        await screen.until(lambda: "Paragraph 59." not in screen.text)
        await screen.press("b")
        assert screen.app.prompt.text == "ab"
        await screen.press("pagedown")
        await screen.sees("Paragraph 59.")


async def test_tab_on_the_empty_line_goes_to_the_cards_and_back() -> None:
    for name in "ab":
        write(f"{name}.txt", f"the text of {name}\n")
    steps = [{"calls": [call("read_file", path=f"{name}.txt") for name in "ab"]}, {"text": "Read."}]
    async with on_screen(*steps) as screen:
        await screen.run("read")
        for key in ("tab", "up", "enter"):
            await screen.press(key)
        await screen.sees("the text of a")
        for key in ("down", "enter"):
            await screen.press(key)
        await screen.sees("the text of b")
        for key in ("enter", "tab"):
            await screen.press(key)
        await screen.until(lambda: "the text of b" not in screen.text)
        assert screen.app.focused is screen.app.prompt
