"""What the states of results say is what the requests hold, before and after each step of the ladder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from deepagent.agent.events import Event
from deepagent.context.messages import ToolMessage, text_of
from deepagent.context.presence import Presence, presence
from stage import Stage

Make = Callable[..., Stage]
_WORDS = 700


def reads(*names: str) -> dict[str, Any]:
    return {"calls": [{"name": "read_file", "arguments": {"path": name}} for name in names]}


def text_in(name: str, words: int = _WORDS) -> str:
    return "".join(f"{name}{number:05} " + ("\n" if number % 8 == 7 else "") for number in range(words))


def states(play: Stage) -> dict[str, Presence]:
    """By the file that was read."""
    session = play.agent.session
    found = presence(session.view, session.messages())
    return {
        str(message.log.get("path", "big")).rpartition("/")[2]: found[message.call_id]
        for message in session.messages()
        if isinstance(message, ToolMessage)
    }


async def checked(play: Stage) -> dict[str, Presence]:
    """The states, after another request has shown that they are true: of what is whole every word is sent, of what is
    a pointer some are not, of what is archived none of its last words is."""
    before = states(play)
    await play.run("go on")
    sent = "\n".join(text_of(m) for m in play.requests[-1].messages if isinstance(m, ToolMessage))
    for name, state in before.items():
        words = 9_000 if name == "big" else _WORDS
        middle, last = (f"{name}{number:05}" in sent for number in (words // 2, words - 1))
        assert (middle and last) == (state == "whole"), (name, state)
        assert state != "archived" or not (middle or last), (name, state)
    return before


async def done(events: Any) -> list[Event]:
    async with aclosing(events) as stream:
        return [event async for event in stream]


async def test_states_are_what_is_sent(stage: Make) -> None:
    summary = "## SESSION INTENT\nTo read.\n\n## SUMMARY\nFiles were read.\n\n## NEXT STEPS\nGo on."
    play = stage(
        reads("a", "b"),
        {"calls": [{"name": "execute", "arguments": {"command": "cat big"}}]},
        {"text": "Read.", "repeat": 99},
        settings={"context": {"window": 60_000, "auto_compact": False}},
        script={"summaries": [summary, summary]},
    )
    for name in ("a", "b"):
        (play.folder / name).write_text(text_in(name))
    (play.folder / "big").write_text(text_in("big", 9_000))
    await play.run("read")
    control = play.agent.control
    assert await checked(play) == {"a": "whole", "b": "whole", "big": "pointer"}
    call = next(m for m in play.logged() if isinstance(m, ToolMessage) and m.log.get("path") == "a")
    control.drop(call.id)
    assert (await checked(play))["a"] == "pointer"
    control.restore(call.id)
    assert (await checked(play))["a"] == "whole"
    await done(play.agent.compact())
    assert (await checked(play))["a"] == "archived"
    await done(play.agent.undo_compaction())
    assert (await checked(play))["a"] == "whole"
    play.agent._ladder.trim()
    assert "pointer" in (await checked(play)).values()
