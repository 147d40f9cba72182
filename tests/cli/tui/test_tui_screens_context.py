"""`/context`: rows that add up, in columns, that open and close."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.events import Gauge
from deepagent.cli.opening import Opener
from deepagent.cli.options import RunOptions
from deepagent.cli.tui.context_screen import ContextFigures, ContextScreen, figures_of
from deepagent.cli.tui.rows import ChoiceList
from deepagent.context.accounting import Account, Row
from rich.cells import cell_len
from screens_host import HOSTILE, LITERAL, SIZES, assert_harmless, lines, showing, text

WINDOW = 200_000


def figures(*rows: Row, used: int | None = None, **more: Any) -> ContextFigures:
    """Figures with these rows and a remainder."""
    counted = sum(row.tokens for row in rows)
    total = counted + 3_290 if used is None else used
    rest = Row(name="Remainder (reported − counted)", tokens=total - counted)
    gauge = Gauge(
        used=total, source="reported", window=WINDOW, window_source="table", budget=184_000, trigger=170_000, cost=1.31
    )
    account = Account(used=total, source="reported", rows=(*rows, rest))
    made = ContextFigures(account=account, gauge=gauge, model="anthropic/claude-x", exact=True, reported="2 min ago")
    return replace(made, **more)


def row(name: str, *parts: tuple[str, int], tokens: int = 0, note: str = "") -> Row:
    """A row that its parts add up to."""
    inner = tuple(Row(name=part, tokens=size) for part, size in parts)
    return Row(name=name, tokens=tokens or sum(size for _, size in parts), parts=inner, note=note)


ROWS = (
    row("System prompt", ("base", 1_212), ("planning", 400)),
    row("Memory", tokens=1_108),
    row("Files read, 14", ("src/a.py", 31_430), ("src/b.py", 9_870)),
    row("Answers and calls", tokens=16_016, note="reasoning 6,156"),
)


def numbers(line: str) -> tuple[int, float]:
    """Tokens and share at the end of a line."""
    found = re.search(r"([−\d,]+) +([−\d.]+)(?:  +(?:counted|estimated))?$", line)
    assert found, line
    return int(found[1].replace(",", "").replace("−", "-")), float(found[2].replace("−", "-"))


@pytest.mark.parametrize("size", SIZES)
async def test_rows_add_up_and_their_columns_are_aligned(size: tuple[int, int]) -> None:
    async with showing(ContextScreen(lambda: figures(*ROWS)), size) as (app, _):
        shown = lines(app)
        start = next(at for at, line in enumerate(shown) if "tokens      %  how" in line)
        together = next(at for at, line in enumerate(shown) if "Together" in line)
        rows = [numbers(line) for line in shown[start + 1 : together]]
        assert len(rows) == len(ROWS) + 1
        assert sum(tokens for tokens, _ in rows) == numbers(shown[together])[0]
        assert sum(share for _, share in rows) == pytest.approx(numbers(shown[together])[1], abs=0.3)
        assert f"{numbers(shown[together])[0]:,} of 200,000 tokens" in shown[0]
        ends = {line.rindex(share := f"{numbers(line)[1]:.1f}") + len(share) for line in shown[start + 1 : together]}
        assert ends == {shown[start].index("%") + 1}
        assert {line.index("counted", 40) for line in shown[start + 1 : together - 1]} == {shown[start].index("how")}


@pytest.mark.parametrize("size", SIZES)
async def test_the_head_says_how_it_is_known_and_where_compaction_starts(size: tuple[int, int]) -> None:
    async with showing(ContextScreen(lambda: figures(*ROWS, cached=0.97, growth=4_300)), size) as (app, _):
        shown = text(app)
        for said in ("reported 2 min ago", "claude-x", "cache hit 97%", "$1.31", "compacts at 170,000 (85%)"):
            assert said in shown
        used = sum(one.tokens for one in ROWS) + 3_290
        assert f"{170_000 - used:,} until compaction, about {(170_000 - used) // 4_300} turns of 4,300" in shown
        assert "16,000 kept for the" in shown
        bar = next(line for line in lines(app) if line.startswith(" ["))
        inside = bar[bar.index("[") + 1 : bar.index("]")]
        assert inside.count("█") == pytest.approx(used / WINDOW * len(inside), abs=1)
        assert inside.index("│") == int(0.85 * len(inside))


async def test_rows_open_and_close_and_the_cursor_stays() -> None:
    async with showing(ContextScreen(lambda: figures(*ROWS))) as (app, pilot):
        choices = app.screen.query_one(ChoiceList)
        assert "src/a.py" not in text(app)
        await pilot.press("down", "down", "enter")
        assert choices.highlighted == 2
        shown = lines(app)
        at = next(at for at, line in enumerate(shown) if "▾ Files read" in line)
        assert numbers(shown[at])[0] == numbers(shown[at + 1])[0] + numbers(shown[at + 2])[0]
        await pilot.press("down", "down", "left")
        assert "src/a.py" not in text(app)
        assert choices.highlighted == 2, "closing from a part goes to its row"
        await pilot.press("right", "enter")
        assert "src/a.py" not in text(app), "Enter closes what is open"
        await pilot.press("up", "enter", "right", "end", "enter", "right", "left")
        assert "▾" not in text(app), "a row without parts, and the sum, do not open"


async def test_many_parts_scroll_and_what_is_left_out_is_one_line_that_adds_up() -> None:
    parts = [(f"$ command {number}", 10) for number in range(1_000)]
    async with showing(ContextScreen(lambda: figures(row("Results, 1000", *parts)))) as (app, pilot):
        await pilot.press("enter", "end", "up", "up")
        shown = text(app)
        assert re.search(r"800 more +8,000", shown)
        assert "$ command 199" in shown
        assert "$ command 200" not in shown
        assert "Esc back" in shown


async def test_estimates_and_a_full_window_say_so() -> None:
    over = figures(*ROWS, row("Results, 1", tokens=120_000), exact=False)
    over = replace(over, account=replace(over.account, source="estimated"))
    async with showing(ContextScreen(lambda: over)) as (app, _):
        shown = text(app)
        assert "estimated" in lines(app)[0]
        assert shown.count("estimated") >= len(ROWS)
        assert "counted" not in shown.replace("reported − counted", "")
        assert f"none, {over.account.used - 170_000:,} over: the next request compacts first" in shown
    async with showing(ContextScreen(lambda: figures(*ROWS, automatic=False))) as (app, _):
        assert "automatic compaction is off" in text(app)


async def test_a_negative_remainder_still_adds_up() -> None:
    used = sum(one.tokens for one in ROWS) - 1_234
    async with showing(ContextScreen(lambda: figures(*ROWS, used=used))) as (app, _):
        rest = next(line for line in lines(app) if "Remainder" in line)
        assert numbers(rest)[0] == -1_234


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_names_are_shown_as_they_are(size: tuple[int, int]) -> None:
    bad = row(HOSTILE, (f"$ {HOSTILE}\nsecond", 5), (f"{HOSTILE} 2", 6), note=HOSTILE)
    async with showing(ContextScreen(lambda: figures(bad, model=HOSTILE)), size) as (app, pilot):
        await pilot.press("enter")
        assert_harmless(app)
        shown = lines(app)
        assert len([line for line in shown if LITERAL in line]) >= 3
        rows = [line for line in shown if LITERAL in line and line.endswith("counted")]
        assert len(rows) == 3
        assert len({cell_len(line) for line in rows}) == 1, "wide characters do not shift the columns"


async def test_escape_goes_back_and_a_small_screen_is_no_trouble() -> None:
    async with showing(ContextScreen(lambda: figures(*ROWS)), (20, 5)) as (app, pilot):
        await pilot.resize_terminal(1, 1)
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert "System prompt" in text(app)
        await pilot.press("escape")
        assert app.results == [None]


async def test_the_figures_of_an_agent(workspace: Path) -> None:
    """What a real agent gives: the rows of its account, counted, after some turns."""
    script = workspace / "script.yaml"
    script.write_text("usage: estimate\nsteps: [{text: hi, repeat: 3}]")
    agent = Opener(RunOptions(flags={"model": f"scripted:{script}"})).open().agent
    assert agent
    try:
        for _ in range(3):
            await agent.ainvoke("say hi " * 50)
        found = figures_of(agent)()
        assert found.exact
        assert found.account.used == agent.gauge().used
        assert sum(one.tokens for one in found.account.rows) == found.account.used
        assert (found.account.source, found.reported, found.cached) == ("reported", "just now", 0)
        assert found.growth > 0
        async with showing(ContextScreen(figures_of(agent)), (100, 40)) as (app, _):
            assert f"{found.account.used:,} of" in text(app)
            assert "Your messages, 3" in text(app)
    finally:
        await agent.aclose()
