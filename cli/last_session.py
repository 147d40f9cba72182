"""The session that one would go on with: how it ended, what it came to, what going on would send.

Read from its log alone; nothing is opened for writing. Importing this module loads nothing of the agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..agent.workspace import Workspace
    from ..context.entries import Entry
    from ..context.tokens import Encode
    from ..context.view import View
    from .listings import SessionRow

ENDED = {
    "success": "done",
    "error": "failed",
    "interrupted": "interrupted",
    "max_turns": "turn limit",
    "max_tokens": "token limit",
    "max_cost": "cost limit",
    "timeout": "time limit",
    "stopped": "killed",
    "open": "open now",
    "unreadable": "unreadable",
}
"""How a session ended, in words; by the words of `listings.SessionRow`."""
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSession:
    """The newest session that can be gone on with."""

    id: str
    title: str
    ago: str
    """`14 h ago`."""
    ended: str
    """`done`, `interrupted`, `stopped inside turn 12 (killed)`, …"""
    todos_done: int
    todos: int
    compactions: int
    cost: float | None
    """US dollars so far; None where a price was unknown."""
    sends: int
    """Tokens of the next request if one goes on: an estimate."""
    sends_cost: float | None
    """US dollars for these, nothing cached; None where the price is unknown."""


def ago(time: str, now: datetime | None = None) -> str:
    """How long ago an ISO time was: `just now`, `14 h ago`, `3 days ago`, `2026-10-01`; empty for what is no time."""
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return ""
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min ago"
    if seconds < 2 * _DAY:
        return f"{int(seconds // _HOUR)} h ago"
    return f"{int(seconds // _DAY)} days ago" if seconds < 30 * _DAY else time[:10]


def last_session(workspace: Workspace, *, model: str | None, overhead: int) -> LastSession | None:
    """The newest session in which something was asked and which no process has open. Raises nothing.

    `overhead` are the tokens of system prompt and tools, `model` is who would be asked: it makes the price.
    """
    from ..context.log import LogError
    from ..context.storage import StorageError
    from .listings import each_session

    try:
        for row in each_session(workspace):
            if row["messages"] and row["ended"] not in ("open", "unreadable"):
                return _read(row, workspace, model, overhead)
    except (StorageError, LogError, OSError):
        pass  # a session less to offer is no reason not to start
    return None


def _read(row: SessionRow, workspace: Workspace, model: str | None, overhead: int) -> LastSession:
    from ..context.entries import Compacted, CompactionUndone, UsageReported
    from ..context.log import load
    from ..context.storage import log_name
    from ..context.view import build_view

    entries = load(row["id"], workspace.storage().read(log_name(row["id"]))).entries
    view = build_view(entries)
    costs = [entry.cost for entry in entries if isinstance(entry, UsageReported)]
    undone = sum(isinstance(entry, CompactionUndone) for entry in entries)
    sends = _tokens_of_next(entries, view, overhead)
    return LastSession(
        id=row["id"],
        title=row["title"],
        ago=ago(entries[-1].time),
        ended=_where_stopped(entries) if row["ended"] == "stopped" else ENDED.get(row["ended"], row["ended"]),
        todos_done=sum(todo.status == "completed" for todo in view.todos),
        todos=len(view.todos),
        compactions=sum(isinstance(entry, Compacted) for entry in entries) - undone,
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        sends=sends,
        sends_cost=_cost_of(sends, model),
    )


def _where_stopped(entries: Sequence[Entry]) -> str:
    """Where a log breaks off: the turn that was under way, counted from the session's first."""
    messages = [entry.message for entry in entries if entry.kind == "message"]
    answers = [message for message in messages if message.role == "assistant"]
    if answers and messages[-1] is answers[-1]:
        return f"stopped inside turn {len(answers)} (killed)" if answers[-1].calls else ENDED["success"]
    return f"stopped inside turn {len(answers) + 1} (killed)"


def _tokens_of_next(entries: Sequence[Entry], view: View, overhead: int) -> int:
    """The last report of the log and an estimate of what came since; without a report, an estimate of all."""
    from ..context.entries import UsageReported
    from ..context.meter import Meter
    from ..context.tokens import Counter

    reports = [entry for entry in entries if isinstance(entry, UsageReported) and entry.purpose == "turn"]
    meter = Meter(Counter(_no_tables), reports[-1].model if reports else "")
    meter.overhead = overhead
    for entry in entries:
        meter.add(entry)
    return meter.used(view.messages).tokens


def _no_tables() -> Encode:
    """Estimates are good enough here, and quick."""
    raise FileNotFoundError


def _cost_of(tokens: int, model: str | None) -> float | None:
    from ..agent.model.catalog import model_info
    from ..agent.model.prices import cost
    from ..context.entries import Usage

    info = model_info(model) if model else None
    return cost(info.prices, Usage(input=tokens, output=0)) if info else None
