"""● ◐ ○ on the cards are what the view has, after each step that changes it."""

from __future__ import annotations

import pytest
from deepagent.context.presence import presence
from tui_stage import Json, Screen, call, on_screen, write

pytestmark = pytest.mark.usefixtures("workspace")

GLYPHS = {"whole": "●", "pointer": "◐", "archived": "○"}


async def agree(screen: Screen) -> set[str]:
    """The glyphs on the cards, which must be those that the view asks for."""
    await screen.settle()
    session = screen.agent.session
    wanted = {call: GLYPHS[state] for call, state in presence(session.view, session.messages()).items()}
    shown = {id: shown.card.glyph[0] for id, shown in screen.app.presenter._cards.items()}
    assert shown == wanted
    return set(shown.values())


def reads(*names: str) -> Json:
    return {"calls": [call("read_file", path=name) for name in names]}


async def test_they_are_what_the_view_has() -> None:
    for name in "abcd":
        write(name, f"{name} and more words than that\n" * 150)
    big = {"calls": [call("execute", command="seq 1 9000; exit 0")]}
    steps = (reads("a", "b"), big, reads("c"), {"text": "Read."}, {"text": "Again.", "repeat": 99})
    flags = {"permissions.mode": "yolo", "context.window": 60_000, "context.auto_compact": False}
    async with on_screen(*steps, flags=flags) as screen:
        await screen.run("read")
        assert await agree(screen) == {"●", "◐"}
        for command in ("/drop last", "/restore last", "/compact --no-model", "/compact undo"):
            await screen.run("go on")
            await screen.run(command)
            glyphs = await agree(screen)
            assert ("○" in glyphs) == command.startswith("/compact --")
        await screen.run("/compact --no-model")
        await screen.run("and on")
        session = screen.agent.session.id
        await screen.say("/clear")
        await screen.until(lambda: screen.agent.session.id != session)
        await screen.say(f"/resume {session}")
        await screen.until(lambda: screen.agent.session.id == session)
        assert "○" in await agree(screen)
