"""`deepagent context`: what a request would hold, for people and for scripts, and a check for CI. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .options import RunOptions

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from ..agent.events import Gauge
    from ..context.accounting import Account, Row

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the next request would hold."""

    session: str | None
    """None where it is the first request of a new session."""
    model: str
    gauge: Gauge
    account: Account


def report_of(cwd: Path, *, model: str | None, session: str | None) -> Report:
    """Looks at a copy of a session, or, without one, at a new one; nothing is kept.

    `session` is an id, or `NEWEST`. Raises `DeepagentError` or `StorageError`.
    """
    from .opening import Opener

    flags: dict[str, object] = {} if model is None else {"model": model}
    options = RunOptions(cwd=cwd, persist=False, flags=flags)
    opened = Opener(options).open(session=session)
    if opened.agent is None:
        from ..agent.errors import ConfigError

        raise ConfigError("no model is set: deepagent context -m NAME")
    try:
        return _report(opened.agent)
    finally:
        opened.agent.close()


def _report(agent: Agent) -> Report:
    agent.parts.counter.prepare()
    gauge, session = agent.gauge(), agent.session
    return Report(
        session=session.id if session.requests() else None,
        model=agent.parts.model.name,
        gauge=gauge,
        account=agent.account(),
    )


def as_json(report: Report) -> Json:
    """The report as a JSON object; the rows add up to `used`."""
    gauge = report.gauge
    return {
        "model": report.model,
        "session": report.session,
        "used": report.account.used,
        "source": report.account.source,
        "window": gauge.window,
        "window_source": gauge.window_source,
        "budget": gauge.budget,
        "trigger": gauge.trigger,
        "rows": [_row(row) for row in report.account.rows],
    }


def _row(row: Row) -> Json:
    made: Json = {"name": row.name, "tokens": row.tokens, "note": row.note}
    if row.parts:
        made["parts"] = [_row(part) for part in row.parts]
    return made


def lines_of(report: Report) -> Iterator[str]:
    """The report as text."""
    gauge, account = report.gauge, report.account
    yield f"{account.used:,} of {gauge.window:,} tokens ({gauge.window_source}), {account.source} · {report.model}"
    for row in account.rows:
        yield from _lines(row, "")
    yield f"compaction starts at {gauge.trigger:,}; a request may have {gauge.budget:,}"


def _lines(row: Row, indent: str) -> Iterator[str]:
    yield f"{indent}{row.name:<{48 - len(indent)}} {row.tokens:>9,}  {row.note}".rstrip()
    for part in row.parts:
        yield from _lines(part, indent + "  ")


def idle_problem(report: Report, most: int) -> str | None:
    """Why a new session's first request is too long, or None: its size, and what takes most of it."""
    used = report.account.used
    if used <= most:
        return None
    largest = max(report.account.rows, key=lambda row: row.tokens)
    return f"an idle session takes {used:,} tokens, more than {most:,}; most of it: {largest.name}, {largest.tokens:,}"
