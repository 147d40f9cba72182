"""Cards, steps, plan and messages: what they show in each state, and how they open."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from deepagent.agent.events import (
    CompactionDone,
    CompactionStarted,
    CompactionTakenBack,
    Noticed,
    Offloading,
    TodosChanged,
    ToolOutput,
    ToolStarted,
    Trimmed,
)
from deepagent.cli.tui.cards import ToolCard
from deepagent.cli.tui.diffs import LIMIT, diff_rows
from deepagent.cli.tui.lines import Lines, Row
from deepagent.cli.tui.steps import StepLine
from deepagent.context.entries import Todo
from pydantic import JsonValue
from textual.geometry import Offset
from textual.selection import Selection
from transcript_host import (
    Host,
    answered,
    call,
    compacted,
    finished,
    gauge,
    hosted,
    rows,
    screen,
    sees,
    started,
    until,
    widgets,
)

READ = call("read_file", path="src/billing/invoice.py")
TESTS = call("execute", command="pytest -x")
LOG = call("execute", command="git log -p")


def line_of(app: Host, text: str) -> str:
    return next(row.strip() for row in rows(app) if text in row)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (finished(READ, summary="412 lines"), "● read_file  src/billing/invoice.py  412 lines"),
        (finished(READ, "x " * 2_000, summary="9 lines"), "9 lines · ~1.3k tokens"),
        (finished(LOG, pointer=True, summary="exit 0", exit_code=0), "◐ $ git log -p  exit 0 · 7.2k tokens → pointer"),
        (finished(call("grep", pattern="Invoice(", path="src"), summary="31 hits"), '● grep  "Invoice("  src  31 hits'),
        (finished(READ, "none", summary="not there", error=True), "✗ read_file  src/billing/invoice.py  not there"),
        (finished(TESTS, "F", summary="exit 1", exit_code=1, seconds=14.2), "✗ $ pytest -x  exit 1"),
        (finished(TESTS, "", summary="ended by signal 9", signal=9), "✗ $ pytest -x  ended by signal 9"),
        (finished(TESTS, "", summary="interrupted", error=True), "✗ $ pytest -x  interrupted"),
        (finished(call("mcp__x", query="[b]"), summary="fine"), "● mcp__x  [b]  fine"),
        (finished(TESTS, summary="exit 0", seconds=125), "2 min 05 s"),
    ],
)  # fmt: skip
async def test_the_line_of_a_card(event: object, line: str) -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(event)  # pyright: ignore[reportArgumentType]  # events of one union
        assert line in await sees(pilot, line)


async def test_the_time_stands_at_the_right() -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(finished(READ, summary="412 lines", seconds=0.04))
        app.presenter.show(finished(call("read_file", "d", path="p/" * 90), summary="a summary", seconds=14.2))
        await sees(pilot, "14.2 s")
        assert [row[-7:] for row in rows(app)] == ["  0.0 s", " 14.2 s"]
        assert "a summary" in rows(app)[1]
        assert "…" in rows(app)[1]


async def test_states_are_classes() -> None:
    async with hosted() as (app, pilot):
        presenter = app.presenter
        presenter.show(answered("", TESTS))
        await until(pilot, lambda: app.query("ToolCard.-pending"))
        presenter.show(ToolStarted(call=TESTS))
        await until(pilot, lambda: app.query("ToolCard.-running"))
        presenter.show(finished(TESTS, summary="exit 0"))
        await until(pilot, lambda: app.query("ToolCard.-done"))
        assert not app.query("ToolCard.-running, ToolCard.-pending")


async def test_output_while_it_runs() -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(ToolStarted(call=TESTS))
        for number in range(2_000):
            app.presenter.show(ToolOutput(call_id="c", data=b"\x1b[32mline %d\x1b[0m\r\n" % number))
        text = await sees(pilot, "line 1999")
        assert [row.strip(" ▏") for row in text.split("\n")][1:] == [f"line {n}" for n in range(1_995, 2_000)]
        app.presenter.show(finished(TESTS, "all of it", summary="exit 0"))
        await until(pilot, lambda: "line 1999" not in "\n".join(rows(app)))
        assert "all of it" not in "\n".join(rows(app))


async def test_a_running_card_counts_seconds_and_then_rests() -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(ToolStarted(call=TESTS))
        await sees(pilot, "0 s")
        await sees(pilot, "1 s")
        app.presenter.show(finished(TESTS, seconds=1.2))
        await sees(pilot, "1.2 s")
        card = app.query_one(ToolCard)
        assert card._clock is None


async def test_what_is_fine_is_folded_and_opens() -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(finished(READ, "one\ntwo\nthree", summary="3 lines"))
        await sees(pilot, "3 lines")
        assert len(rows(app)) == 1
        await pilot.click("Head")
        assert (await sees(pilot, "three")).count("\n") == 3
        app.query_one(ToolCard).focus()
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: len(rows(app)) == 1)


async def test_a_failure_shows_its_first_lines() -> None:
    async with hosted((80, 60)) as (app, pilot):
        text = "\n".join(f"problem {number}" for number in range(50))
        app.presenter.show(finished(READ, text, summary="bad", error=True))
        seen = await sees(pilot, "problem 11", "… 38 lines, Ctrl+O")
        assert "problem 12" not in seen
        app.transcript.toggle_fold()
        await sees(pilot, "problem 49")
        app.transcript.toggle_fold()
        await until(pilot, lambda: "problem 12" not in "\n".join(rows(app)))


async def test_a_failed_command_shows_its_last_lines() -> None:
    async with hosted((80, 60)) as (app, pilot):
        text = "\n".join(f"line {number}" for number in range(50))
        app.presenter.show(finished(TESTS, text, summary="exit 1", exit_code=1))
        seen = await sees(pilot, "line 49", "… 38 lines, Ctrl+O")
        assert "line 37" not in seen


async def test_an_edit_opens_to_its_diff() -> None:
    edit = call("edit_file", path="a.py", old_string="one\ntwo\nthree", new_string="one\n2\nthree")
    async with hosted() as (app, pilot):
        app.presenter.show(finished(edit, "a.py was changed", summary="+1 −1"))
        await sees(pilot, "+1 −1")
        app.transcript.toggle_fold()
        await sees(pilot, "  one", "- two", "+ 2", "  three")


def test_diffs() -> None:
    def of(old: str, new: str, **more: bool) -> list[str]:
        return [row.text for row in diff_rows("edit_file", {"old_string": old, "new_string": new, **more})]

    assert of("a", "b") == ["- a", "+ b"]
    assert of("a", "a\n") == ["  a", "+ "]
    assert of("x", "y", replace_all=True) == ["everywhere in the file:", "- x", "+ y"]
    far = "\n".join(map(str, range(40)))
    assert of(far, far.replace("\n3\n", "\nthree\n").replace("\n33\n", "\nthirty\n")).count("  …") == 1
    everywhere: JsonValue = {"old_string": "c", "new_string": "", "replace_all": True}
    arguments: dict[str, JsonValue] = {"edits": [{"old_string": "a", "new_string": "b"}, everywhere, 7]}
    rows = [row.text for row in diff_rows("edit_file", arguments)]
    assert rows == ["- a", "+ b", "everywhere in the file:", "- c", "+ "]
    assert [row.text for row in diff_rows("write_file", {"content": "a\nb\n"})] == ["+ a", "+ b"]
    assert diff_rows("read_file", {"path": "x"}) == []
    assert diff_rows("edit_file", {"old_string": 1, "new_string": "x"}) == []


@pytest.mark.long
def test_diffs_are_bounded() -> None:
    many = "\n".join(["same"] * 100_000)
    began = time.process_time()
    capped = diff_rows("edit_file", {"old_string": many, "new_string": many + "\nx"})
    assert time.process_time() - began < 2
    assert len(capped) == LIMIT + 1
    assert capped[-1].text == "… 199,801 lines not shown"


@pytest.mark.long
async def test_ten_thousand_lines_are_fast() -> None:
    async with hosted() as (app, pilot):
        began = time.process_time()
        app.transcript.add(lambda: Lines(Row(f"[word_{number}]") for number in range(10_000)))
        await sees(pilot, "[word_9999]")
        assert time.process_time() - began < 0.5


async def test_long_lines_are_wrapped_and_can_be_selected() -> None:
    async with hosted((20, 10)) as (app, pilot):
        lines = Lines([Row("first"), Row("日本語" * 5 + "x"), Row("last")])
        app.transcript.add(lines)
        await sees(pilot, "last")
        assert [row.strip() for row in rows(app)] == ["first", "日本語日本語日本語", "日本語日本語x", "last"]
        app.screen.selections = {lines: Selection(Offset(2, 0), Offset(3, 1))}
        await pilot.pause()
        assert app.screen.get_selected_text() == "rst\n日本語"
        assert lines.get_selection(Selection(None, None)) == ("first\n" + "日本語" * 5 + "x\nlast", "\n")


async def test_a_drag_over_wrapped_lines_selects_what_is_under_it() -> None:
    async with hosted((20, 10)) as (app, pilot):
        lines = Lines([Row("0123456789abcdefghijklmno")])
        app.transcript.add(lines)
        await sees(pilot, "0123456789abcdefgh")
        await pilot.mouse_down(lines, offset=(4, 0))
        await pilot.hover(lines, offset=(2, 1))
        await pilot.mouse_up(lines, offset=(2, 1))
        await pilot.pause()
        assert app.screen.get_selected_text() == "456789abcdefghijk"


async def test_thinking_is_one_line_that_opens() -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(answered("So.", thinking="because " * 200))
        await sees(pilot, "thought 1.6k characters", "So.")
        assert "because" not in "\n".join(rows(app))
        app.transcript.toggle_fold()
        await sees(pilot, "because because")


async def test_a_long_message_shows_its_beginning() -> None:
    async with hosted((80, 60)) as (app, pilot):
        app.presenter.show(started("\n".join(f"line {number}" for number in range(100))))
        seen = await sees(pilot, "❯ line 0", "line 19", "… 80 more lines, Ctrl+O")
        assert "line 20" not in seen
        app.transcript.toggle_fold()
        await sees(pilot, "line 99")


async def test_the_plan_is_one_list_at_its_newest_place() -> None:
    async with hosted() as (app, pilot):
        for done in range(4):
            states = ["completed"] * done + ["in_progress"] + ["pending"] * 3
            items = tuple(Todo(text=f"step {n}", status=s) for n, s in enumerate(states[:3]))  # pyright: ignore[reportArgumentType]
            app.presenter.show(TodosChanged(items=items))
            app.presenter.show(Noticed(text=f"note {done}"))
            if done == 1:
                await sees(pilot, "Plan 1/3", "✓ step 0", "▸ step 1", "· step 2")
        seen = await sees(pilot, "note 3")
        assert seen.count("Plan") == 1
        assert "Plan 3/3" in seen
        assert seen.index("Plan") > seen.index("note 2")


async def test_a_compaction_is_a_line_that_opens() -> None:
    async with hosted((110, 40)) as (app, pilot):
        show = app.presenter.show
        show(gauge())
        show(started("the first wish", "u1"))
        show(finished(READ, id="t1"))
        show(started("the second wish", "u2"))
        show(CompactionStarted(messages=34))
        await sees(pilot, "compacting 34 messages… 0 s · Esc stops it with nothing changed")
        show(CompactionDone(entry=compacted("u2", "u1", summary="What was done."), archive="/w/a.md", seconds=6))
        show(gauge(23_000, cost=1.07))
        line = "── compaction 1 · 171k → 23k tokens (86 → 12 %) · 2/2 requests kept · 6 s $0.07 · Enter opens ──"
        seen = await sees(pilot, line)
        assert "compacting" not in seen
        app.query_one(StepLine).focus()
        await pilot.pause()
        await pilot.press("enter")
        await sees(
            pilot, "❯ the first wish", "❯ the second wish", "What was done.", "/w/a.md", "files changed: changed.py"
        )
        await pilot.press("u")
        await until(pilot, lambda: app.heard)
        assert vars(app.heard[0])["compaction_id"] == "k"


async def test_what_the_summary_had_lost_is_told() -> None:
    async with hosted() as (app, pilot):
        entry = replace(compacted("u2"), reattached=("the port is 8123",))
        app.presenter.show(CompactionDone(entry=entry, archive="", seconds=1))
        await sees(pilot, "compaction 1")
        app.query_one(StepLine).focus()
        await pilot.pause()
        await pilot.press("enter")
        await sees(pilot, "Kept from the earlier summary, which this one had lost", "- the port is 8123")


async def test_a_compaction_takes_cards_out_of_the_view_and_gives_them_back() -> None:
    async with hosted() as (app, pilot):
        show = app.presenter.show
        for number in range(3):
            show(answered("", call("read_file", f"c{number}", path=f"f{number}"), id=f"a{number}"))
            show(finished(call("read_file", f"c{number}", path=f"f{number}"), id=f"t{number}", pointer=number == 0))
        show(CompactionDone(entry=compacted("a1", id="k1"), archive="", seconds=1))
        await sees(pilot, "○ read_file  f0", "● read_file  f1")
        show(CompactionDone(entry=compacted("t2", id="k2"), archive="", seconds=1))
        await sees(pilot, "○ read_file  f1", "● read_file  f2", "compaction 2")
        show(CompactionTakenBack(compaction="k2"))
        seen = await sees(pilot, "○ read_file  f0", "● read_file  f1", "compaction 2, taken back")
        assert "archived" in seen
        show(CompactionTakenBack(compaction="k1"))
        await sees(pilot, "◐ read_file  f0", "● read_file  f1")


async def test_only_the_newest_compaction_can_be_taken_back() -> None:
    async with hosted() as (app, pilot):
        for name in ("k1", "k2"):
            app.presenter.show(CompactionDone(entry=compacted(None, id=name), archive="", seconds=1))
        await sees(pilot, "compaction 2")
        first, second = app.query(StepLine)
        first.action_undo()
        second.action_undo()
        await until(pilot, lambda: app.heard)
        assert [vars(message)["compaction_id"] for message in app.heard] == ["k2"]
        app.presenter.show(CompactionTakenBack(compaction="k2"))
        await pilot.pause()
        first.action_undo()
        second.action_undo()
        await until(pilot, lambda: len(app.heard) == 2)
        assert vars(app.heard[1])["compaction_id"] == "k1"


async def test_a_compaction_that_was_stopped_leaves_nothing() -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(CompactionStarted(messages=3))
        await sees(pilot, "compacting 3 messages")
        app.presenter.show(gauge())
        await until(pilot, lambda: not rows(app))


async def test_steps_without_a_model_have_quiet_lines() -> None:
    async with hosted() as (app, pilot):
        show = app.presenter.show
        show(Trimmed(stubs=9, results=("t0",), tokens_saved=38_000))
        for number in range(2):
            show(finished(call("read_file", f"c{number}", path=f"f{number}"), id=f"t{number}", summary="9 lines"))
        for number in range(2):
            show(Offloading(path="p", tokens=5_000, shown_tokens=400, message=f"t{number}"))
        show(gauge())
        await sees(
            pilot,
            "── freed 38k · 1 result → a pointer, 9 arguments → stubs · no model call ──",
            "── freed 9.2k · 2 results → pointers · no model call ──",
            "◐ read_file  f0  9 lines · → pointer",
            "◐ read_file  f1  9 lines · → pointer",
        )


async def test_a_result_that_is_new_needs_no_line_for_its_pointer() -> None:
    async with hosted() as (app, pilot):
        app.presenter.show(Offloading(path="p", tokens=5_000, shown_tokens=400, message="t"))
        app.presenter.show(finished(READ, pointer=True))
        assert "freed" not in await sees(pilot, "◐ read_file")


@pytest.mark.parametrize(("count", "at_top"), [(3, False), (100, True)])
async def test_an_opened_card_is_seen_from_its_beginning(count: int, at_top: bool) -> None:
    """It stays where it is if all of it can be seen there."""
    async with hosted() as (app, pilot):
        for number in range(30):
            one = call("read_file", f"c{number}", path=f"f{number}")
            app.presenter.show(finished(one, "\n".join(["row"] * count), id=f"t{number}"))
        await sees(pilot, "f29")
        at = next(at for at, row in enumerate(screen(app)) if "f15" in row)
        await pilot.click(offset=(5, at))
        at = 0 if at_top else at
        await until(pilot, lambda: "f15" in screen(app)[at] and "row" in screen(app)[at + 3])
        await pilot.click(offset=(5, at))
        await until(pilot, lambda: "row" not in "\n".join(rows(app)))
        app.presenter.show(Noticed(text="the newest"))
        await sees(pilot, "the newest")


async def test_nothing_moves_while_nothing_happens() -> None:
    """An idle screen has no timers of ours."""
    async with hosted() as (app, pilot):
        app.presenter.show(started("hi"))
        app.presenter.show(answered("Hello.", READ, thinking="hm"))
        app.presenter.show(finished(READ))
        await sees(pilot, "● read_file")
        await asyncio.sleep(0.6)
        assert not any(timer._interval < 60 for widget in app.transcript.query("*") for timer in widget._timers)
        assert len(widgets(app, "AnswerText")) == 1
