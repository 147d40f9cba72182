"""Jobs that ended: the model learns of it before it is asked again, once for each.

A job whose end the `jobs` tool has shown is not told of again. Running and ending them is `backends.jobs`' business.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ...context.messages import Text, ToolCall, UserMessage, new_id, timestamp
from ..backends.protocol import Backend, BackendError
from ..notes import HEADING
from ..tool import Tool, ToolResult
from ..tools.shell import job_state, jobs, one_line
from .base import Middleware, RunState, ToolHandler

_TEXT = HEADING.format("commands in the background have ended:")


class JobsEnded(Middleware):
    """Tells of commands in the background that have come to their end."""

    def __init__(self, backend: Backend, mask: Callable[[str], str]) -> None:
        self._backend = backend
        self._mask = mask
        self._told: set[str] = set()

    async def before_model(self, run: RunState) -> None:
        if run.session.open_calls():
            return
        lines = await self._news()
        if lines:
            text = self._mask("\n".join((_TEXT, *lines)))
            time = timestamp(run.session.clock)
            run.session.say(UserMessage(id=new_id(), time=time, content=(Text(text=text),), synthetic=True))

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        result = await handle(call)
        if call.name == jobs.name:
            await self._news()
        return result

    async def _news(self) -> list[str]:
        """A line for each job that has ended since the last time."""
        lines: list[str] = []
        with suppress(BackendError):
            for job in await self._backend.jobs():
                if job.state == "ended" and job.id not in self._told:
                    self._told.add(job.id)
                    where = f"; its output is in {job.path}" if job.path else ""
                    lines.append(f"- job {job.id} {job_state(job)}{where}: {one_line(job.command)}")
        return lines
