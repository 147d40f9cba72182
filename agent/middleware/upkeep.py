"""Upkeep: files of ours that a command took away, as `git clean -fdx` does, are put back when it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...context.messages import ToolCall
from ...context.storage import StorageError
from ..events import Noticed
from ..tool import Tool, ToolResult
from .base import Middleware, RunState, ToolHandler


class Upkeep(Middleware):
    """Looks after each command."""

    def __init__(self, put_back: Callable[[], bool]) -> None:
        """`put_back` says whether something was gone. It may raise `StorageError`."""
        self._put_back = put_back

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        result = await handle(call)
        if tool is not None and tool.access == "execute":
            try:
                if await asyncio.to_thread(self._put_back):
                    run.emit(Noticed(text="a command removed files of this session from the project; they are back"))
            except StorageError as error:
                run.emit(Noticed(text=f"a command removed files of this session, which are not back: {error}"))
        return result
