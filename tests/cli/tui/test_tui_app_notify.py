"""Who looks elsewhere is called when a question waits or a long run has ended, and nobody else is."""

from __future__ import annotations

import pytest
from deepagent.cli.tui import app as app_module
from deepagent.cli.tui.notify import notification
from textual import events
from tui_stage import Screen, call, on_screen

pytestmark = pytest.mark.usefixtures("workspace")

ASKS = ({"calls": [call("execute", command="touch a")]}, {"text": "Done."})


def heard(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that is written to the terminal from now on."""
    written: list[str] = []
    monkeypatch.setattr(screen.app._driver, "write", written.append)
    return written


async def looks_elsewhere(screen: Screen) -> None:
    screen.app.post_message(events.AppBlur())
    await screen.until(lambda: not screen.app.app_focus)


async def test_a_question_calls_whoever_looks_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen(*ASKS, flags={"ui.notify": "both"}) as screen:
        written = heard(screen, monkeypatch)
        await looks_elsewhere(screen)
        screen.app.conversation.send("begin")
        await screen.sees("Allow execute?")
        assert [text for text in written if "\a" in text] == ["\a\x1b]9;deepagent asks: execute?\x1b\\"]
        screen.app.post_message(events.AppFocus())
        await screen.decide("n")
        await screen.sees("Done.")
        assert len([text for text in written if "\a" in text]) == 1


async def test_who_looks_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen(*ASKS) as screen:
        written = heard(screen, monkeypatch)
        await screen.say("begin")
        await screen.sees("Allow execute?")
        assert not any("\a" in text for text in written)
        await screen.decide("n")
        await screen.sees("Done.")


async def test_the_end_of_a_long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen({"text": "Short."}, {"text": "Long."}) as screen:
        written = heard(screen, monkeypatch)
        await looks_elsewhere(screen)
        screen.app.conversation.send("short")
        await screen.sees("Short.")
        await screen.settle()
        assert "\a" not in written
        monkeypatch.setattr(app_module, "LONG", 0.0)
        screen.app.conversation.send("long")
        await screen.sees("Long.")
        await screen.settle()
        assert "\a" in written


def test_within_tmux_it_is_wrapped_and_text_cannot_break_out() -> None:
    assert notification("osc9", "a\x1b\\b\nc", {"TMUX": "x"}).startswith("\x1bPtmux;\x1b\x1b]9;a")
    assert notification("osc9", "a\x07\x1b]52;c;x\x07", {}).count("\x1b") == 2
    assert notification("off", "a", {}) == ""
