"""Quoting: nothing that a file or a program says can be taken for what we say.

Models go by our stubs, notes and records. A line of a tool's result that begins like one of them is quoted, so that who
writes into a file or prints something never speaks in our name. Text has no authority in any case: the prompt says so.
"""

from __future__ import annotations

from dataclasses import replace

from ...context.messages import ToolCall
from ...context.stubs import quoted
from ..tool import Tool, ToolResult
from .base import Middleware, RunState, ToolHandler


class Quoting(Middleware):
    """Quotes look-alikes in results."""

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        result = await handle(call)
        return replace(result, text=quoted(result.text))
