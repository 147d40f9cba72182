"""Answers while they stream: what they cost, how keys fare, where the view stays."""

from __future__ import annotations

import asyncio
import time

import pytest
from deepagent.agent.events import CallStarted, TextArrived
from deepagent.cli.tui.answers import AnswerText
from textual.pilot import Pilot
from transcript_host import (
    Host,
    answered,
    call,
    finished,
    hosted,
    sees,
    until,
)


async def stream(pilot: Pilot[None], app: Host, text: str, deltas: int) -> float:
    """Streams a text and returns the CPU seconds until it is on the screen."""
    size = max(1, len(text) // deltas)
    began = time.process_time()
    app.presenter.show(CallStarted(turn=1))
    for at in range(0, len(text), size):
        app.presenter.show(TextArrived(text=text[at : at + size]))
        await asyncio.sleep(0)
    app.presenter.show(answered(text))
    await until(pilot, lambda: any(answer.source.endswith(text[-20:]) for answer in app.query(AnswerText)))
    taken = time.process_time() - began
    await sees(pilot, text.rsplit("\n", maxsplit=1)[-1])
    return taken


def patience() -> float:
    """How much slower than usual this machine is now."""
    began = time.process_time()
    sum(number for number in range(3_000_000))
    return max(1.0, (time.process_time() - began) / 0.25)


def markdown(length: int) -> str:
    """Many blocks of each kind."""
    section = "## Part {n}\n\nText with `code` and **bold** [word_{n}].\n\n- one\n- two\n\n```python\nx = {n}\n```\n\n"
    parts: list[str] = []
    while sum(map(len, parts)) < length:
        parts.append(section.replace("{n}", str(len(parts))))
    return "".join(parts) + "the very last words"


@pytest.mark.long
async def test_a_long_answer_streams_cheaply() -> None:
    async with hosted() as (app, pilot):
        assert await stream(pilot, app, markdown(200_000), 5_000) < 3 * patience()
        assert len(app.query("*")) < 500


@pytest.mark.long
async def test_code_streams_cheaply() -> None:
    async with hosted() as (app, pilot):
        code = "".join(f"value_{number} = {number}\n" for number in range(8_000))
        assert await stream(pilot, app, f"```python\n{code}```\n\nthe very last words", 5_000) < 3 * patience()


async def test_what_streamed_is_what_is_shown_at_once() -> None:
    text = markdown(9_000).replace("\n- two", "\n- two\n- three")
    async with hosted((80, 24)) as (app, pilot):
        app.presenter.show(CallStarted(turn=1))
        for at in range(0, len(text), 37):
            app.presenter.show(TextArrived(text=text[at : at + 37]))
            await asyncio.sleep(0.004)
        app.presenter.show(answered(text))
        streamed = await sees(pilot, "the very last words")
        sources = [widget.source for widget in app.query(AnswerText)]
    async with hosted((80, 24)) as (app, pilot):
        app.presenter.show(answered(text))
        at_once = await sees(pilot, "the very last words")
        assert [widget.source for widget in app.query(AnswerText)] == sources
    assert streamed == at_once


@pytest.mark.long
async def test_keys_are_answered_while_an_answer_streams() -> None:
    async with hosted() as (app, pilot):
        longest = 0.0
        text = markdown(60_000)
        for at in range(0, len(text), 400):
            app.presenter.show(TextArrived(text=text[at : at + 400]))
            began = time.thread_time()
            await asyncio.sleep(0.005)
            longest = max(longest, time.thread_time() - began)
        await pilot.pause()
        assert longest < 0.3 * patience()


@pytest.mark.long
async def test_scrolling_away_from_an_answer_that_is_being_written() -> None:
    async with hosted() as (app, pilot):
        for number in range(300):
            app.presenter.show(finished(call("read_file", f"c{number}", path=f"f{number}"), id=f"t{number}"))
        app.presenter.show(TextArrived(text="It begins"))
        await sees(pilot, "It begins")
        app.transcript.action_scroll_home()
        await sees(pilot, "f0")
        await until(pilot, lambda: not app.query(AnswerText))
        app.presenter.show(TextArrived(text=" and goes on"))
        app.presenter.show(answered("It begins and goes on to its end."))
        app.transcript.to_end()
        await sees(pilot, "It begins and goes on to its end.")


async def test_a_link_only_shows_where_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    async with hosted() as (app, pilot):
        monkeypatch.setattr(app, "open_url", opened.append)
        app.presenter.show(answered("[click me](https://e.x/[b]?q=1)"))
        await sees(pilot, "click me")
        await pilot.click("Block", offset=(2, 0))
        await pilot.pause()
        assert [(note.message, note.markup) for note in app._notifications] == [("https://e.x/[b]?q=1", False)]
        assert opened == []


# Hostile text


async def test_a_resize_while_an_answer_streams() -> None:
    text = markdown(6_000)
    async with hosted((120, 40)) as (app, pilot):
        sizes = [(20, 5), (1, 1), (60, 10), (80, 24)]
        for number, at in enumerate(range(0, len(text), 60)):
            app.presenter.show(TextArrived(text=text[at : at + 60]))
            if number % 25 == 0 and sizes:
                await pilot.resize_terminal(*sizes.pop(0))
            await asyncio.sleep(0.002)
        await pilot.resize_terminal(80, 24)
        app.presenter.show(answered(text))
        resized = await sees(pilot, "the very last words")
    async with hosted((80, 24)) as (app, pilot):
        app.presenter.show(answered(text))
        assert await sees(pilot, "the very last words") == resized
