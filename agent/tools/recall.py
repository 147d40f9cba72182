"""`recall`: search and read back everything that was ever said, written or seen in the conversations of the project."""

from __future__ import annotations

from typing import Any, Literal

from ...context.recall_query import Mode
from ..runtime import RecallAsk, ToolRuntime
from ..tool import ToolResult, tool


@tool(access="none")
async def recall(
    runtime: ToolRuntime[Any],
    *,
    query: str = "",
    id: str = "",
    lines: str = "",
    mode: Mode = "words",
    role: Literal["user", "assistant", "tool"] | None = None,
    tool: str = "",
    file: str = "",
    sessions: Literal["this", "all"] = "this",
) -> ToolResult:
    """Find and read back what left your view: messages, results, files as they were, arguments of calls.

    Args:
        query: What to search for.
        id: Instead, what to read: an id from a hit or a stub.
        lines: Of what is read: `40-80`; of a long line, `7:2001-4000`.
    """
    everywhere = sessions == "all"
    ask = RecallAsk(
        query=query, id=id, lines=lines, mode=mode, role=role or "", tool=tool, file=file, everywhere=everywhere
    )
    answer = await runtime.session.recall(ask, runtime.result_limit)
    return ToolResult(text=answer.text, summary=answer.summary, is_error=answer.is_error)
