"""A guard against a model that goes round in circles: the same failing call, or known calls with known results."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from ...context.messages import ToolCall
from ..tool import Tool, ToolResult
from .base import Middleware, RunState, RunStopped, ToolHandler

FAILURES = 3
"""In how many answers a call may fail with the same arguments."""
KNOWN = 2
"""How often a call may bring the same result before the next time counts as no progress."""
IDLE = 3
"""How many calls in a row may bring no progress."""


class Guard(Middleware):
    """Ends the run, before its next model call, when the model repeats itself.

    Work that goes on is left alone: a change of a file or a command with a new output makes everything new again.
    """

    def __init__(self) -> None:
        self._failed: dict[str, set[int]] = {}
        """Calls that failed, and in which of the run's answers."""
        self._results: Counter[bytes] = Counter()
        """How often each call brought each result."""
        self._idle = 0
        self._stop: RunStopped | None = None

    async def before_agent(self, run: RunState) -> None:
        self._failed.clear()
        self._results.clear()
        self._idle, self._stop = 0, None

    async def before_model(self, run: RunState) -> None:
        if self._stop is not None:
            raise self._stop

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        result = await handle(call)
        key = json.dumps([call.name, dict(call.arguments), call.error], sort_keys=True)
        self._note_progress(key, call, tool, result)
        if result.is_error:
            self._note_failure(key, call, result, run.turns)
        else:
            self._failed.pop(key, None)
        return result

    def _note_progress(self, key: str, call: ToolCall, tool: Tool | None, result: ToolResult) -> None:
        digest = hashlib.sha256(f"{key}\n{result.text}".encode("utf-8", "replace")).digest()
        if self._results[digest] == 0 and tool is not None and tool.access in ("write", "execute"):
            self._results.clear()
        self._results[digest] += 1
        self._idle = self._idle + 1 if self._results[digest] > KNOWN else 0
        if self._idle >= IDLE:
            text = f"the model goes round in circles: {call.name} was called again and again with the same result"
            self._stop = RunStopped("error", text, kind="repeated_call")

    def _note_failure(self, key: str, call: ToolCall, result: ToolResult, turn: int) -> None:
        turns = self._failed.setdefault(key, set())
        turns.add(turn)
        if len(turns) >= FAILURES:
            line = " ".join(result.text.split())[:200]
            text = f"{call.name} failed {FAILURES} times with the same arguments: {line}"
            self._stop = RunStopped("error", text, kind="repeated_failure")
