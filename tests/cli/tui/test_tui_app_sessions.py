"""Sessions on the whole screen: what is offered at the start, and that going on shows what was shown before."""

from __future__ import annotations

from typing import Any

import pytest
from deepagent.agent.sessions import session_ids
from deepagent.cli.options import NEWEST, PICK
from deepagent.context.storage import log_name
from tui_stage import Json, Screen, call, on_screen, read, script, workspace_here, write

pytestmark = pytest.mark.usefixtures("workspace")

YOLO: dict[str, Any] = {"flags": {"permissions.mode": "yolo"}}


def only_session() -> str:
    """The id of the one session of the workspace."""
    (session,) = session_ids(workspace_here().storage())
    return session


def talk_of(screen: Screen) -> list[str]:
    """What the transcript shows from the first request on."""
    return screen.text[screen.text.index("\n ❯ ") : screen.text.index("\n───")].rstrip().split("\n")


async def test_enter_on_the_empty_line_goes_on_with_the_last_session() -> None:
    steps = [{"text": "First answer."}, {"text": "Second answer."}]
    model = script(workspace_here().root, *steps)
    async with on_screen(model=model) as screen:
        await screen.press("enter")  # there is none yet
        assert "First answer." not in screen.text
        await screen.run("fix the rounding")
        session = screen.agent.session.id
    async with on_screen(model=model) as screen:
        await screen.sees("“fix the rounding” · just now · done", "Enter on the empty line: continue")
        await screen.press("enter")
        await screen.until(lambda: screen.agent.session.id == session)
        await screen.settle()
        assert "First answer." in screen.text
        assert "Enter on the empty line" not in screen.text
        await screen.press("enter")  # a second time it means nothing
        await screen.run("and the tests")
        assert "Second answer." in screen.text
        assert [message.role for message in screen.messages] == ["user", "assistant"] * 2


async def test_what_is_typed_instead_begins_a_new_session() -> None:
    model = script(workspace_here().root, {"text": "An answer."})
    async with on_screen(model=model) as screen:
        await screen.run("fix the rounding")
        session = screen.agent.session.id
    async with on_screen(model=model) as screen:
        await screen.sees("“fix the rounding”")
        await screen.run("something else")
        assert screen.agent.session.id != session
        assert "“fix the rounding”" not in screen.text
        await screen.press("enter")
        assert "fix the rounding" not in screen.text


async def test_a_killed_session_is_offered_and_goes_on() -> None:
    steps = [{"calls": [call("execute", command="true")]}, {"text": "Where was I?"}, {"text": "Done now."}]
    model = script(workspace_here().root, *steps)
    async with on_screen(model=model, **YOLO) as screen:
        await screen.run("repair it")
    path = workspace_here().storage().path(log_name(only_session()))
    lines = path.read_bytes().splitlines(keepends=True)
    result = next(at for at, line in enumerate(lines) if b'"role":"tool"' in line)
    path.write_bytes(b"".join(lines[:result]) + lines[result][:40])  # killed while it wrote the result
    async with on_screen(model=model, **YOLO) as screen:
        await screen.sees("“repair it”", "stopped inside turn 1 (killed)")
        await screen.press("enter")
        await screen.sees("❯ repair it", "✗ $ true  interrupted")
        await screen.run("go on")
        await screen.sees("Where was I?")


async def test_continue_and_the_picker_of_the_command_line() -> None:
    model = script(workspace_here().root, {"text": "An answer."})
    async with on_screen(model=model) as screen:
        await screen.run("the only one")
    async with on_screen(model=model, session=NEWEST) as screen:
        await screen.sees("❯ the only one", "An answer.")
    async with on_screen(model=model, session=PICK) as screen:
        await screen.sees("Sessions", "the only one")
        await screen.press("enter")
        await screen.sees("❯ the only one", "An answer.")


async def test_a_session_that_is_not_there_leaves_a_new_one() -> None:
    async with on_screen({"text": "An answer."}, session="19990101-000000-aaaa", opened=False) as screen:
        await screen.sees("19990101-000000-aaaa")
        await screen.say("hello")
        await screen.until(lambda: screen.app.prompt.text == "hello")
        await screen.press("ctrl+u")
        await screen.say("/clear")
        await screen.until(lambda: screen.app.conversation.agent)
        await screen.run("hello again")
        assert "An answer." in screen.text


async def test_drafts_and_what_was_queued_come_back() -> None:
    steps = [{"calls": [call("execute", command="until [ -e go ]; do sleep 0.02; done")]}, {"text": "Ended."}]
    model = script(workspace_here().root, *steps)
    async with on_screen(model=model, **YOLO) as screen:
        await screen.say("begin")
        await screen.until(lambda: screen.widgets("ToolCard"))
        await screen.write("next")
        await screen.press("tab")
        await screen.write("a draft")
    async with on_screen(model=model, **YOLO) as screen:
        assert screen.app.prompt.text == "a draft"
        assert "↳ queued: next" in screen.text


async def test_going_on_shows_what_was_shown() -> None:
    write("a.txt", "one\ntwo\n")
    write("big.txt", "".join(f"line {n} of a file that is long enough to go to a file\n" for n in range(2_000)))
    steps: list[Json] = [
        {
            "thinking": "I look first.",
            "text": "I *look*.",
            "calls": [
                call("write_todos", todos=[{"text": "Look", "status": "in_progress"}]),
                call("read_file", path="a.txt"),
                call("execute", command="cat big.txt"),
            ],
        },
        {"calls": [call("edit_file", path="a.txt", old_string="two", new_string="three")]},
        {"calls": [call("execute", command="echo broken >&2; exit 3"), call("read_file", path="none.txt")]},
        {"text": "```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"},
        {"text": "After it."},
    ]
    model = script(workspace_here().root, *steps)
    options: dict[str, Any] = {"model": model, "size": (90, 110), **YOLO}
    async with on_screen(**options) as screen:
        await screen.run("look around\nand around")
        await screen.run("/compact")
        await screen.run("and then?")
        live = talk_of(screen)
        gauge = screen.app.footer.gauge
    assert read("a.txt") == "one\nthree\n"
    async with on_screen(session=NEWEST, **options) as screen:
        assert talk_of(screen) == live
        assert screen.app.footer.gauge == gauge
        await screen.press("ctrl+o")
        await screen.sees("I look first.")
