"""`!` and `!!`: the user's own shell in the middle of the talk."""

from __future__ import annotations

import pytest
from tui_stage import call, on_screen, read

pytestmark = pytest.mark.usefixtures("workspace")


async def test_a_command_is_shown_and_told() -> None:
    expects = {"text": "I see it.", "expect": [{"contains": "$ echo mine > made; cat made"}]}
    async with on_screen(expects) as screen:
        await screen.say("!echo mine > made; cat made")
        await screen.sees("● $ echo mine > made; cat made  exit 0 · 1 line", "▏ mine")
        await screen.settle()
        assert read("made") == "mine\n"
        await screen.run("what did I do?")
        await screen.sees("I see it.")


async def test_with_two_marks_the_model_is_not_told() -> None:
    expects = {"text": "I know nothing.", "expect": [{"not_contains": "between us"}]}
    async with on_screen(expects) as screen:
        await screen.say("!! echo between us")
        await screen.sees("exit 0 · 1 line · the model is not told", "▏ between us")
        await screen.run("what did I do?")
        await screen.sees("I know nothing.")


async def test_escape_stops_it() -> None:
    async with on_screen({"text": "Hello."}) as screen:
        await screen.say("!echo begun; sleep 300")
        await screen.sees("begun", "Esc: stop the run")
        await screen.press("escape")
        await screen.sees("interrupted")
        await screen.settle()
        assert not screen.busy


async def test_while_a_run_goes_on_it_waits_in_the_line() -> None:
    wait = {"calls": [call("execute", command="until [ -e go ]; do sleep 0.02; done")]}
    async with on_screen(wait, {"text": "Gone on."}, flags={"permissions.mode": "yolo"}) as screen:
        await screen.say("begin")
        await screen.sees("until [ -e go ]")
        await screen.say("!touch go")
        await screen.sees("A command of yours waits until the run has ended")
        assert screen.app.prompt.text == "!touch go"
        await screen.press("escape")
        await screen.sees("interrupted")
        await screen.settle()
        await screen.press("enter")
        await screen.sees("$ touch go  exit 0")
        assert read("go") == ""
