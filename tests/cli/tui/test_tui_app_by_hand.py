"""The commands with which the user shapes the context and looks up what left it: pin, drop, compact, recall."""

from __future__ import annotations

import pytest
from tui_stage import Json, Screen, call, on_screen, write

pytestmark = pytest.mark.usefixtures("workspace")


def talk(turns: int = 3) -> list[Json]:
    """Answers of some length."""
    return [{"text": f"Answer {turn}. " + "Some words more. " * 40} for turn in range(turns)]


SUMMARY = "## SESSION INTENT\nTo count.\n\n## SUMMARY\nWe counted to three.\n\n## NEXT STEPS\nCount on."


def gauge_is_right(screen: Screen) -> bool:
    """Whether the footer says what the agent says."""
    return screen.app.footer.gauge == screen.agent.gauge()


async def test_pin_and_unpin() -> None:
    async with on_screen(*talk()) as screen:
        await screen.say("/pin never touch [b]legacy[/b]")
        await screen.sees("Pinned: every compaction keeps it word for word; /unpin 1 lets it go")
        await screen.run("one")
        await screen.say("/pin")
        await screen.sees("1  never touch [b]legacy[/b]")
        await screen.run("/compact")
        await screen.sees("── compaction 1 · ")
        await screen.say("/unpin 1")
        await screen.sees("Let go: ")
        await screen.say("/unpin 1")
        await screen.sees("Not done: '1' names no pin")
        assert screen.agent.session.view.pins == ()


async def test_drop_and_restore() -> None:
    write("a.txt", "some words\n" * 300)
    steps = [{"calls": [call("read_file", path="a.txt")]}, {"text": "Read."}]
    async with on_screen(*steps) as screen:
        await screen.run("read it")
        before = screen.agent.gauge().used
        await screen.say("/drop")
        await screen.sees("/drop ID sends one of these out of the view:", "read_file a.txt")
        await screen.say("/drop last")
        await screen.sees("◐ read_file  a.txt", "brings it back")
        assert screen.agent.gauge().used < before - 500
        assert gauge_is_right(screen)
        await screen.say("/restore last")
        await screen.sees("● read_file  a.txt", "It is in the view again")
        assert gauge_is_right(screen)
        await screen.say("/restore zzz")
        await screen.sees("Not done: 'zzz' names no result in the view")


async def test_from_the_preview_it_is_done_with_a_focus_and_without_a_model() -> None:
    summary = {"expect": [{"contains": "pears"}], "text": SUMMARY}
    async with on_screen(*talk(), more={"summaries": [summary]}) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        await screen.say("/compact preview")
        await screen.sees("before it happens")
        await screen.press(*"pears", "left", "right", "enter")
        await screen.sees("── compaction 1 · ")
        await screen.settle()
        await screen.run("/compact undo")
        await screen.say("/compact preview")
        await screen.sees("before it happens")
        await screen.press("ctrl+n")
        await screen.sees("── compaction 2 · ")
        assert [entry.by for entry in screen.entries if entry.kind == "compacted"] == ["model", "harness"]


async def test_compact_is_looked_at_before_it_happens_and_moved() -> None:
    async with on_screen(*talk()) as screen:
        await screen.say("/compact preview")
        await screen.sees("There is nothing older that could leave the view")
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        await screen.say("/compact preview")
        await screen.sees("Compaction  before it happens", "▸ Goes to the archive: ", "A model reads ")
        await screen.press("right")
        await screen.sees("▾ Goes to the archive: ", "❯ one")
        await screen.press("left", "down", "right")
        await screen.sees("▸ Goes to the archive: ", "▾ Stays word for word in the summary: ")
        await screen.press("escape")
        await screen.until(lambda: not screen.app.screen.query("#compaction-rows"))
        assert screen.agent.session.view.head is None
        await screen.say("/compact at 50%")
        await screen.sees("Compaction starts at 50%")
        assert screen.agent.gauge().trigger == 16_000
        await screen.say("/compact at 500%")
        await screen.sees("Not done: compact_at is 5.0")
        await screen.say("/compact at off")
        await screen.sees("does not start by itself any more")
        await screen.run("/compact --no-model")
        await screen.sees("── compaction 1 · ")
        assert [entry.by for entry in screen.entries if entry.kind == "compacted"] == ["harness"]


async def test_recall_and_archive() -> None:
    async with on_screen(*talk()) as screen:
        await screen.say("/archive")
        await screen.sees("Nothing was archived yet")
        await screen.press("escape")
        for prompt in ("the first [b]needle[/b]", "two", "three"):
            await screen.run(prompt)
        await screen.run("/compact")
        await screen.say("/recall needle")
        await screen.sees("Recall: needle", "in all sessions with all the words.", "[b]needle[/b]")
        await screen.press("escape")
        await screen.say("/archive")
        await screen.sees("Archive", screen.agent.session.id, " messages")
        await screen.press("escape")
        await screen.say("/recall")
        await screen.sees("a search needs a query: /recall WORDS")


async def test_jobs_are_listed_looked_at_and_ended() -> None:
    command = "echo '[b]up[/b]'; sleep 69.25"
    steps = [{"calls": [call("execute", command=command, background=True)]}, {"text": "It runs."}]
    async with on_screen(*steps, flags={"permissions.mode": "yolo"}) as screen:
        await screen.say("/jobs")
        await screen.sees("Nothing runs in the background")
        await screen.run("start it")
        await screen.say("/jobs")
        await screen.sees(f"1  {command}", "running for ", "│ [b]up[/b]", ".deepagents/large_tool_results/")
        await screen.pilot.press("escape")
        await screen.say("/jobs end 1")
        await screen.sees("Job 1 ended by signal 15 after ", f" s: {command}")
        await screen.say("/jobs end 7")
        await screen.sees("There is no job 7")
