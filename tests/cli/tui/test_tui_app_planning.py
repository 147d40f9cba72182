"""Plan mode on the screen: a plan is shown, changed by what one writes, or carried out from the empty line."""

from __future__ import annotations

from typing import Any

import pytest
from deepagent.cli.tui.app import CARRY_OUT
from tui_stage import Screen, call, on_screen, read

PLAN: dict[str, Any] = {"flags": {"permissions.mode": "plan"}}
OFFER = "Enter on the empty line carries the plan out"
WRITE = {"calls": [call("write_file", path="made", content="x")]}

pytestmark = pytest.mark.usefixtures("workspace")


def asked(screen: Screen) -> list[str]:
    """What the user has said."""
    return [m.content[0].text for m in screen.messages if m.role == "user" and not m.synthetic]  # pyright: ignore


async def test_a_plan_is_changed_and_then_carried_out_with_questions() -> None:
    async with on_screen({"text": "1. Write."}, {"text": "1. Write it."}, WRITE, {"text": "Done."}, **PLAN) as screen:
        await screen.run("plan it")
        await screen.sees(OFFER)
        await screen.run("more words")
        assert screen.app.footer.mode == "plan"
        await screen.press("enter")
        await screen.sees("Allow write_file?")
        assert screen.app.footer.mode == "default"
        await screen.decide("y")
        await screen.sees("Done.")
        assert read("made") == "x"
        assert asked(screen) == ["plan it", "more words", CARRY_OUT]


async def test_it_is_carried_out_in_the_mode_that_was_chosen() -> None:
    async with on_screen({"text": "1. Write."}, WRITE, {"text": "Done."}, **PLAN) as screen:
        await screen.run("plan it")
        await screen.sees(OFFER)
        await screen.press("shift+tab")
        assert screen.app.footer.mode == "yolo"
        await screen.press("enter")
        await screen.sees("Done.")
        assert read("made") == "x"


async def test_without_a_plan_the_empty_line_sends_nothing() -> None:
    async with on_screen({"text": "Hello."}, {"error": {"kind": "auth"}}) as screen:
        await screen.run("hi")
        await screen.press("shift+tab", "shift+tab", "enter")
        assert screen.app.footer.mode == "plan"
        await screen.run("plan it")  # fails
        await screen.press("enter")
        assert OFFER not in screen.text
        assert asked(screen) == ["hi", "plan it"]
