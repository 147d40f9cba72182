"""Sessions, help, and texts to scroll in."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import time
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.workspace import Workspace, find_workspace
from deepagent.cli import tui
from deepagent.cli.slash import SLASH
from deepagent.cli.tui.help_screen import HelpScreen
from deepagent.cli.tui.keys import KEYS
from deepagent.cli.tui.lines import Lines
from deepagent.cli.tui.list_screen import ListScreen
from deepagent.cli.tui.sessions_screen import SessionsScreen
from deepagent.context.entries import Ended
from deepagent.context.messages import Text, UserMessage, new_id, timestamp
from deepagent.context.session import Session
from screens_host import HOSTILE, LITERAL, SIZES, Host, assert_harmless, lines, settle, showing, text
from textual.widget import Widget


@pytest.fixture
def place(workspace: Path) -> Workspace:
    """A workspace without sessions."""
    return find_workspace(workspace, environ=os.environ)


def add_session(place: Workspace, title: str, ended: str | None = "success") -> str:
    """A session in which one thing was asked."""
    session = Session.start(place.storage(), workspace=str(place.root), cwd=str(place.cwd))
    session.say(UserMessage(id=new_id(), time=timestamp(), content=(Text(text=title),)))
    if ended is not None:
        session.append(Ended(**session.header(), reason=ended))
    session.close()
    return session.id


@pytest.mark.parametrize("size", SIZES)
async def test_sessions_stand_newest_first_in_columns(place: Workspace, size: tuple[int, int]) -> None:
    ids = [add_session(place, "first thing"), add_session(place, "second thing", ended=None)]
    async with showing(SessionsScreen(place), size) as (app, pilot):
        shown = lines(app)
        assert "2 in this workspace" in shown[0]
        head = next(line for line in shown if "size" in line)
        first, second = (next(line for line in shown if title in line) for title in ("second thing", "first thing"))
        assert shown.index(first) < shown.index(second)
        assert first.index("killed") == second.index("done") == head.index("ended")
        assert first.index("just now") + len("just now") == head.index("last") + len("last")
        assert re.search(r"just now +1 +\d+ B +killed$", first)
        await pilot.press("down", "enter")
        assert app.results == [ids[0]]


async def test_typing_filters_and_enter_picks_what_is_left(place: Workspace) -> None:
    wanted = add_session(place, "Fix the ROUNDING of invoices")
    for number in range(5):
        add_session(place, f"other {number}")
    async with showing(SessionsScreen(place)) as (app, pilot):
        await pilot.press(*"rounding fix")
        await pilot.pause()
        assert "1 of 6 fit" in lines(app)[0]
        assert "other" not in "\n".join(lines(app)[4:])
        await pilot.press("enter")
        assert app.results == [wanted]
    async with showing(SessionsScreen(place)) as (app, pilot):
        await pilot.press(*wanted[:16])
        await pilot.pause()
        assert "fit" in lines(app)[0] or "6 in this workspace" in lines(app)[0], "an id's beginning finds it too"
        await pilot.press(*"zzz", "enter")
        assert "0 of 6 fit" in lines(app)[0]
        assert not app.results, "where nothing fits, Enter picks nothing"
        await pilot.press("escape")
        assert app.results == [None]


async def test_no_session_and_the_one_that_is_open(place: Workspace) -> None:
    async with showing(SessionsScreen(place)) as (app, pilot):
        assert "There is none in this workspace yet." in text(app)
        await pilot.press("enter", "down", "escape")
        assert app.results == [None]
    here, other = (Session.start(place.storage(), workspace="/w", cwd="/w") for _ in range(2))
    for session in (here, other):
        note = UserMessage(id=new_id(), time=timestamp(), content=(Text(text="a note"),), synthetic=True)
        session.say(note)
    try:
        async with showing(SessionsScreen(place, current=here.id)) as (app, _):
            assert "open here" in text(app)
            assert "open now" in text(app)
            assert text(app).count("(nothing asked)") == 2
    finally:
        here.close()
        other.close()


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_titles_are_shown_as_they_are(place: Workspace, size: tuple[int, int]) -> None:
    add_session(place, HOSTILE, ended=HOSTILE)
    async with showing(SessionsScreen(place), size) as (app, pilot):
        assert LITERAL[: size[0] // 4] in text(app)
        assert_harmless(app)
        await pilot.press(*"[=x")
        await pilot.pause()
        assert "1 in this workspace" in lines(app)[0]


@pytest.mark.long
async def test_five_hundred_sessions_are_quick(place: Workspace) -> None:
    one = add_session(place, "number 0")
    folder = place.mirror / "sessions"
    log = (folder / f"{one}.jsonl").read_bytes()
    for number in range(1, 500):
        (folder / f"20250101-000000-{number:04}.jsonl").write_bytes(log.replace(b"number 0", b"number %d" % number))
    start = time.perf_counter()
    async with showing(SessionsScreen(place)) as (app, pilot):
        assert "500 in this workspace" in lines(app)[0]
        assert time.perf_counter() - start < 4
        start = time.perf_counter()
        await pilot.press("end", *"number 49", "pagedown")
        await pilot.pause()
        assert "15 of 500 fit" in lines(app)[0]
        assert time.perf_counter() - start < 3


@pytest.mark.parametrize("size", SIZES)
async def test_help_shows_every_key_and_command(size: tuple[int, int]) -> None:
    async with showing(HelpScreen(), size) as (app, pilot):
        seen = text(app)
        for _ in range(4):
            await pilot.press("pagedown")
            await pilot.pause()
            seen += text(app)
        assert all(key in seen for key, _ in KEYS)
        for slash in SLASH:
            assert f"/{slash.name} {slash.argument}".rstrip() in seen
            assert all(f"/{alias}" in seen for alias in slash.aliases)
        await pilot.press("escape")
        assert app.results == [None]


DIFF = """\
diff --git a/x b/x
index 1..2 100644
--- a/x
+++ b/x
@@ -1,4 +1,4 @@ [/b]
 same
--- a removed line that began with dashes
-old [bold]
+new [=x,y]
\\ No newline at end of file
diff --git a/y b/y
new file mode 100644

Untracked files:
  -strange [/
  +name""".split("\n")


async def test_a_diff_is_coloured_by_what_its_lines_are() -> None:
    async with showing(ListScreen("Changes", DIFF, diff=True)) as (app, _):
        kinds = {row.text: row.kind for row in app.screen.query_one(Lines)._rows}
        assert [line for line, kind in kinds.items() if kind == "added"] == ["+new [=x,y]"]
        assert [line for line, kind in kinds.items() if kind == "removed"] == [DIFF[6], "-old [bold]"]
        assert [line for line, kind in kinds.items() if kind == "plain"] == [" same", "", *DIFF[-3:]]
        assert all(line in text(app) for line in DIFF)
        assert "16 lines" in lines(app)[0]
        added = _style_of(app, "+new")
        assert added != _style_of(app, "-old") != _style_of(app, " same")


def _style_of(app: Host, word: str) -> object:
    """The style of a line's first word."""
    strips = app.screen._compositor.render_strips()
    strip = next(strip for strip in strips if word in strip.text)
    return next(segment.style.color for segment in strip if word in segment.text and segment.style)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.long
async def test_a_text_of_megabytes_scrolls_and_hostile_lines_stay_text(size: tuple[int, int]) -> None:
    body = [f"{HOSTILE if number % 20 == 0 else 'plain text'} {number}" for number in range(40_001)]
    start = time.perf_counter()
    async with showing(ListScreen(HOSTILE, body), size) as (app, pilot):
        assert time.perf_counter() - start < 5
        assert LITERAL in text(app)
        assert_harmless(app)
        await pilot.press("pagedown", "end")
        await settle(pilot)
        assert f"{LITERAL[:20]}" in text(app)
        assert "40000" in text(app)
        assert "40,001 lines" in lines(app)[0]
        await pilot.press("q")
        assert app.results == [None]


async def test_a_small_screen_is_no_trouble() -> None:
    screens: list[Any] = [HelpScreen(), ListScreen("t", DIFF, diff=True)]
    for screen in screens:
        async with showing(screen, (20, 5)) as (app, pilot):
            await pilot.resize_terminal(1, 1)
            await pilot.resize_terminal(80, 24)
            await settle(pilot)
            assert len(text(app).split()) > 10


def test_every_widget_has_a_name_of_its_own() -> None:
    """Styles go by the names of classes: two widgets of one name would get each other's."""
    widgets: dict[str, set[str]] = {}
    for module in pkgutil.iter_modules(tui.__path__, f"{tui.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, type) and issubclass(value, Widget) and value.__module__.startswith(tui.__name__):
                widgets.setdefault(name, set()).add(value.__module__)
    assert len(widgets) > 20
    assert not {name: modules for name, modules in widgets.items() if len(modules) > 1}
