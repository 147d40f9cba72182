"""Commands that the user runs beside the talk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from deepagent.agent.events import Event, ToolFinished, ToolOutput, ToolStarted
from deepagent.agent.replay import events_of
from deepagent.context.messages import UserMessage, text_of
from stage import Stage

Make = Callable[..., Stage]


async def by_user(play: Stage, command: str, *, keep: bool = True) -> list[Event]:
    async with aclosing(play.agent.run_command(command, keep=keep)) as events:
        return [event async for event in events]


async def test_the_model_is_told_with_its_next_request(stage: Make) -> None:
    play = stage({"text": "First."}, {"text": "Seen."})
    await play.run("hello")
    started, *_, finished = await by_user(play, "echo from me; exit 3")
    assert isinstance(started, ToolStarted)
    assert isinstance(finished, ToolFinished)
    assert started.call.id == finished.call.id
    assert finished.summary == "exit 3 · from me"
    assert text_of(finished.message).startswith("from me\n[exit code 3")
    before = play.requests[-1].messages
    assert (await play.run("and now?"))[-1] == "ended success: Seen."
    request = play.requests[-1].messages
    assert request[: len(before)] == before
    told = request[-2]
    assert isinstance(told, UserMessage)
    assert text_of(told).startswith("The user ran this command beside our talk, and it said:\n$ echo from me; exit 3\n")
    assert "[exit code 3" in text_of(told)
    assert [text_of(m) for m in play.agent.session.requests()] == ["hello", "and now?"]


async def test_it_may_come_first_and_is_shown_again_after_a_resume(stage: Make) -> None:
    play = stage({"text": "Seen."})
    await by_user(play, "echo early")
    assert (await play.run("hello"))[-1] == "ended success: Seen."
    (shown,) = [event for event in events_of(play.entries()) if isinstance(event, ToolFinished)]
    assert shown.call.arguments == {"command": "echo early"}
    assert text_of(shown.message).startswith("early\n")


async def test_what_is_not_kept_is_told_to_nobody(stage: Make) -> None:
    play = stage({"text": "Hello."})
    events = await by_user(play, "echo secret-thing", keep=False)
    assert any(isinstance(event, ToolOutput) for event in events)
    await play.run("hello")
    assert "secret-thing" not in str(play.requests[-1].messages)
    assert "secret-thing" not in str(play.entries())


async def test_long_output_is_in_a_file_and_secrets_are_masked(stage: Make) -> None:
    play = stage({"text": "Hello."}, environ={"OPENAI_API_KEY": "sk-very-secret-key-1234"})
    await by_user(play, "seq 200000; echo sk-very-secret-key-1234")
    await play.run("hello")
    (told,) = [m for m in play.requests[-1].messages if isinstance(m, UserMessage) and m.shell]
    assert "large_tool_results/" in text_of(told)
    assert len(text_of(told)) < 10_000
    await by_user(play, "echo sk-very-secret-key-1234")
    assert "sk-very-secret" not in str(play.entries())


async def test_stopped_it_ends_with_all_that_it_started(stage: Make, tmp_path: Path) -> None:
    play = stage({"text": "Hello."})
    running = asyncio.ensure_future(by_user(play, f"echo $$ > {tmp_path}/pid; sleep 300 | cat"))
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text().strip()):  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    play.agent.interrupt()
    finished = (await running)[-1]
    assert isinstance(finished, ToolFinished)
    assert finished.summary == "interrupted"
    assert pid.read_text().strip() not in os.listdir("/proc")  # noqa: PTH208
    await play.run("hello")
    assert "(the user stopped it)" in str(play.requests[-1].messages)
