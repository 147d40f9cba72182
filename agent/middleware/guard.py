"""A guard against a model that repeats the same failing call again and again."""

from __future__ import annotations

import json
from collections import Counter

from ...context.messages import ToolCall
from ..tool import Tool, ToolResult
from .base import Middleware, RunState, RunStopped, ToolHandler

FAILURES = 3
"""How often a call may fail with the same arguments."""


class Guard(Middleware):
    """Ends the run, before its next model call, when one call has failed the same way three times."""

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._stop: str | None = None

    async def before_agent(self, run: RunState) -> None:
        self._failures.clear()
        self._stop = None

    async def before_model(self, run: RunState) -> None:
        if self._stop is not None:
            raise RunStopped("error", self._stop, kind="repeated_failure")

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        result = await handle(call)
        key = json.dumps([call.name, dict(call.arguments), call.error], sort_keys=True)
        if not result.is_error:
            self._failures.pop(key, None)
            return result
        self._failures[key] += 1
        if self._failures[key] >= FAILURES:
            line = " ".join(result.text.split())[:200]
            self._stop = f"{call.name} failed {FAILURES} times with the same arguments: {line}"
        return result
