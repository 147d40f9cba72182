"""Masking: known secret values leave a tool's result before model, log and archive see it."""

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
        result = await handle(call)
        log = cast(dict[str, JsonValue], self._masker.mask_json(dict(result.log)))
        return replace(result, text=self._masker.mask(result.text), summary=self._masker.mask(result.summary), log=log)
