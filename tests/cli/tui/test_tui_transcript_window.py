"""The transcript as a window: few widgets, old ones come back, and what is looked at keeps its place."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest
from deepagent.cli.tui.answers import Answer, AnswerText
from deepagent.cli.tui.lines import Lines, Row
from deepagent.cli.tui.messages import NoticeLine
from deepagent.cli.tui.transcript import MOST, STEP, Transcript
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Static
from transcript_host import Host, hosted, rows, screen, sees, until


def fill(transcript: Transcript, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        transcript.add(partial(NoticeLine, f"line {number}"))


def mounted(app: Host) -> list[str]:
    return [str(widget.render()) for widget in app.transcript.children if isinstance(widget, Static)]


async def scrolled(app: Host, pilot: Pilot[None], y: int) -> None:
    """Scrolls by some lines, as a wheel does."""
    app.transcript.scroll_relative(y=y, animate=False)
    await pilot.pause()
    await pilot.pause()


async def test_what_is_short_stands_at_the_top() -> None:
    async with hosted() as (app, pilot):
        fill(app.transcript, 3)
        await pilot.pause()
        assert [row.strip() for row in screen(app)[:4]] == ["line 0", "line 1", "line 2", ""]


async def test_the_end_stays_in_view() -> None:
    async with hosted() as (app, pilot):
        fill(app.transcript, 100)
        await sees(pilot, "line 99")
        fill(app.transcript, 1, 100)
        await sees(pilot, "line 100")
        assert app.transcript.at_end


async def test_who_scrolled_up_is_left_alone() -> None:
    async with hosted() as (app, pilot):
        fill(app.transcript, 100)
        await sees(pilot, "line 99")
        await scrolled(app, pilot, -10)
        before = rows(app)
        fill(app.transcript, 50, 100)
        await pilot.pause()
        assert rows(app) == before
        assert not app.transcript.at_end
        app.transcript.to_end()
        await sees(pilot, "line 149")


@pytest.mark.long
async def test_five_thousand_entries_cost_no_more_than_those_that_are_seen() -> None:
    async with hosted() as (app, pilot):
        began = time.process_time()
        fill(app.transcript, 5_000)
        await sees(pilot, "line 4999")
        assert time.process_time() - began < 2
        assert len(app.transcript) == 5_000
        assert len(app.transcript.children) < MOST
        fill(app.transcript, 500, 5_000)
        await sees(pilot, "line 5499")
        assert len(app.transcript.children) < MOST + STEP


async def test_old_entries_come_back_and_nothing_jumps() -> None:
    async with hosted() as (app, pilot):
        fill(app.transcript, 1_000)
        await sees(pilot, "line 999")
        expected = 1_000 - 24
        while expected > 660:
            await scrolled(app, pilot, -23)
            expected -= 23
            assert rows(app)[0].strip() == f"line {expected}"
            assert len(app.transcript.children) <= MOST + STEP
        while expected < 800:
            await scrolled(app, pilot, 19)
            expected += 19
            assert rows(app)[0].strip() == f"line {expected}"
        assert len(set(mounted(app))) == len(mounted(app))
        assert mounted(app) == sorted(mounted(app), key=lambda text: int(text.split()[1]))


async def test_the_bottom_of_the_window_is_not_the_end() -> None:
    async with hosted() as (app, pilot):
        fill(app.transcript, 1_000)
        await sees(pilot, "line 999")
        app.transcript.action_scroll_home()
        await sees(pilot, "line 0")
        for _ in range(4):
            await scrolled(app, pilot, 1_000)
        assert not app.transcript.at_end
        assert "line 999" not in mounted(app)
        app.transcript.action_scroll_end()
        await sees(pilot, "line 999")
        assert app.transcript.at_end


async def test_what_grows_above_moves_nothing() -> None:
    async with hosted() as (app, pilot):
        lines = Lines([Row("one")])
        fill(app.transcript, 10)
        app.transcript.add(lines)
        fill(app.transcript, 60, 10)
        await sees(pilot, "line 69")
        await scrolled(app, pilot, -20)
        before = rows(app)
        lines.set_rows(Row(f"row {number}") for number in range(50))
        await pilot.pause()
        await pilot.pause()
        assert rows(app) == before


@pytest.mark.long
async def test_answers_come_back_where_they_were() -> None:
    """Markdown gets its height later than other widgets; the place is kept all the same."""
    async with hosted() as (app, pilot):
        for number in range(300):
            answer = Answer(pieces=[f"Answer {number}\n\n- a\n- b\n\ntext"], done=True)
            app.transcript.add(partial(AnswerText, answer))
        await sees(pilot, "Answer 299")
        for _ in range(20):
            before = screen(app)
            app.transcript.scroll_relative(y=-10, animate=False)
            await pilot.pause()
            await asyncio.sleep(0.02)
            await pilot.pause()
            assert screen(app)[10:] == before[:-10]


async def test_a_resize_keeps_the_place() -> None:
    async with hosted((120, 40)) as (app, pilot):
        for number in range(200):
            app.transcript.add(partial(NoticeLine, f"line {number} " + "word " * 30))
        await sees(pilot, "line 199")
        await scrolled(app, pilot, -100)
        first = next(row for row in rows(app) if "line" in row).split()[1]
        for size in ((60, 40), (20, 5), (1, 1), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert f"line {first} " in "\n".join(rows(app)[:4])


async def test_an_entry_can_be_taken_away_wherever_it_is() -> None:
    async with hosted() as (app, pilot):
        entries = [app.transcript.add(partial(NoticeLine, f"line {number}")) for number in range(400)]
        await sees(pilot, "line 399")
        for number in (0, 200, 398):
            app.transcript.remove_entry(entries[number])
            app.transcript.remove_entry(entries[number])
        await until(pilot, lambda: "line 398" not in mounted(app))
        assert len(app.transcript) == 397
        assert rows(app)[-1].strip() == "line 399"


async def test_clearing() -> None:
    async with hosted() as (app, pilot):
        fill(app.transcript, 300)
        await sees(pilot, "line 299")
        await scrolled(app, pilot, -50)
        app.transcript.clear()
        await until(pilot, lambda: not app.transcript.children)
        fill(app.transcript, 1)
        await sees(pilot, "line 0")
        assert app.transcript.at_end


async def test_a_widget_in_place_of_a_function_is_shown_once() -> None:
    async with hosted() as (app, pilot):
        app.transcript.add(NoticeLine("only once"))
        fill(app.transcript, 10)
        await sees(pilot, "only once")
        fill(app.transcript, 500, 10)
        await sees(pilot, "line 509")
        app.transcript.action_scroll_home()
        assert "only once" not in await sees(pilot, "line 0")


@pytest.mark.long
async def test_scrolling_with_animations() -> None:
    async with hosted() as (app, pilot):
        fill(app.transcript, 1_000)
        await sees(pilot, "line 999")
        for _ in range(30):
            app.transcript.scroll_page_up(animate=True, duration=0.02)
            await asyncio.sleep(0.03)
        await pilot.pause()
        seen = [int(row.split()[1]) for row in rows(app)]
        assert seen == list(range(seen[0], seen[0] + 24))
        assert seen[0] < 600


async def test_moving_from_entry_to_entry() -> None:
    class Stop(NoticeLine, can_focus=True):
        pass

    async with hosted() as (app, pilot):
        transcript = app.transcript
        for number in range(4):
            make = Stop if number % 2 else NoticeLine
            transcript.add(partial(make, f"line {number}"))
        await sees(pilot, "line 3")

        def focused() -> str:
            widget: Widget | None = app.focused
            return str(widget.render()) if isinstance(widget, Static) else ""

        assert transcript.move(-1)
        await pilot.pause()
        assert focused() == "line 3"
        await pilot.press("up")
        assert focused() == "line 1"
        await pilot.press("down")
        assert focused() == "line 3"
        assert not transcript.move(1)
