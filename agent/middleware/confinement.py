"""What the sandbox kept a command from is asked about; with what is granted, the command is run again.

The sandbox itself is `agent.sandbox`; whether a command may run at all was decided before, by `approvals`. Without
anybody to ask, nothing is granted, and that is told as a denial.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from ...context.messages import ToolCall
from ..approvals.rules import rule_text
from ..events import Approval, ApprovalAsked, Denied
from ..sandbox.bounds import USUAL, Grant
from ..tool import Tool, ToolResult
from ..tools.shell import refusals_text
from .approvals import answered
from .base import Middleware, RunState, ToolHandler

_ATTEMPTS = 4
"""How often one command is asked about: each time it may want something else."""


class Confinement(Middleware):
    """Asks what a refused command may have, and remembers it for this session."""

    def __init__(self, *, interactive: bool, origin: str = "") -> None:
        """`interactive`: somebody watches the events and answers `ApprovalAsked`; `origin` names a sub-agent."""
        self._interactive = interactive
        self._origin = origin
        self._writable: dict[Path, None] = {}
        """Folders that commands may write besides."""
        self._online: set[str] = set()
        """Commands that may use the network."""

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        if tool is None or tool.access != "execute":
            return await handle(call)
        run.grants[call.id] = grant = self._usual(call, run.grants.get(call.id, USUAL))
        result = await handle(call)
        for _ in range(_ATTEMPTS):
            if not result.refused or grant.off:
                break
            reason = _reason(result, grant)
            approval = await self._ask(run, call, grant, result, reason)
            if not approval.allowed:
                return self._deny(run, call, grant, result, approval.answer or approval.reason or reason)
            run.grants[call.id] = grant = self._widened(call, grant, approval.grant or USUAL)
            again = await handle(call)
            result = replace(again, text=f"{again.text}\n[run again: the user allowed {_words(grant)}]")
        return result

    def _usual(self, call: ToolCall, grant: Grant) -> Grant:
        """What the call may have by what was granted before."""
        if grant.reading or grant.off:
            return grant
        network = grant.network or _command(call) in self._online
        return replace(grant, network=network, writable=(*grant.writable, *self._writable))

    def _widened(self, call: ToolCall, grant: Grant, more: Grant) -> Grant:
        """The grant with what was allowed now; folders are remembered, and that this command may use the network."""
        self._writable |= dict.fromkeys(more.writable)
        if more.network:
            self._online.add(_command(call))
        return Grant(
            network=grant.network or more.network,
            writable=tuple(dict.fromkeys((*grant.writable, *self._writable))),
            off=more.off,
        )

    async def _ask(self, run: RunState, call: ToolCall, grant: Grant, result: ToolResult, reason: str) -> Approval:
        if not self._interactive:
            return Approval(allowed=False)
        answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        refused = () if grant.reading else result.refused
        run.emit(
            ApprovalAsked(
                call=call,
                rules=_rules(call, grant),
                reason=reason,
                origin=self._origin,
                refused=refused,
                answer=answer,
            )
        )
        return await answered(answer)

    def _deny(self, run: RunState, call: ToolCall, grant: Grant, result: ToolResult, reason: str) -> ToolResult:
        run.denied = True
        run.emit(Denied(call=call, rules=_rules(call, grant), reason=reason))
        return replace(result, text=f"{result.text}\n[not allowed: {reason}; do without it, or say what you need]")


def _reason(result: ToolResult, grant: Grant) -> str:
    kept = f"the sandbox kept it from {refusals_text(result.refused)}"
    return f"it ran unasked, as a command that only reads, and {kept}" if grant.reading else kept


def _rules(call: ToolCall, grant: Grant) -> tuple[str, ...]:
    """The rule with which a command would have run with the usual rights; more than those no rule gives."""
    return (rule_text(call.name, _command(call).strip()),) if grant.reading else ()


def _command(call: ToolCall) -> str:
    return str(call.arguments.get("command", ""))


def _words(grant: Grant) -> str:
    if grant.off:
        return "it to run outside the sandbox, once"
    parts = [*(["the network"] if grant.network else []), *(f"writing {folder}" for folder in grant.writable)]
    return " and ".join(parts) or "it to run with the usual rights"
