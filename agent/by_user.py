"""Commands that the user runs beside the talk: shown like the agent's own, and told to the model if that is wished for.

Nobody is asked, and no sandbox holds them: who typed them knows what they do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..context.ladder import Ladder
from ..context.messages import Content, Text, ToolCall, ToolMessage, UserMessage, clean, new_id, timestamp
from .events import Event, ToolFinished, ToolStarted
from .sandbox.bounds import Grant
from .secrets import Masker
from .tool import ToolResult
from .toolbox import Toolbox
from .tools.shell import LONGEST, execute

_STOPPED = ToolResult(text="(the user stopped it)", summary="interrupted", is_error=True)
_TOLD = "The user ran this command beside our talk, and it said:"


_PREFIX = "user-"


def is_by_user(call_id: str) -> bool:
    """Whether a call is one of the user's own."""
    return call_id.startswith(_PREFIX)


def shown_as_call(message: UserMessage) -> tuple[ToolCall, ToolMessage]:
    """A message about such a command as the call and the result that a screen shows."""
    call = ToolCall(id=f"{_PREFIX}{message.id}", name=execute.name, arguments={"command": message.shell or ""})
    content = message.content[1:] or message.content  # all of it may have gone to a file
    return call, ToolMessage(id=message.id, time=message.time, call_id=call.id, tool=execute.name, content=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByUser:
    """Runs them in one session."""

    toolbox: Toolbox
    ladder: Ladder
    masker: Masker
    emit: Callable[[Event], None]

    async def run(self, command: str, *, keep: bool) -> None:
        """Runs one; with `keep` the model is told of it with the next request. Raises `StorageError`."""
        session = self.ladder.session
        message = UserMessage(id=new_id(), time=timestamp(session.clock), content=(), synthetic=True, shell=command)
        call, _ = shown_as_call(message)
        self.emit(ToolStarted(call=call))
        began = time.monotonic()
        try:
            runtime = self.toolbox.runtime(call.id, self.emit, Grant(off=True))
            result = await execute.run({"command": command, "timeout": LONGEST}, runtime)
        except asyncio.CancelledError:
            result = _STOPPED
        message = UserMessage(
            id=message.id,
            time=message.time,
            content=self._content(command, result),
            synthetic=True,
            shell=self.masker.mask(clean(command)),
        )
        if keep:
            message = self.ladder.admit_user(message)
            session.say(message)
            session.sync()
        _, shown = shown_as_call(message)
        self.emit(
            ToolFinished(
                call=call,
                message=replace(shown, is_error=result.is_error, log=result.log),
                summary=result.summary if keep else f"{result.summary} · the model is not told",
                seconds=time.monotonic() - began,
            )
        )

    def _content(self, command: str, result: ToolResult) -> tuple[Content, ...]:
        told = Text(text=self.masker.mask(clean(f"{_TOLD}\n$ {command}")))
        text = Text(text=self.masker.mask(clean(result.text)))
        if result.stored is None:
            return (told, text)
        return (told, self.ladder.offloader.stored(result.stored, execute.name), text)
