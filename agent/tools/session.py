"""Tools about the session itself: the plan, and compaction."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from ...context.entries import Todo
from ..runtime import ToolRuntime
from ..tool import ToolResult, tool
from .answers import count

_TODOS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
        },
        "required": ["text", "status"],
        "additionalProperties": False,
    },
}
"""Written out, since a schema with references is not taken by all providers, and longer."""

Todos = Annotated[list[Todo], WithJsonSchema(_TODOS)]


@tool(access="none")
async def write_todos(todos: Todos, runtime: ToolRuntime[Any]) -> ToolResult:
    """Replace the plan. Use it for work of several steps; keep one step in_progress and mark steps when done.

    Call it once in a message: of several calls the last one counts.
    """
    runtime.session.write_todos(tuple(todos))
    done = sum(todo.status == "completed" for todo in todos)
    text = f"The plan now has {count(len(todos), 'step')}, {done} completed."
    return ToolResult(text=text, summary=f"{done} of {len(todos)} done", log={"todos": len(todos)})


@tool(access="none")
async def compact_conversation(runtime: ToolRuntime[Any], focus: str | None = None) -> ToolResult:
    """Archive older messages and go on with a summary. Use it when a task is done or a new one begins.

    Args:
        focus: What the summary should keep above all.
    """
    text = await runtime.session.compact((focus or "").strip() or None)
    return ToolResult(text=text, summary=text.split(". ", maxsplit=1)[0].split("\n", maxsplit=1)[0][:100])
