"""Questions: what they show, which keys decide, and that no key does by accident."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from controlled_clock import ControlledClock
from deepagent.agent.events import Approval, ApprovalAsked, Denied, RunEnded, ToolStarted
from deepagent.agent.sandbox.bounds import Grant, Refusal
from deepagent.cli.tui import approval
from deepagent.cli.tui.approval import ApprovalCard
from deepagent.cli.tui.call_editor import CallEditor
from deepagent.context.entries import Usage
from deepagent.context.messages import ToolCall
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input, TextArea
from transcript_host import DANGER, HOSTILE, Host, answered, call, finished, neutral, rows, sees, until

COMMAND = call("execute", command="pip install x && rm -rf build\nmake")
RULE = "execute(pip install *)"
RULES = (RULE, "execute(make)")


class Asking(Host):
    """A transcript with a prompt below it, and a question in it."""

    kept = "kept in FILE"

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text
        self.answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        self.allowed: list[str] = []

    def compose(self) -> ComposeResult:
        yield from super().compose()
        prompt = TextArea(self.text)
        prompt.styles.height = 3
        yield prompt

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(TextArea).focus()

    def ask(self, of: ToolCall = COMMAND, rules: tuple[str, ...] = RULES, **more: Any) -> None:
        self.presenter.show(answered("", of))
        self.presenter.show(ToolStarted(call=of))
        asked: dict[str, Any] = {"reason": "no rule allows it", "answer": self.answer, **more}
        self.presenter.show(ApprovalAsked(call=of, rules=rules, **asked))

    @property
    def decided(self) -> list[ApprovalCard.Decided]:
        return cast(list[ApprovalCard.Decided], self.heard)

    def on_approval_card_decided(self, message: ApprovalCard.Decided) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().on_approval_card_decided(message)
        self.presenter.answer(message, self.allowed.append)


@asynccontextmanager
async def asking(
    text: str = "", of: ToolCall = COMMAND, size: tuple[int, int] = (80, 40), **more: Any
) -> AsyncGenerator[tuple[Asking, Pilot[None]]]:
    """The question on the screen, its moment of silence over."""
    app = Asking(text)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.ask(of, **more)
        await until(pilot, lambda: app.query(ApprovalCard) and app.query_one(ApprovalCard).is_mounted)
        await pilot.pause()
        yield app, pilot


async def quiet() -> None:
    await asyncio.sleep(approval.QUIET + 0.05)


async def test_it_shows_what_would_run_and_what_always_would_keep() -> None:
    async with asking() as (_, pilot):
        await sees(pilot, "◌ $ pip install x", "waits for your answer", "Allow execute?", "y allow once")
        await sees(
            pilot,
            "$ pip install x && rm -rf build",
            "  make",
            "a always, kept in FILE:",
            f"  {RULE}",
            "  execute(make)",
        )
        await sees(pilot, "no rule allows it")


async def test_it_shows_the_change_of_a_file() -> None:
    async with asking(of=call("edit_file", path="a.py", old_string="one", new_string="two")) as (_, pilot):
        await sees(pilot, "Allow edit_file?", "  a.py", "- one", "+ two")


async def test_it_says_what_it_does_not_show() -> None:
    content = "\n".join(f"line {number}" for number in range(300))
    async with asking(of=call("write_file", path="a.py", content=content), size=(80, 90)) as (_, pilot):
        await sees(pilot, "+ line 30", "… 261 lines are NOT shown; o shows them")
        await quiet()
        await pilot.press("o")
        await sees(pilot, "+ line 299")


@pytest.mark.parametrize(
    ("key", "allowed", "always"), [("y", True, False), ("a", True, True), ("n", False, False), ("escape", False, False)]
)
async def test_a_deliberate_key_decides(key: str, allowed: bool, always: bool) -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press(key)
        await until(pilot, lambda: app.heard)
        message = app.decided[0]
        assert (message.call_id, message.allowed, message.always) == ("c", allowed, RULES if always else ())
        assert app.allowed == list(message.always)
        assert app.answer.result() == Approval(allowed=allowed)
        await until(pilot, lambda: not app.query(ApprovalCard))
        assert isinstance(app.focused, TextArea)
        assert bool(app.query("ToolCard.-running")) == allowed


async def test_a_key_that_comes_too_early_does_not_count() -> None:
    with ControlledClock():
        async with asking() as (app, pilot):
            for key in "yan":
                await pilot.press(key)
            await pilot.pause()
            assert not app.heard


async def test_typing_does_not_decide_however_long_it_goes_on() -> None:
    with ControlledClock() as clock:
        async with asking() as (app, pilot):
            for key in ("y", "a", "n", "y", "a", "n"):
                clock.now += approval.QUIET / 3
                await pilot.press(key)
            assert not app.heard
            clock.now += approval.QUIET
            await quiet()  # the letters that were held are let go
            await pilot.press("y")
            await until(pilot, lambda: app.heard)


async def test_enter_decides_nothing() -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press("enter", "space", "tab")
        await pilot.pause()
        assert not app.heard


async def test_who_is_writing_goes_on_writing() -> None:
    async with asking("draft") as (app, pilot):
        await quiet()
        await pilot.press("y")
        await pilot.pause()
        assert app.query_one(TextArea).text in ("ydraft", "drafty")
        assert not app.heard
        app.query_one(TextArea).clear()
        app.query_one(ApprovalCard).take_focus()
        await quiet()
        await pilot.press("y")
        await until(pilot, lambda: app.heard)


async def test_no_with_a_reason() -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press(*"any", "escape")
        await until(pilot, lambda: not app.query(Input))
        assert not app.heard
        await quiet()
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press(*"use uv", "enter")
        await until(pilot, lambda: app.heard)
        assert app.answer.result() == Approval(allowed=False, reason="use uv")


async def test_the_command_can_be_changed_before_it_runs() -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.focused, CallEditor))
        await sees(pilot, "Enter runs this, Ctrl+J makes a new line")
        await pilot.press("escape")
        await until(pilot, lambda: not app.query(CallEditor))
        assert not app.heard
        await quiet()
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.focused, CallEditor))
        await pilot.press("ctrl+j", *"ls", "enter")
        await until(pilot, lambda: app.heard)
        changed = {"command": "pip install x && rm -rf build\nmake\nls"}
        assert app.answer.result() == Approval(allowed=True, arguments=changed)


async def test_what_was_not_changed_is_the_models_own_call() -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.focused, CallEditor))
        await pilot.press("enter")
        await until(pilot, lambda: app.heard)
        assert app.answer.result() == Approval(allowed=True)


async def test_other_arguments_are_changed_as_json() -> None:
    async with asking(of=call("write_file", path="a.py", content="é")) as (app, pilot):
        await quiet()
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.focused, CallEditor))
        editor = cast(CallEditor, app.focused)
        assert editor.text == '{\n  "path": "a.py",\n  "content": "é"\n}'
        editor.show('{"path": "b.py"')
        await pilot.press("enter")
        await sees(pilot, "this is no JSON")
        editor.show("[1]")
        await pilot.press("enter")
        await sees(pilot, "arguments are a JSON object")
        editor.show('{"path": "b.py", "content": "é"}')
        await pilot.press("enter")
        await until(pilot, lambda: app.heard)
        assert app.answer.result().arguments == {"path": "b.py", "content": "é"}


async def test_what_cannot_be_seen_is_not_lost_by_an_edit() -> None:
    of = call("execute", command="echo '\u202e\x1b'")
    async with asking(of=of) as (app, pilot):
        await quiet()
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.focused, CallEditor))
        assert "\\u202e\\u001b" in cast(CallEditor, app.focused).text
        await pilot.press("enter")
        await until(pilot, lambda: app.heard)
        assert app.answer.result() == Approval(allowed=True)


async def test_a_word_that_begins_with_e_changes_nothing() -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press(*"edit")
        await pilot.pause()
        assert not app.query(CallEditor)


async def test_the_model_can_be_told_something_instead() -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press("enter", *"it is built", "enter")
        await until(pilot, lambda: app.heard)
        assert app.answer.result() == Approval(allowed=False, answer="it is built")


async def test_without_a_rule_there_is_no_always() -> None:
    async with asking(rules=()) as (app, pilot):
        assert "always" not in await sees(pilot, "y allow once")
        await quiet()
        await pilot.press("a")
        await sees(pilot, "a is no answer")
        assert not app.heard


async def test_a_warning_and_who_asks() -> None:
    async with asking(warning="keys lie there", origin="tester", reason="keys lie there") as (_, pilot):
        seen = await sees(pilot, "tester asks: Allow execute?", "keys lie there")
        assert seen.count("keys lie there") == 1


async def test_questions_wait_for_their_turn() -> None:
    async with asking() as (app, pilot):
        second: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        other = call("execute", "d", command="ls -la")
        app.presenter.show(ToolStarted(call=other))
        app.presenter.show(ApprovalAsked(call=other, rules=(), reason="why", origin="tester", answer=second))
        await sees(pilot, "1 of 2 questions")
        assert len(app.query(ApprovalCard)) == 1
        await quiet()
        await pilot.press("n")
        await until(pilot, app.answer.done)
        seen = await sees(pilot, "tester asks: Allow execute?", "$ ls -la")
        assert "questions" not in seen
        app.query_one(ApprovalCard).take_focus()
        await quiet()
        await pilot.press("y")
        await until(pilot, second.done)
        assert (app.answer.result().allowed, second.result().allowed) == (False, True)
        await until(pilot, lambda: not app.query(ApprovalCard))


REFUSED = (
    Refusal(kind="network", subject="example.org"),
    Refusal(kind="write", subject="/opt/x/a", folder=Path("/opt/x")),
)


@pytest.mark.parametrize(
    ("key", "grant"),
    [
        ("y", Grant(off=True)),
        ("w", Grant(network=True)),
        ("f", Grant(writable=(Path("/opt/x"),))),
    ],
)
async def test_what_the_sandbox_refused_can_be_granted(key: str, grant: Grant) -> None:
    async with asking(refused=REFUSED) as (app, pilot):
        seen = await sees(pilot, "what the sandbox kept from it?", "refused: the network example.org")
        assert "refused: writing /opt/x/a" in seen
        assert "w again with network" in seen
        assert "f again, with /opt/x writable" in seen
        assert "always" not in seen
        await quiet()
        await pilot.press(key)
        await until(pilot, lambda: app.heard)
        assert app.answer.result() == Approval(allowed=True, grant=grant)


async def test_only_what_was_refused_can_be_granted() -> None:
    async with asking(refused=REFUSED[:1]) as (app, pilot):
        assert "writable" not in await sees(pilot, "w again with network")
        await quiet()
        await pilot.press("f")
        await sees(pilot, "f is no answer")
        await quiet()
        await pilot.press("n")
        await until(pilot, lambda: app.heard)
        assert app.answer.result() == Approval(allowed=False)


async def test_a_denied_call_says_why() -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press("n")
        await until(pilot, lambda: app.heard)
        app.presenter.show(Denied(call=COMMAND, rules=RULES, reason="the user said no"))
        app.presenter.show(finished(COMMAND, "Not allowed: the user said no.", summary="denied", error=True))
        seen = await sees(pilot, "✗ $ pip install x && rm -rf build make  denied: the user said no")
        assert "Not allowed" not in seen


async def test_a_question_ends_with_the_run() -> None:
    async with asking() as (app, pilot):
        nothing = Usage(input=0, output=0)
        app.answer.cancel()
        app.presenter.show(
            RunEnded(outcome="interrupted", text="", turns=1, usage=nothing, cost=None, compactions=0, error=None)
        )
        await until(pilot, lambda: not app.query(ApprovalCard))
        await sees(pilot, "interrupted")
        assert app.query("ToolCard.-interrupted")


async def test_a_question_comes_into_view() -> None:
    app = Asking()
    async with app.run_test(size=(80, 24)) as pilot:
        for number in range(400):
            app.presenter.show(finished(call("read_file", f"c{number}", path="x"), id=f"t{number}"))
        await sees(pilot, "read_file")
        app.transcript.action_scroll_home()
        await pilot.pause()
        app.ask()
        await sees(pilot, "Allow execute?", "y allow once")


@pytest.mark.parametrize("of", [
    call("execute", command=HOSTILE),
    call("edit_file", path=HOSTILE, old_string=HOSTILE, new_string="x"),
    call("write_file", path=HOSTILE, content=HOSTILE),
    call(HOSTILE, **{HOSTILE: HOSTILE}),
])  # fmt: skip
async def test_hostile_calls(of: ToolCall) -> None:
    app = Asking()
    async with app.run_test(size=(200, 50)) as pilot:
        app.ask(of, rules=(HOSTILE,), reason=HOSTILE, origin=HOSTILE)
        await sees(pilot, "y allow once")
        assert neutral(app)
        assert "\n".join(rows(app)).count("[/b] [=x,y] [data: /m?id=b] [ ␛") >= 3
        assert not set(DANGER) & set("".join(rows(app)))
