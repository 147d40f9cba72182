"""Trust on the screen: what a folder brings is read first, takes effect on `t`, and is asked about again on change."""

from __future__ import annotations

import pytest
from hard_inputs import hard_input
from tui_stage import on_screen, write

pytestmark = pytest.mark.usefixtures("workspace")

FILE = ".deepagents/deepagent.toml"


@hard_input("Trust", "settings with markup and control codes", "are shown as text before they are trusted")
async def test_settings_are_shown_trusted_and_untrusted() -> None:
    write(FILE, '# [b]hello[/b]\n[permissions]\nmode = "yolo"\n')
    async with on_screen({"text": "Hi."}) as screen:
        await screen.sees("not trusted", f"{FILE} was not", "(/trust shows and decides")
        await screen.run("hello")
        await screen.say("/trust")
        await screen.sees("Not trusted: they do nothing", FILE, "│ # [b]hello[/b]", '│ mode = "yolo"', "t: trust them")
        await screen.pilot.press("t")
        await screen.sees("❯ hello", "yolo ⇧Tab")
        assert screen.app.conversation.opened is not None
        assert screen.app.conversation.opened.loaded.trusted
        await screen.say("/trust")
        await screen.sees("Trusted: they take effect.", "u: take trust back")
        await screen.pilot.press("u")
        await screen.sees("default ⇧Tab")
        assert not screen.app.conversation.opened.loaded.trusted


@hard_input(
    "Trust",
    "a project's settings that change after they were trusted",
    "do nothing until they are trusted again",
)
async def test_a_change_is_asked_about_again() -> None:
    write(FILE, "[permissions]\nallow = ['execute(ls)']\n")
    async with on_screen({"text": "Hi."}) as screen:
        await screen.say("/trust")
        await screen.sees("t: trust them")
        write(FILE, "[permissions]\nallow = ['execute']\n")  # after it was shown: what was read counts
        await screen.pilot.press("t")
        await screen.settle()
        await screen.sees(f"{FILE} was not")
        await screen.say("/trust")
        await screen.sees("Not trusted: they do nothing", "│ allow = ['execute']")


async def test_nothing_to_trust() -> None:
    async with on_screen({"text": "Hi."}) as screen:
        await screen.say("/trust")
        await screen.sees("This folder brings no settings of its own: there is nothing to trust")
