"""The start of the screen: what the first frame says, what fills in, and that nothing moves or breaks by it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from deepagent import __version__
from deepagent.cli.last_session import LastSession
from deepagent.cli.overview import Load, Overview
from deepagent.cli.tui.start import StartPanel
from screens_host import HOSTILE, LITERAL, SIZES, Host, assert_harmless, lines, settle, text

LAST = LastSession(
    id="20261130-100000-abcd",
    title="split billing out of core",
    ago="14 h ago",
    ended="stopped inside turn 64 (killed)",
    todos_done=4,
    todos=7,
    compactions=2,
    cost=1.92,
    sends=118_000,
    sends_cost=0.44,
)
WHOLE = Overview(
    folder="~/src/shop",
    git="main +3 ~2",
    trusted=True,
    sandbox="sandbox bubblewrap, network asks",
    model="anthropic/claude-x",
    window="window 200k (table)",
    price="per million $3 in, 0.30 cached, 15 out",
    used=3_912,
    loaded=(
        Load(name="prompt", tokens=1_212),
        Load(name="10 tools", tokens=1_900),
        Load(name="AGENTS.md", tokens=500),
        Load(name="margin", tokens=300),
    ),
    notices=("skills/deploy/SKILL.md:3: has no description; not loaded",),
    last=LAST,
)


def at(app: Host, word: str) -> int:
    """The line on which something stands."""
    return next(number for number, line in enumerate(lines(app)) if word in line)


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_frame_knows_the_place_and_nothing_moves_when_the_rest_comes(
    size: tuple[int, int], isolated: Path
) -> None:
    panel = StartPanel(isolated / "src" / "shop")
    app = Host(panel)
    async with app.run_test(size=size) as pilot:
        assert f"deepagent {__version__}  ~/src/shop" in lines(app)[0]
        before = {word: at(app, word) for word in ("Model", "Loaded")}
        panel.show(replace(WHOLE, model="m", price="", loaded=WHOLE.loaded[:1]))
        await settle(pilot)
        assert {word: at(app, word) for word in before} == before
        panel.show(WHOLE)
        await settle(pilot)
        assert f"deepagent {__version__}  ~/src/shop  main +3 ~2" in lines(app)[0]
        told = "trusted · sandbox bubblewrap"
        assert lines(app)[0].endswith(told if size[0] == 80 else f"{told}, network asks")
        assert at(app, "Model") == before["Model"]
        assert len([line for line in lines(app) if line]) <= 18


@pytest.mark.parametrize("size", SIZES)
async def test_everything_is_said_in_columns(size: tuple[int, int]) -> None:
    panel = StartPanel()
    app = Host(panel)
    async with app.run_test(size=size) as pilot:
        panel.show(WHOLE)
        await settle(pilot)
        said = " ".join(text(app).split())
        for words in (
            "anthropic/claude-x · window 200k (table)",
            "per million $3 in, 0.30 cached, 15 out",
            "~3.9k tokens · prompt 1.2k · 10 tools 1.9k",
            "AGENTS.md 500",
            "margin 300",
            "skills/deploy/SKILL.md:3: has no description; not loaded",
            "“split billing out of core” · 14 h ago",
            "stopped inside turn 64 (killed)",
            "todo 4/7 · 2 compactions · $1.92",
            "going on sends ~118k tokens ($0.44)",
            "Enter on the empty line: continue · type: new session",
        ):
            assert words in said, words
        column = lines(app)[at(app, "Model")].index("anthropic")
        for word, value in (("Loaded", "~3.9k"), ("Notice", "skills"), ("Last", "“split")):
            assert lines(app)[at(app, word)].index(value) == column
        for word, command in (("Model", "/model"), ("Loaded", "/context"), ("Last", "/resume")):
            assert lines(app)[at(app, word)].endswith(command)
            assert len(lines(app)[at(app, word)]) == size[0]


async def test_what_is_not_there_is_not_spoken_of() -> None:
    panel = StartPanel()
    app = Host(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.show(Overview(folder="/srv", model="m", window="window 8k (set)", used=10))
        await settle(pilot)
        shown = text(app)
        assert lines(app)[0].endswith("not trusted")
        for word in ("Notice", "Last", "todo", "None", "·  ·", "$"):
            assert word not in shown
        assert panel.offered is None
        plain = replace(LAST, todos=0, compactions=0, cost=None, sends_cost=None, ended="done")
        panel.show(replace(WHOLE, last=plain))
        await settle(pilot)
        assert "todo" not in text(app)
        assert "compaction" not in text(app)
        assert "($" not in text(app)


async def test_the_last_session_is_offered_until_something_else_begins() -> None:
    panel = StartPanel()
    panel.show(WHOLE)  # before it is mounted
    app = Host(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert panel.offered == LAST.id
        assert "Enter on the empty line" in text(app)
        panel.withdraw_offer()
        await settle(pilot)
        assert panel.offered is None
        assert "Enter on the empty line" not in text(app)
        assert "split billing" not in text(app)
        panel.show(WHOLE)
        await settle(pilot)
        assert panel.offered is None, "what was withdrawn does not come back by itself"


async def test_many_notices_are_cut_and_counted() -> None:
    panel = StartPanel()
    app = Host(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.show(replace(WHOLE, notices=tuple(f"notice {number}\nsecond" for number in range(9))))
        await settle(pilot)
        assert "notice 3 second" in text(app)
        assert "notice 4" not in text(app)
        assert "and 5 more" in text(app)


@pytest.mark.parametrize("size", [*SIZES, (30, 12)])
async def test_hostile_text_in_every_place_is_shown_as_it_is(size: tuple[int, int]) -> None:
    texts: dict[str, Any] = {f.name: HOSTILE for f in fields(Overview) if f.type == "str"}
    bad = {f.name: HOSTILE for f in fields(LastSession) if f.type == "str"}
    panel = StartPanel()
    app = Host(panel)
    async with app.run_test(size=size) as pilot:
        loaded = (Load(name=HOSTILE, tokens=3), Load(name="rest", tokens=-3))
        panel.show(Overview(**texts, loaded=loaded, notices=(HOSTILE,), last=replace(LAST, **bad)))
        await settle(pilot)
        assert_harmless(app)
        if size[0] > 30:
            assert LITERAL in text(app)
            assert "rest −3" in text(app)


async def test_a_long_folder_keeps_its_end() -> None:
    panel = StartPanel(Path("/very/long/path/that/goes/on/and/on/through/many/folders/until/it/ends/here"))
    app = Host(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.show(replace(WHOLE, folder="/very/long/path/that/goes/on/and/on/through/many/folders/until/it/ends/here"))
        await settle(pilot)
        assert "…/" in lines(app)[0]
        assert "/ends/here  main +3 ~2" in lines(app)[0]
        assert lines(app)[0].endswith("trusted")
        await pilot.resize_terminal(24, 8)
        await pilot.resize_terminal(1, 1)
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert "/ends/here  main +3 ~2" in lines(app)[0]


def test_what_the_first_frame_needs_loads_nothing_of_the_agent() -> None:
    code = (
        "import sys, deepagent.cli.tui.start, deepagent.cli.tui.keys\n"
        "heavy = ('pydantic', 'httpx', 'git', 'yaml', 'litellm', 'tiktoken', 'deepagent.agent', 'deepagent.context')\n"
        "print([n for n in sys.modules if n in heavy or n.startswith(('deepagent.agent.', 'deepagent.context.'))])"
    )
    done = subprocess.run((sys.executable, "-c", code), check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


async def test_a_long_title_is_cut_so_that_its_line_is_one() -> None:
    panel = StartPanel()
    app = Host(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.show(replace(WHOLE, last=replace(LAST, title="split billing out of core and " * 2, ended="done")))
        await settle(pilot)
        line = lines(app)[at(app, "Last")]
        assert "“split billing out of core" in line
        assert "…” · 14 h ago · done" in line
        assert line.endswith("/resume")
