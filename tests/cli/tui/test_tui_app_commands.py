"""Every slash command on the whole screen, as it is typed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deepagent.agent.model import catalog
from deepagent.cli.slash import SLASH
from deepagent.cli.tui.actions import Actions
from tui_stage import Json, Screen, call, entries_of, git, model_server, on_screen, read, script, write

pytestmark = pytest.mark.usefixtures("workspace")

WAITS = {"calls": [call("execute", command="until [ -e go ]; do sleep 0.02; done")]}
YOLO: dict[str, Any] = {"flags": {"permissions.mode": "yolo"}}
ROW = re.compile(r"^\s*(?:[▸▾] )?(\S.*?)\s{2,}(−?[\d,]+)\s+(−?\d+\.\d)", re.MULTILINE)
"""A row of `/context`: name, tokens, per cent."""


def number(text: str) -> int:
    """A number as the screen writes it."""
    return int(text.replace(",", "").replace("−", "-"))


def talk(turns: int = 3) -> list[Json]:
    """Answers of some length, and steps to go on with."""
    return [{"text": f"Answer {turn}. " + "Some words more. " * 40} for turn in range(turns)]


def gauge_is_right(screen: Screen) -> bool:
    """Whether the footer says what the agent says."""
    return screen.app.footer.gauge == screen.agent.gauge()


async def test_every_command_has_its_test() -> None:
    files = Path(__file__).parent.glob("test_tui_app_*.py")
    names = [name for file in files for name in re.findall(r"^async def test_(\w+)", file.read_text(), re.MULTILINE)]
    tested = {word for name in names for word in name.split("_")}
    assert {slash.name for slash in SLASH} <= tested


async def test_doctor() -> None:
    async with on_screen(*talk()) as screen:
        await screen.say("/doctor")
        await screen.sees("Doctor", "✓ deepagent", "✓ model", "! sandbox", "none: it is switched off")
        await screen.pilot.press("escape")


async def test_compact_and_the_gauge() -> None:
    async with on_screen(*talk()) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        before = screen.agent.gauge().used
        await screen.run("/compact_conversation")
        await screen.sees("── compaction 1 · ", "3/3 requests kept")
        assert screen.agent.gauge().used < before
        assert gauge_is_right(screen)
        assert screen.entries[-1].kind == "compacted"


async def test_compact_with_a_focus_and_undo() -> None:
    text = "## SESSION INTENT\nTo count.\n\n## SUMMARY\nThe tests in a.py.\n\n## NEXT STEPS\nCount on."
    summary = {"expect": [{"contains": "the tests in a.py"}], "text": text}
    async with on_screen(*talk(), more={"summaries": [summary]}) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        before = screen.agent.gauge().used
        await screen.run("/compact the tests in a.py")
        await screen.sees("compaction 1")
        assert [entry.by for entry in screen.entries if entry.kind == "compacted"] == ["model"]
        await screen.run("/compact undo")
        await screen.sees("compaction 1, taken back")
        assert screen.agent.gauge().used == before
        assert gauge_is_right(screen)
        await screen.run("/compact undo")
        await screen.sees("there is no compaction to take back")


async def test_a_compaction_opens_to_its_summary_and_can_be_taken_back_there() -> None:
    summary = "## SESSION INTENT\nTo count.\n\n## SUMMARY\nWe counted to three.\n\n## NEXT STEPS\nCount on."
    async with on_screen(*talk(), size=(100, 40), more={"summaries": [summary]}) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        await screen.run("/compact")
        await screen.press("tab")
        await screen.press("enter")
        await screen.sees("We counted to three.", "❯ one", "❯ two", "u takes it back")
        await screen.press("u")
        await screen.settle()
        assert screen.entries[-1].kind == "compaction_undone"
        assert gauge_is_right(screen)


async def test_escape_stops_a_compaction_with_nothing_changed() -> None:
    async with on_screen(*talk(), more={"summaries": [{"text": "Summary.", "delay": 30}]}) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        before = screen.agent.gauge()
        await screen.say("/compact")
        await screen.sees("Esc stops it with nothing changed")
        await screen.write("a draft")
        await screen.press("escape")
        await screen.settle()
        assert screen.agent.gauge() == before
        assert "compact" not in {entry.kind for entry in screen.entries}
        assert "Esc stops it" not in screen.text
        assert screen.app.prompt.text == "a draft"


async def test_what_is_sent_during_a_compaction_is_sent_after_it() -> None:
    summaries = [{"text": "## SUMMARY\nShort.", "delay": 0.5}]
    async with on_screen(*talk(4), more={"summaries": summaries}) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        await screen.say("/compact")
        await screen.sees("Esc stops it")
        await screen.say("four")
        assert "↳ queued: four" in screen.text
        await screen.settle()
        await screen.sees("❯ four", "Answer 3.")
        kinds = [entry.kind for entry in screen.entries]
        assert kinds.index("compacted") < max(at for at, kind in enumerate(kinds) if kind == "message")


async def test_context_adds_up_to_the_gauge() -> None:
    write("a.txt", "some text\n" * 200)
    steps = [{"text": "I read.", "calls": [call("read_file", path="a.txt")]}, {"text": "Read."}]
    async with on_screen(*steps, size=(100, 40), more={"usage": "estimate"}) as screen:
        await screen.run("read a.txt")
        used = screen.agent.gauge().used
        await screen.say("/context")
        await screen.sees("Together")
        rows = {name: number(tokens) for name, tokens, _ in ROW.findall(screen.text)}
        assert rows.pop("Together") == sum(rows.values()) == used
        assert {name.split(",")[0] for name in rows} >= {"System prompt", "Tools", "Files read", "Answers and calls"}
        assert f"{used:,} of 32,000 tokens" in screen.text
        await screen.press("escape")
        assert gauge_is_right(screen)


async def test_context_at_once_during_a_run() -> None:
    async with on_screen(WAITS, {"text": "Done."}, **YOLO) as screen:
        await screen.say("begin")
        await screen.until(lambda: screen.widgets("ToolCard"))
        await screen.say("/context")
        await screen.sees("Together")
        await screen.press("escape")
        await screen.say("/help")
        await screen.sees("Keys")
        await screen.press("escape")
        await screen.say("/clear")
        await screen.sees("/clear waits until the run has ended; Esc stops it")
        write("go", "")
        await screen.settle()
        await screen.sees("Done.")


async def test_clear_begins_a_new_session() -> None:
    async with on_screen(*talk()) as screen:
        fresh = screen.app.footer.gauge
        await screen.run("one")
        first = screen.agent.session.id
        assert screen.app.footer.gauge != fresh
        await screen.run("/clear")
        assert "Answer 0." not in screen.text
        assert screen.agent.session.id != first
        assert screen.app.footer.gauge == fresh
        assert [entry.kind for entry in entries_of(first)][-1] == "ended"
        await screen.run("again")
        assert "Answer 0." in screen.text


async def test_model_changes_in_the_same_session() -> None:
    async with on_screen(*talk(), more={"usage": "estimate"}) as screen:
        await screen.run("one")
        session = screen.agent.session.id
        await screen.run("/model")
        await screen.sees("script-0.json", "window 32,000 (user). /model NAME changes it")
        other = script(Path.cwd(), {}, {"text": "I am the other one."})
        await screen.run(f"/model {other}")
        assert screen.agent.session.id == session
        assert "script-1.json" in screen.app.footer.model
        assert gauge_is_right(screen)
        assert "Answer 0." in screen.text
        await screen.run("and you?")
        await screen.sees("I am the other one.")
        assert [message.role for message in screen.messages] == ["user", "assistant"] * 2


async def test_a_model_with_a_smaller_window_is_asked_about_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(_: str) -> SimpleNamespace:
        return SimpleNamespace(max_input=2_000)

    summary = "## SESSION INTENT\nTo count.\n\n## SUMMARY\nWe counted.\n\n## NEXT STEPS\nCount on."
    more = {"summaries": [summary]}
    async with on_screen(*talk(), flags={"context.window": None}, more=more) as screen:
        monkeypatch.setattr(catalog, "model_info", small)
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        other = script(Path.cwd(), {}, {"text": "I am the other one."})
        await screen.say(f"/model {other}")
        await screen.sees("Change to script-1.json?", "tokens are in use, and its window has 2.0k", "compact now, with")
        await screen.press("escape")
        assert "script-0.json" in screen.app.footer.model
        await screen.say(f"/model {other}")
        await screen.sees("Change to script-1.json?")
        await screen.press("c")
        await screen.sees("── compaction 1 · ")
        await screen.until(lambda: "script-1.json" in screen.app.footer.model)
        await screen.say(f"/model scripted:{Path.cwd().parent}/script-0.json")
        await screen.sees("Change to script-0.json?")
        await screen.press("s")
        await screen.until(lambda: "script-0.json" in screen.app.footer.model)


async def test_a_model_that_cannot_be_opened_leaves_the_session_as_it_is() -> None:
    async with on_screen(*talk()) as screen:
        await screen.run("one")
        await screen.run("/model scripted:/nowhere.json")
        await screen.sees("/nowhere.json cannot be read")
        await screen.run("two")
        await screen.sees("Answer 1.")
        assert [message.role for message in screen.messages] == ["user", "assistant"] * 2


async def test_login_changes_the_model() -> None:
    async with on_screen(*talk()) as screen:
        await screen.run("one")
        session = screen.agent.session.id
        await screen.say("/login")
        await screen.sees("Which model?", "1 paste an API key", "demo")
        await screen.press("escape")
        await screen.settle()
        assert "Which model?" not in screen.text
        with model_server({"text": "Yes."}, {"text": "From the server."}) as server:
            await screen.say("/login")
            await screen.sees("Which model?", "another URL")
            await screen.press("end", "up", "enter")
            await screen.sees("A server that speaks OpenAI")
            for value in (server.url, "some-model", ""):
                await screen.say(value)
            await screen.until(lambda: screen.app.footer.model == "some-model")
            await screen.settle()
            assert screen.agent.session.id == session
            assert "Answer 0." in screen.text
            await screen.run("two")
            await screen.sees("From the server.")


async def test_resume_and_sessions_pick_an_earlier_session() -> None:
    async with on_screen(*talk()) as screen:
        await screen.run("the first one")
        first = screen.agent.session.id
        await screen.run("/clear")
        await screen.run("the second one")
        await screen.say("/sessions")
        await screen.sees("Sessions", "2 in this workspace", "the first one", "the second one", "open here")
        await screen.press("escape")
        await screen.say("/resume")
        await screen.sees("2 in this workspace")
        await screen.write("first")
        await screen.sees("1 of 2 fit")
        await screen.press("enter")
        await screen.until(lambda: screen.app.conversation.agent and screen.agent.session.id == first)
        await screen.settle()
        assert "❯ the first one" in screen.text
        assert "the second one" not in screen.text
        assert gauge_is_right(screen)
        await screen.run("and on")
        assert "Answer 1." in screen.text


async def test_resume_by_id_and_one_that_is_not_there() -> None:
    async with on_screen(*talk()) as screen:
        await screen.run("the first one")
        first = screen.agent.session.id
        await screen.run("/clear")
        await screen.run(f"/resume {first}")
        assert "❯ the first one" in screen.text
        await screen.run("/resume 19990101-000000-aaaa")
        await screen.sees("19990101-000000-aaaa")
        await screen.run("still here")
        assert "Answer 1." in screen.text


async def test_skills_and_memory() -> None:
    skill = "---\nname: release-notes\ndescription: Writes [b]notes[/b].\n---\nWrite.\n"
    write(".deepagents/skills/release-notes/SKILL.md", skill)
    write("AGENTS.md", "Use tabs.\n")
    async with on_screen() as screen:
        await screen.say("/skills")
        await screen.sees("Skills", "release-notes", "Writes [b]notes[/b].")
        await screen.press("escape")
        await screen.say("/memory")
        await screen.sees("Memory", " AGENTS.md  10 bytes")
        await screen.press("q")
        assert screen.app.prompt.text == ""


async def test_mode() -> None:
    async with on_screen({"calls": [call("write_file", path="a", content="x")]}, {"text": "No."}) as screen:
        await screen.say("/mode nonsense")
        await screen.sees("The mode is default. /mode takes default, accept-edits, plan, yolo")
        await screen.say("/mode plan")
        await screen.sees(" plan ⇧Tab")
        await screen.run("write")
        assert read("a") is None


async def test_diff() -> None:
    async with on_screen() as screen:
        await screen.say("/diff worktree")
        await screen.sees("This is no git repository")
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    write("a.txt", "[/b] one\n")
    git("add", "a.txt")
    async with on_screen() as screen:
        await screen.say("/diff")
        await screen.sees("Uncommitted changes", "+[/b] one")


async def test_copy() -> None:
    async with on_screen({"text": "**Copied** as it came."}) as screen:
        await screen.say("/copy")
        await screen.sees("There is no answer yet")
        await screen.run("one")
        await screen.say("/copy")
        await screen.sees("The last answer is in the clipboard")
        assert screen.app.clipboard == "**Copied** as it came."


async def test_export_as_json() -> None:
    async with on_screen(*talk(), more={"usage": "estimate"}) as screen:
        for prompt in ("one", "two", "three"):
            await screen.run(prompt)
        await screen.run("/compact --no-model")
        await screen.say("/export talk.json")
        await screen.sees("Written:")
        data = json.loads(read("talk.json") or "")
        assert data["session"] == screen.agent.session.id
        assert [message["role"] for message in data["messages"]] == ["user", "assistant"] * 3
        assert data["messages"][0]["content"][0]["text"] == "one"
        assert data["usage"]["output"] > 0
        assert len(data["compactions"]) == 1


async def test_export() -> None:
    async with on_screen(*talk()) as screen:
        await screen.run("one")
        await screen.say("/export talk.md")
        await screen.sees("Written: ")
        text = read("talk.md") or ""
        assert "one" in text
        assert "Answer 0." in text
        await screen.say("/export talk.md")
        await screen.sees("Not written: talk.md: File exists")
        await screen.say("/export")
        await screen.until(lambda: read(f"deepagent-{screen.agent.session.id}.md"))


@pytest.mark.parametrize("command", ["/quit", "/exit"])
async def test_quit(command: str) -> None:
    async with on_screen() as screen:
        await screen.say(command)
        assert screen.app._exit


async def test_help_lists_every_command() -> None:
    async with on_screen(size=(100, 60)) as screen:
        await screen.say("/help")
        for slash in SLASH:
            await screen.sees(f"/{slash.name}", slash.help[:40])
        assert set(Actions(screen.app)._table) == {slash.name for slash in SLASH}


async def test_a_command_that_does_not_exist_is_not_sent() -> None:
    async with on_screen({"text": "A path, I see."}) as screen:
        await screen.say("/compcat")
        await screen.sees("There is no command /compcat")
        assert screen.app.prompt.text == "/compcat"
        await screen.press("ctrl+u")
        await screen.run("/usr/lib is a path")
        assert "A path, I see." in screen.text
