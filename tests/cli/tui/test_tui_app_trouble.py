"""The whole screen when something goes wrong: models that refuse, none at all, bad settings, bugs, small terminals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.sessions import session_ids
from deepagent.cli.tui.presenter import Presenter
from deepagent.context.storage import StorageError
from tui_stage import call, entries_of, model_server, on_screen, workspace_here, write

pytestmark = pytest.mark.usefixtures("workspace")

YOLO: dict[str, Any] = {"flags": {"permissions.mode": "yolo"}}


@pytest.mark.parametrize(
    ("kind", "message"),
    [("auth", "Incorrect API key provided: sk-…[/b]"), ("unknown_model", "The model `gpt-9` does not exist")],
)
async def test_a_turn_that_fails_says_why_and_the_prompt_works_again(kind: str, message: str) -> None:
    failing = {"error": {"kind": kind, "message": message, "times": 1}, "text": "Now it works."}
    async with on_screen(failing, {"text": "Again."}) as screen:
        await screen.run("begin")
        assert message in screen.text
        assert screen.escape == "nothing to stop"
        assert screen.entries[-1].kind == "ended"
        await screen.run("try again")
        assert "Now it works." in screen.text


async def test_a_model_that_failed_can_be_changed_and_the_question_stays() -> None:
    async with on_screen({"error": {"kind": "auth", "message": "no"}}) as screen:
        await screen.run("what is this?")
        session = screen.agent.session.id
        with model_server({"text": "A project."}) as server:
            await screen.say("/login")
            await screen.sees("another URL")
            for key in ("end", "up", "enter"):
                await screen.press(key)
            await screen.sees("A server that speaks OpenAI")
            for value in (server.url, "other", ""):
                await screen.say(value)
            await screen.until(lambda: screen.app.footer.model == "other")
            await screen.settle()
            assert screen.agent.session.id == session
            assert "❯ what is this?" in screen.text


async def test_an_attempt_that_is_repeated_is_taken_back() -> None:
    failing = {"error": {"kind": "broken_stream", "times": 1, "after": 4}, "text": "The whole long answer."}
    async with on_screen(failing) as screen:
        await screen.run("begin")
        await screen.sees("trying again")
        assert screen.text.count("The whole long answer.") == 1


async def test_without_a_model_the_start_offers_ways_to_one() -> None:
    async with on_screen(model="", opened=False) as screen:
        await screen.write("what is this?")
        await screen.sees("Which model?", "1 paste an API key", "another URL", "demo")
        assert screen.app.prompt.text == "what is this?"
        await screen.press("enter")
        await screen.settle()
        assert screen.app.prompt.text == "what is this?"
        with model_server({"text": "Yes."}, {"text": "A project."}) as server:
            for key in ("end", "up", "enter"):
                await screen.press(key)
            await screen.sees("A server that speaks OpenAI")
            assert screen.escape == "one step back"
            for value in (server.url, "mine", ""):
                await screen.say(value)
            await screen.until(lambda: screen.app.focused is screen.app.prompt)
            await screen.settle()
            assert "Which model?" not in screen.text
            await screen.run("")
            await screen.sees("❯ what is this?", "A project.")


async def test_a_key_that_is_refused_stays_on_the_screen() -> None:
    with model_server({"status": 401, "body": {"error": {"message": "Incorrect key"}}}) as server:
        async with on_screen(model="", opened=False) as screen:
            await screen.sees("another URL")
            for key in ("end", "up", "enter"):
                await screen.press(key)
            await screen.sees("A server that speaks OpenAI")
            for value in (server.url, "mine", "sk-wrong-key-0123456789"):
                await screen.say(value)
            await screen.sees("Incorrect key")
            assert "sk-wrong" not in screen.text
            assert screen.app.conversation.agent is None


async def test_settings_that_make_no_sense_are_named_and_nothing_typed_is_lost(isolated: Path) -> None:
    settings = str(isolated / ".deepagents" / "deepagent.toml")
    write(settings, "effort = [/b]\n")
    async with on_screen({"text": "Hello."}, opened=False) as screen:
        await screen.say("hello")
        await screen.sees("is not valid TOML")
        await screen.until(lambda: screen.app.prompt.text == "hello")
        said = screen.text.count("is not valid TOML")
        await screen.press("enter")  # nothing is different yet
        await screen.until(lambda: screen.text.count("is not valid TOML") == said + 1)
        assert screen.app.prompt.text == "hello"
        write(settings, "effort = 'low'\n")
        await screen.press("ctrl+u")
        await screen.say("/clear")
        await screen.until(lambda: screen.app.conversation.agent)
        await screen.run("hello")
        await screen.sees("Hello.")


async def test_a_bug_ends_the_screen_with_the_session_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    async def run() -> None:
        async with on_screen({"text": "An answer."}) as screen:
            monkeypatch.setattr(Presenter, "_answered", broken)
            await screen.say("begin")
            await screen.until(lambda: screen.app._exception)
            assert screen.app.return_code == 1

    with pytest.raises(ZeroDivisionError):
        await run()
    (session,) = session_ids(workspace_here().storage())
    assert [entry.kind for entry in entries_of(session)][-1] == "ended"


SIZES = [(20, 5), (1, 1), (2, 24), (200, 2), (120, 40)]


async def test_resizing_while_the_model_writes_leaves_what_a_fresh_screen_shows() -> None:
    text = "# Title\n\nSome *words* and `code`.\n\n```python\nx = [1, 2, 3]\n```\n\n" + "日本語 and 👍🏽 words. " * 40
    steps = [
        {"text": text, "pace": 0.004, "calls": [call("execute", command="echo " + "x" * 300)]},
        {"text": "| a | b |\n|---|---|\n| 1 | 2 |\n\nDone."},
    ]
    async with on_screen(*steps, size=(120, 40), **YOLO) as screen:
        await screen.say("begin " + "and go on " * 20)
        await screen.sees("Title")
        while screen.busy:
            for size in SIZES:
                await screen.resize(*size)
        await screen.settle()
        resized = screen.text
    async with on_screen(*steps, size=(120, 40), session="", **YOLO) as screen:
        await screen.sees("Done.")
        assert (
            screen.text[: screen.text.index("\n───")].split("\n")[-20:]
            == (resized[: resized.index("\n───")].split("\n")[-20:])
        )


@pytest.mark.long
@pytest.mark.parametrize("size", [(20, 5), (1, 1), (300, 100)])
async def test_every_page_at_every_size(size: tuple[int, int]) -> None:
    steps = [{"text": "An answer.", "calls": [call("execute", command="touch made")]}, {"text": "Done."}]
    async with on_screen(*steps, size=size) as screen:
        await screen.say("begin")
        await screen.decide("n")
        await screen.settle()
        for command in ("/help", "/context", "/sessions", "/skills", "/memory", "/login"):
            await screen.say(command)
            await screen.until(lambda: len(screen.app.screen_stack) > 1)
            await screen.resize(30, 8)
            await screen.resize(*size)
            await screen.press("escape")
            await screen.until(lambda: len(screen.app.screen_stack) == 1)
        assert screen.app._exception is None


async def test_a_prompt_that_cannot_be_kept_stands_in_the_line_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen({"text": "Now it works."}) as screen:

        def full(*_: object) -> None:
            raise StorageError("cannot write the log: the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(screen.agent.session, "sync", full)
            patch.setattr(screen.agent.session, "append", full)
            await screen.say("a question")
            await screen.sees("the disk is full", "❯ a question")
        await screen.press("enter")
        await screen.sees("Now it works.")
