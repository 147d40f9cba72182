"""The whole screen in a talk: sending, steering, queueing, taking back, deciding, interrupting."""

from __future__ import annotations

from typing import Any

import pytest
from controlled_clock import ControlledClock
from deepagent.context.messages import text_of
from tui_stage import Screen, call, on_screen, read, write

pytestmark = pytest.mark.usefixtures("workspace")

WAITS = {"calls": [call("execute", command="until [ -e go ]; do sleep 0.02; done; echo went")]}
"""A turn whose tool runs until `go` is there."""
YOLO: dict[str, Any] = {"flags": {"permissions.mode": "yolo"}}


def said(screen: Screen) -> list[tuple[str, str]]:
    """Who said what, as it lies on the disk; of a result the first line."""
    return [(m.role, (m.text if m.role == "assistant" else text_of(m)).split("\n")[0]) for m in screen.messages]


async def runs(screen: Screen, prompt: str = "begin") -> None:
    """Sends a prompt and waits until the tool of `WAITS` runs."""
    await screen.say(prompt)
    await screen.until(lambda: any(card.has_class("-running") for card in screen.widgets("ToolCard")))


def go() -> None:
    """Lets the tool of `WAITS` come to its end."""
    write("go", "")


async def test_a_turn() -> None:
    async with on_screen({"text": "It is a *small* project.", "usage": {"input": 3_210, "output": 9}}) as screen:
        await screen.run("What is this?")
        assert "❯ What is this?" in screen.text
        assert "  It is a small project." in screen.text
        assert said(screen) == [("user", "What is this?"), ("assistant", "It is a *small* project.")]
        assert " 3.2k/32k 10% [▪▪···············│··] 85%" in screen.text
        assert screen.escape == "nothing to stop"


async def test_what_is_said_during_a_run_joins_after_the_running_tools() -> None:
    async with on_screen(WAITS, {"text": "Tabs it is."}, **YOLO) as screen:
        await runs(screen)
        await screen.say("use tabs")
        assert "↳ joins after the running tools: use tabs" in screen.text
        assert screen.app.prompt.text == ""
        go()
        await screen.settle()
        assert said(screen)[2:] == [("tool", "went"), ("user", "use tabs"), ("assistant", "Tabs it is.")]
        assert "joins after" not in screen.text
        assert screen.text.index("❯ use tabs") > screen.text.index("exit 0")


async def test_tab_keeps_a_text_for_afterwards() -> None:
    async with on_screen(WAITS, {"text": "First."}, {"text": "Second."}, {"text": "Third."}, **YOLO) as screen:
        await runs(screen)
        await screen.write("then this")
        await screen.press("tab")
        await screen.write("and that")
        await screen.press("tab")
        assert "↳ queued: then this" in screen.text
        assert "↳ queued: and that" in screen.text
        go()
        await screen.settle()
        assert said(screen)[3:] == [
            ("assistant", "First."),
            ("user", "then this"),
            ("assistant", "Second."),
            ("user", "and that"),
            ("assistant", "Third."),
        ]
        assert "queued" not in screen.text


async def test_up_takes_back_what_was_not_heard_yet() -> None:
    async with on_screen(WAITS, {"text": "Done."}, **YOLO) as screen:
        await runs(screen)
        await screen.say("joins")
        await screen.write("waits")
        await screen.press("tab")
        await screen.press("up")
        assert screen.app.prompt.text == "waits"
        assert "↳ joins after the running tools: joins" in screen.text
        await screen.press("ctrl+u", "up")
        assert screen.app.prompt.text == "joins"
        assert "↳" not in screen.text
        go()
        await screen.settle()
        assert [text for role, text in said(screen) if role == "user"] == ["begin"]
        assert screen.app.prompt.text == "joins"


async def test_what_comes_too_late_to_join_is_sent_next() -> None:
    async with on_screen({"text": "Slow " * 20, "pace": 0.05}, {"text": "Heard."}) as screen:
        await screen.say("begin")
        await screen.sees("Slow Slow")
        await screen.say("one more thing")
        await screen.settle()
        assert said(screen)[2:] == [("user", "one more thing"), ("assistant", "Heard.")]


async def test_allowing_once() -> None:
    step = {"calls": [call("write_file", path="a.txt", content="one\ntwo\n")]}
    again = {"calls": [call("write_file", path="b.txt", content="three\n")]}
    async with on_screen(step, again, {"text": "Written."}) as screen:
        await screen.say("write")
        await screen.sees("Allow write_file?", "a.txt", "+ one", "+ two", "y allow once")
        assert read("a.txt") is None
        assert screen.escape == "say no"
        await screen.decide("y")
        await screen.sees("b.txt", "+ three")
        assert read("a.txt") == "one\ntwo\n"
        await screen.decide("escape")
        await screen.settle()
        assert read("b.txt") is None
        assert screen.question is None
        assert screen.app.focused is screen.app.prompt
        assert "✗ write_file  b.txt  denied: the user said no" in screen.text


async def test_refusing_with_a_reason() -> None:
    step = {"calls": [call("execute", command="rm -rf build")]}
    after = {"expect": [{"where": "last", "contains": "the build is precious"}], "text": "I keep it."}
    async with on_screen(step, after) as screen:
        await screen.say("clean up")
        await screen.decide("r")
        assert screen.escape == "back to the choices"
        await screen.say("the build is precious")
        await screen.settle()
        assert "✗ $ rm -rf build  denied: the build is precious" in screen.text
        assert "I keep it." in screen.text


async def test_allowing_always() -> None:
    steps = [{"calls": [call("execute", command=f"echo {word} >> log")]} for word in ("one", "one", "two")]
    async with on_screen(*steps, {"text": "Done."}) as screen:
        await screen.say("count")
        kept = "kept in .deepagents/deepagent.local.toml"
        await screen.sees(f"a always, {kept}:", "  execute(echo one)", "  write_file(log)")
        await screen.decide("a")
        await screen.sees(f"Allowed from now on, {kept}", "  execute(echo two)")
        assert read("log") == "one\none\n"
        await screen.decide("n")
        await screen.settle()
        assert read("log") == "one\none\n"
    async with on_screen({"calls": [call("execute", command="echo one >> log")]}, {"text": "Done."}) as screen:
        await screen.run("count on")
        assert read("log") == "one\none\none\n"


async def test_what_the_user_changes_runs() -> None:
    step = {"calls": [call("execute", command="echo one > log")]}
    after = {"expect": [{"where": "last", "contains": "The user changed this call"}], "text": "I see."}
    async with on_screen(step, after) as screen:
        await screen.say("count")
        await screen.decide("e")
        await screen.sees("Enter runs this")
        await screen.press("2", "enter")
        await screen.settle()
        assert read("log2") == "one\n"
        assert "I see." in screen.text


async def test_typing_decides_nothing() -> None:
    step = {"calls": [call("execute", command="touch made")], "delay": 0.2}
    async with on_screen(step, {"text": "Not done."}) as screen:
        await screen.say("begin")
        await screen.write("y")  # a draft is being written when the question comes
        await screen.sees("Allow execute?")
        await screen.write("es")
        assert screen.app.prompt.text == "yes"
        assert screen.question is not None
        with ControlledClock():
            await screen.press("enter")  # sent: now the question gets the keys
            assert screen.question is not None
            await screen.press("y")  # at once: still meant for something else
            assert screen.question is not None
        await screen.decide("n")
        await screen.settle()
        assert read("made") is None
        assert [text for role, text in said(screen) if role == "user"] == ["begin", "yes"]


async def test_a_draft_waits_while_a_question_is_answered() -> None:
    step = {"calls": [call("execute", command="touch made")], "delay": 0.2}
    async with on_screen(step, {"text": "Made."}) as screen:
        await screen.say("begin")
        await screen.write("a draft")
        await screen.sees("Allow execute?")
        assert screen.escape == "to the question"
        await screen.press("escape")
        await screen.until(lambda: screen.escape == "say no")
        await screen.decide("y")
        await screen.sees("Made.")
        assert read("made") is not None
        assert screen.app.prompt.text == "a draft"
        assert screen.app.focused is screen.app.prompt


async def test_escape_stops_the_run_and_keeps_the_draft() -> None:
    async with on_screen(WAITS, **YOLO) as screen:
        await runs(screen)
        await screen.write("a draft")
        assert screen.escape == "stop the run"
        await screen.press("escape")
        await screen.settle()
        assert screen.app.prompt.text == "a draft"
        assert "interrupted" in screen.text
        assert screen.escape == "nothing to stop"
        assert said(screen)[-1] == ("tool", "Interrupted: this call may have run in part, or not at all.")
        assert screen.entries[-1].kind == "ended"


async def test_escape_while_the_model_writes_keeps_what_has_come() -> None:
    async with on_screen({"text": "word " * 200, "pace": 0.01}, {"text": "Heard."}) as screen:
        await screen.say("begin")
        await screen.sees("word word word")
        await screen.press("escape")
        await screen.settle()
        assert "word word word" in screen.text
        assert said(screen)[-1][0] == "assistant"
        await screen.run("go on")
        assert said(screen)[-2:] == [("user", "go on"), ("assistant", "Heard.")]


async def test_what_was_queued_is_sent_after_an_interruption_too() -> None:
    async with on_screen(WAITS, {"text": "Second."}, **YOLO) as screen:
        await runs(screen)
        await screen.write("next")
        await screen.press("tab", "escape")
        await screen.settle()
        assert said(screen)[-2:] == [("user", "next"), ("assistant", "Second.")]


async def test_what_is_sent_before_the_agent_is_open_is_sent_when_it_is() -> None:
    async with on_screen({"text": "Here I am."}, opened=False) as screen:
        await screen.say("are you there?")
        await screen.say("and now?")
        await screen.sees("Here I am.")
        await screen.settle()
        assert [text for role, text in said(screen) if role == "user"] == ["are you there?", "and now?"]


async def test_a_prompt_of_the_command_line_is_sent_first() -> None:
    async with on_screen({"text": "Hello."}, prompt="greet me") as screen:
        await screen.sees("❯ greet me", "Hello.")
