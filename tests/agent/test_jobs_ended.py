"""What the model is told of commands in the background that have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deepagent.context.messages import UserMessage, text_of
from stage import Stage

Make = Callable[..., Stage]


def step(tool: str, **arguments: object) -> Mapping[str, Any]:
    return {"calls": [{"name": tool, "arguments": arguments}]}


SERVER = step("execute", command="echo ready; while [ ! -e stop ]; do sleep 0.02; done; exit 7", background=True)


def notes(play: Stage) -> list[str]:
    return [text_of(m) for m in play.logged() if isinstance(m, UserMessage) and m.synthetic]


async def test_the_end_is_told_once_before_the_next_request(stage: Make) -> None:
    more = step("execute", command="touch stop; sleep 0.5")
    play = stage(SERVER, step("ls", path="."), more, step("ls", path="."), {"text": "Seen."})
    assert (await play.run())[-1] == "ended success: Seen."
    (note,) = notes(play)
    told = "job 1 ended with exit code 7"
    assert told in note
    assert "while [ ! -e stop ]" in note
    assert [told in str(request.messages) for request in play.requests] == [False, False, False, True, True]


async def test_what_the_tool_has_shown_is_not_told_again(stage: Make) -> None:
    play = stage(SERVER, step("jobs", id="1", end=True), step("ls", path="."), {"text": "Ended."})
    assert (await play.run())[-1] == "ended success: Ended."
    assert notes(play) == []
