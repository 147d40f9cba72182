"""Keys where they could go astray: at a question, at lists, at cards; what is typed there is lost nowhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from deepagent.cli.options import NEWEST
from textual.events import Paste
from tui_stage import Screen, call, on_screen, read, write

pytestmark = pytest.mark.usefixtures("workspace")

WRITES = {"calls": [call("write_file", path="a.txt", content="x")]}
WAITS = {"calls": [call("execute", command="until [ -e go ]; do sleep 0.02; done")]}
YOLO: dict[str, Any] = {"flags": {"permissions.mode": "yolo"}}


async def asked(screen: Screen) -> None:
    """Waits until a question has the keys, and not a moment longer."""
    await screen.say("begin")
    await screen.until(lambda: screen.question is not None and screen.question.has_focus, "waits for a question")


async def test_a_letter_that_comes_too_early_is_no_text_and_no_answer() -> None:
    async with on_screen(WRITES, {"text": "Done."}) as screen:
        await asked(screen)
        await screen.press("y")
        await screen.sees("y came too early to count")
        assert (screen.app.prompt.text, screen.app.focused) == ("", screen.question)
        assert read("a.txt") is None
        await screen.decide("x")
        await screen.sees("x is no answer; Tab goes to the prompt")
        assert screen.app.prompt.text == ""
        assert screen.escape == "say no"
        await screen.decide("y")
        await screen.settle()
        assert read("a.txt") == "x"
        assert screen.app.prompt.text == ""


@pytest.mark.parametrize("wait", [0, 0.5])
@pytest.mark.parametrize("text", ["always use tabs", "yes, but not now", "now what?", "Wait a moment"])
async def test_text_that_is_typed_at_a_question_goes_whole_to_the_prompt(text: str, wait: float) -> None:
    async with on_screen(WRITES, {"text": "Done."}) as screen:
        await asked(screen)
        await asyncio.sleep(wait)
        await screen.write(text)
        await screen.until(lambda: screen.app.prompt.text == text)
        await asyncio.sleep(0.2)
        assert screen.question is not None
        assert screen.escape == "to the question"
        await screen.press("enter")
        await screen.sees(f"joins after the running tools: {text}")
        await screen.until(lambda: screen.app.focused is screen.question)
        await screen.decide("n")
        await screen.settle()
        assert read("a.txt") is None


async def test_what_is_pasted_at_a_question_or_a_card_goes_to_the_prompt() -> None:
    async with on_screen(WRITES, {"text": "Done."}, {"text": "More."}) as screen:
        await asked(screen)
        await asyncio.sleep(0.45)
        screen.app.post_message(Paste("yes\nno"))
        await screen.until(lambda: screen.app.prompt.text == "yes\nno")
        await screen.press("ctrl+u", "backspace", "ctrl+u")
        await screen.until(lambda: screen.app.focused is screen.question)
        await screen.decide("n")
        await screen.settle()
        await screen.press("tab")
        screen.app.post_message(Paste("thanks"))
        await screen.until(lambda: screen.app.prompt.text == "thanks")


async def test_escape_takes_a_letter_back_that_has_not_counted_yet() -> None:
    async with on_screen(WRITES, {"text": "Done."}) as screen:
        await asked(screen)
        await asyncio.sleep(0.45)
        await screen.press("y", "escape")
        await screen.settle()
        assert read("a.txt") is None


async def test_keys_that_mean_something_where_they_are_pressed_are_no_text() -> None:
    write("a.txt", "one\n")
    steps = [{"calls": [call("read_file", path="a.txt")]}, *({"text": "words " * 200} for _ in range(3))]
    async with on_screen(*steps, size=(100, 70)) as screen:
        for prompt in ("read", "and", "more"):
            await screen.run(prompt)
        await screen.run("/compact")
        for key in ("tab", "space"):
            await screen.press(key)
        await screen.sees("u takes it back")
        await screen.press("u")
        await screen.settle()
        assert screen.entries[-1].kind == "compaction_undone"
        assert screen.app.prompt.text == ""


async def test_a_number_chooses_from_the_list_of_models_and_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepagent.agent.local_servers.USUAL", ())
    async with on_screen(model="", opened=False) as screen:
        await screen.sees("1 paste an API key")
        await screen.until(lambda: screen.app.focused is not screen.app.prompt)
        await screen.press("1", "1")
        await screen.sees("Whose key?")
        await screen.press("1")
        await screen.sees("The key for")
        await screen.write("sk-0")
        screen.app.post_message(Paste("123"))
        await screen.pilot.pause()
        assert screen.app.prompt.text == ""
        assert "sk-0" not in screen.text
        for _ in range(2):
            await screen.press("escape")
        await screen.sees("Which model?")
        await screen.press("8", "w", "h", "y")
        assert screen.app.prompt.text == "why"


async def test_the_list_of_models_takes_no_keys_from_somebody_who_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(_: object) -> tuple[object, ...]:
        await asyncio.sleep(0.3)
        return ()

    monkeypatch.setattr("deepagent.agent.local_servers.find_local_servers", slow)
    async with on_screen(model="", opened=False) as screen:
        await screen.sees("Looking for model servers")
        await screen.write("fix ")
        await screen.sees("1 paste an API key")
        await screen.write("3 bugs")
        assert screen.app.prompt.text == "fix 3 bugs"


async def test_what_cannot_be_done_during_a_run_is_said_and_the_run_goes_on() -> None:
    long = [{"text": "words " * 200} for _ in range(3)]
    async with on_screen(*long, WAITS, {"text": "The end."}, size=(80, 40), **YOLO) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        await screen.run("/compact")
        await screen.say("wait")
        await screen.until(lambda: screen.widgets("ToolCard"))
        for command in ("compact", "compact undo", "model x/y", "clear", "resume", "login"):
            await screen.say(f"/{command}")
            await screen.sees(f"/{command.split()[0]} waits until the run has ended; Esc stops it")
        for key in ("tab", "up"):
            await screen.press(key)
        await screen.until(lambda: screen.widgets("StepLine")[0].has_focus)
        await screen.press("u")
        await screen.sees("That waits until the run has ended")
        screen.app.start_over("20200101-000000-abcd")  # a list of sessions that was open when the run began
        await screen.until(lambda: screen.text.count("That waits until the run has ended") == 2)
        await screen.press("escape")
        await screen.say("/mode plan")
        assert screen.app.footer.mode == "plan"
        assert screen.busy
        write("go", "")
        await screen.settle()
        await screen.sees("The end.")
        assert "compaction_undone" not in {entry.kind for entry in screen.entries}


async def test_commands_without_a_model_say_that_there_is_none() -> None:
    async with on_screen(model="", opened=False) as screen:
        await screen.sees("Which model?")
        for number, command in enumerate(("/compact", "/context", "/export", "/model"), 1):
            await screen.say(command)
            await screen.until(lambda: screen.text.count("No model yet: /login sets one up") == number)  # noqa: B023


async def test_a_compaction_says_after_a_resume_what_it_said_before() -> None:
    steps = [{"text": f"Answer {turn}. " + "words " * 200} for turn in range(3)]
    summaries = [{"text": "## SUMMARY\nShort.", "delay": 0.7}]
    async with on_screen(*steps, more={"summaries": summaries}, size=(100, 30)) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        await screen.run("/compact")
        (live,) = (line for line in screen.text.split("\n") if "compaction 1" in line)
        assert " %) · 3/3 requests kept · 1 s" in live
    async with on_screen({"text": "x"}, session=NEWEST, size=(100, 30)) as screen:
        await screen.sees(live)
