"""Masking: known secret values leave a tool's result before model, log and archive see it; and no stand-in of ours, a
mask or a stub, is written into a file or run."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from ...context.messages import ToolCall
from ..secrets import Masker
from ..stand_ins import refuse_mask, refuse_stand_in, written_texts
from ..tool import Tool, ToolResult
from .base import Middleware, RunState, ToolHandler


class Masking(Middleware):
    """Masks results; the loop masks what people and models write."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        if tool is not None and tool.access in {"write", "execute"} and (reason := self._refusal(call)):
            return ToolResult(text=reason, summary="refused: a stand-in", is_error=True)
        result = await handle(call)
        log = cast(dict[str, JsonValue], self._masker.mask_json(dict(result.log)))
        return replace(result, text=self._masker.mask(result.text), summary=self._masker.mask(result.summary), log=log)

    def _refusal(self, call: ToolCall) -> str | None:
        """Why the call must not run: a stand-in in what it would write, at any depth."""
        for text in written_texts(dict(call.arguments)):
            if mark := self._masker.marked(text):
                return refuse_mask(mark)
            if reason := refuse_stand_in(text):
                return reason
        return None
