"""The seam for policies: hooks before the run, around each model call, and around each tool call.

The first middleware of a list is the outermost. A middleware that needs memory keeps it in itself; one instance
serves one agent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from ...context.entries import Usage
from ...context.messages import AssistantMessage, ToolCall
from ...context.session import Session
from ..events import Event, Outcome
from ..model.types import Delta, ModelRequest
from ..sandbox.bounds import Grant
from ..tool import Tool, ToolResult

ModelHandler = Callable[[ModelRequest], AsyncIterator[Delta]]
ToolHandler = Callable[[ToolCall], Awaitable[ToolResult]]
NOTHING = Usage(input=0, output=0)
"""The usage of a call whose provider reported none: what it cost is then not known."""


class RunStopped(Exception):
    """Ends the run, in order: the log stays well formed and the last event says `outcome`."""

    def __init__(self, outcome: Outcome, reason: str, *, kind: str = "stopped") -> None:
        super().__init__(reason)
        self.outcome: Outcome = outcome
        self.kind = kind
        """The word for the JSON output's `error.kind`, where the outcome is `error`."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """What a run has come to; hooks may read it, the loop writes it."""

    session: Session
    emit: Callable[[Event], None]
    turns: int = 0
    """Model calls so far."""
    usage: Usage = NOTHING
    """Tokens so far, summaries included."""
    cost: float | None = 0.0
    """US dollars so far; None once a price was unknown."""
    compactions: int = 0
    denied: bool = False
    """A call was not allowed."""
    grants: dict[str, Grant] = field(default_factory=dict[str, Grant])
    """How calls are confined, by their ids, where not as usual."""

    def add_usage(self, usage: Usage, cost: float | None) -> None:
        """Counts one model call."""
        mine = self.usage
        self.usage = Usage(
            input=mine.input + usage.input,
            output=mine.output + usage.output,
            cache_read=mine.cache_read + usage.cache_read,
            cache_write=mine.cache_write + usage.cache_write,
        )
        self.cost = None if self.cost is None or cost is None else self.cost + cost


class Middleware:
    """Does nothing; override what you need."""

    tools: tuple[Tool, ...] = ()
    """Tools that come with the middleware."""

    async def before_agent(self, run: RunState) -> None:
        """Once, when a prompt was taken."""

    async def before_model(self, run: RunState) -> None:
        """Before each request is made; may change the session."""

    def wrap_model(self, run: RunState, request: ModelRequest, call: ModelHandler) -> AsyncIterator[Delta]:
        """Around each model call: answer it with `call`, more than once if need be."""
        return call(request)

    async def after_model(self, run: RunState, answer: AssistantMessage) -> None:
        """After each answer is in the log, before its tools run."""

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        """Around each tool call. `tool` is None where no tool has that name."""
        return await handle(call)
