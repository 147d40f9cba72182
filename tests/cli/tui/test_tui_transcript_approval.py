"""Questions: what they show, which keys decide, and that no key does by accident."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import pytest
from deepagent.agent.events import Approval, ApprovalAsked, Denied, RunEnded, ToolStarted
from deepagent.cli.tui import approval
from deepagent.cli.tui.approval import ApprovalCard
from deepagent.context.entries import Usage
from deepagent.context.messages import ToolCall
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input, TextArea
from transcript_host import DANGER, HOSTILE, Host, answered, call, finished, neutral, rows, sees, until

COMMAND = call("execute", command="pip install x && rm -rf build\nmake")
RULE = "execute(pip install *)"


class Asking(Host):
    """A transcript with a prompt below it, and a question in it."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text
        self.answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        prompt = TextArea(self.text)
        prompt.styles.height = 3
        yield prompt

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(TextArea).focus()

    def ask(self, of: ToolCall = COMMAND, rule: str = RULE) -> None:
        self.presenter.show(answered("", of))
        self.presenter.show(ToolStarted(call=of))
        self.presenter.show(ApprovalAsked(call=of, rule=rule, answer=self.answer))

    @property
    def decided(self) -> list[ApprovalCard.Decided]:
        return cast(list[ApprovalCard.Decided], self.heard)

    def on_approval_card_decided(self, message: ApprovalCard.Decided) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().on_approval_card_decided(message)
        self.presenter.decide(message.call_id, allowed=message.allowed, reason=message.reason)


@asynccontextmanager
async def asking(
    text: str = "", of: ToolCall = COMMAND, size: tuple[int, int] = (80, 40)
) -> AsyncGenerator[tuple[Asking, Pilot[None]]]:
    """The question on the screen, its moment of silence over."""
    app = Asking(text)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.ask(of)
        await until(pilot, lambda: app.query(ApprovalCard) and app.query_one(ApprovalCard).is_mounted)
        await pilot.pause()
        yield app, pilot


async def quiet() -> None:
    await asyncio.sleep(approval.QUIET + 0.05)


async def test_it_shows_what_would_run_and_what_always_would_keep() -> None:
    async with asking() as (_, pilot):
        await sees(pilot, "◌ $ pip install x", "waits for your answer", "Allow execute?", "y allow once")
        await sees(pilot, "$ pip install x && rm -rf build", "  make", f"a always in this session: {RULE}")


async def test_it_shows_the_change_of_a_file() -> None:
    async with asking(of=call("edit_file", path="a.py", old_string="one", new_string="two")) as (_, pilot):
        await sees(pilot, "Allow edit_file?", "  a.py", "- one", "+ two")


async def test_it_says_what_it_does_not_show() -> None:
    content = "\n".join(f"line {number}" for number in range(300))
    async with asking(of=call("write_file", path="a.py", content=content), size=(80, 90)) as (_, pilot):
        await sees(pilot, "+ line 30", "… 261 more lines are NOT shown; o shows them")
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
        assert (message.call_id, message.allowed, message.always, message.rule) == ("c", allowed, always, RULE)
        assert app.answer.result() == Approval(allowed=allowed)
        await until(pilot, lambda: not app.query(ApprovalCard))
        assert isinstance(app.focused, TextArea)
        assert bool(app.query("ToolCard.-running")) == allowed


async def test_a_key_that_comes_too_early_does_not_count() -> None:
    async with asking() as (app, pilot):
        for key in "yan":
            await pilot.press(key)
        await pilot.pause()
        assert not app.heard


async def test_typing_does_not_decide_however_long_it_goes_on() -> None:
    async with asking() as (app, pilot):
        for key in ("y", "a", "n", "y", "a", "n"):
            await asyncio.sleep(approval.QUIET / 3)
            await pilot.press(key)
        assert not app.heard
        await quiet()
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


async def test_a_denied_call_says_why() -> None:
    async with asking() as (app, pilot):
        await quiet()
        await pilot.press("n")
        await until(pilot, lambda: app.heard)
        app.presenter.show(Denied(call=COMMAND, rule=RULE, reason="the user said no"))
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
        app.ask(of, rule=HOSTILE)
        await sees(pilot, "y allow once")
        assert neutral(app)
        assert "\n".join(rows(app)).count("[/b] [=x,y] [data: /m?id=b] [ ␛") >= 3
        assert not set(DANGER) & set("".join(rows(app)))
