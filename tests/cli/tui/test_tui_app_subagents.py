"""Sub-agents on the screen: what they do is seen in the call's card, and what they ask says who asks."""

from __future__ import annotations

import pytest
from tui_stage import Json, call, on_screen, read

pytestmark = pytest.mark.usefixtures("workspace")


def branch(contains: str, *steps: Json) -> Json:
    return {"when": [{"where": "first", "contains": contains}], "steps": list(steps)}


async def test_what_they_do_and_ask_is_seen_and_agents_lists_them() -> None:
    handed = {"calls": [call("task", prompt="part one"), call("task", prompt="part two")]}
    look = {"calls": [call("ls", path=".")]}
    branches = [
        branch("part one", look, {"calls": [call("write_file", path="made", content="x")]}, {"text": "Made."}),
        branch("part two", look, {"text": "Looked."}),
    ]
    more = {"branches": branches}
    async with on_screen(handed, {"text": "Both are done."}, size=(100, 40), more=more) as screen:
        await screen.say("hand it on")
        await screen.sees("task  part one", "● ls .", "task  part two", "general-purpose asks: Allow write_file?")
        await screen.decide("y")
        await screen.sees("Both are done.")
        await screen.settle()
        assert read("made") == "x"
        shown = screen.text
        assert "● task  part one  general-purpose · success · 3 turns" in shown
        assert "● task  part two  general-purpose · success · 2 turns" in shown
        assert "● write_file  made  +1 −0" in shown
        await screen.say("/agents")
        await screen.sees("Sub-agents", "general-purpose (built in): has all tools")
