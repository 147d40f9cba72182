"""Masking: known secret values leave a tool's result before model, log and archive see it, and no mask is written."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from ...context.messages import ToolCall
from ..secrets import Masker
from ..tool import Tool, ToolResult
from .base import Middleware, RunState, ToolHandler


class Masking(Middleware):
    """Masks results; the loop masks what people and models write."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        mark = self._mark_in(call) if tool is not None and tool.access == "write" else None
        if mark is not None:
            text = f"Not written: {mark} stands for a secret that you cannot see; writing it would destroy the secret."
            return ToolResult(text=text, summary="would destroy a secret", is_error=True)
        result = await handle(call)
        log = cast(dict[str, JsonValue], self._masker.mask_json(dict(result.log)))
        return replace(result, text=self._masker.mask(result.text), summary=self._masker.mask(result.summary), log=log)

    def _mark_in(self, call: ToolCall) -> str | None:
        """The mark of a secret in what is to be written, or None. What is to be replaced may hold one."""
        texts = (value for name, value in call.arguments.items() if isinstance(value, str) and name != "old_string")
        return next((mark for text in texts if (mark := self._masker.marked(text))), None)
