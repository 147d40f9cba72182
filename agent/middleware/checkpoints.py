"""Checkpoints around tools: what a call does to files is taken down, so that the user can take it back.

The innermost of all, so nothing but the call itself lies between the looks before and after. Which states are kept,
and how, is the business of `agent.checkpoints`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...context.entries import FilesChanged, MessageLogged
from ...context.messages import Text, ToolCall, UserMessage, new_id, timestamp
from ...context.session import Session
from ..backends.protocol import BackendError
from ..checkpoints.keeper import Before, Keeper
from ..checkpoints.note import files_note
from ..events import Noticed
from ..tool import Tool, ToolResult
from ..undisturbed import undisturbed
from .base import Middleware, RunState, ToolHandler

_FILE = "path"
"""The subject of tools that change one file and nothing else."""


class Checkpoints(Middleware):
    """Looks before and after each call that may change files."""

    def __init__(
        self,
        keeper: Keeper,
        resolve: Callable[[str], str],
        mask: Callable[[str], str],
        *,
        interactive: bool,
        session: Session | None = None,
    ) -> None:
        """`resolve` gives the path that all spellings of it share. It may raise `BackendError`. `interactive`: somebody
        watches, who should know what cannot be undone. `session` takes changes down where it is not the run's own."""
        self._session = session
        self._keeper = keeper
        self._resolve = resolve
        self._mask = mask
        self._interactive = interactive

    async def before_agent(self, run: RunState) -> None:
        """Tells the model of files that the user has put back since it last answered."""
        text = await asyncio.to_thread(files_note, run.session, self._keeper.store, self._mask)
        if text is not None:
            time = timestamp(run.session.clock)
            run.session.say(UserMessage(id=new_id(), time=time, content=(Text(text=text),), synthetic=True))

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        if tool is None or call.error is not None or tool.access not in ("write", "execute"):
            return await handle(call)
        try:
            path = self._path(call, tool)
        except BackendError:
            return await handle(call)  # it fails for the same reason, in the tool's own words
        before = await asyncio.to_thread(self._keeper.before, path)
        try:
            return await handle(call)
        finally:
            if before is not None:
                await undisturbed(self._record(run, call, before))
            news, self._keeper.news = self._keeper.news, []
            for text in news if self._interactive else ():
                run.emit(Noticed(text=text))

    def _path(self, call: ToolCall, tool: Tool) -> str | None:
        """The one file that a call may change; None where it may be any."""
        path = call.arguments.get(_FILE)
        if tool.access == "write" and tool.subject == _FILE and isinstance(path, str):
            return self._resolve(path)
        return None

    async def _record(self, run: RunState, call: ToolCall, before: Before) -> None:
        changes = await asyncio.to_thread(self._keeper.after, before)
        session = self._session or run.session
        kept = await asyncio.to_thread(self._keeper.keep, changes, session.id) if changes else None
        if kept is None:
            return
        session.append(
            FilesChanged(
                **session.header(),
                message=_turn(session),
                call_id=call.id,
                changes=kept,
                files=len(changes.files) + len(changes.left),
            )
        )


def _turn(session: Session) -> str:
    """The newest message of the user's."""
    for entry in reversed(session.live):
        if isinstance(entry, MessageLogged) and isinstance(entry.message, UserMessage) and not entry.message.synthetic:
            return entry.id
    return ""
