"""Approvals around tools: what is allowed runs, what is denied is answered, and what is neither is asked about.

The rules are in `agent.approvals`. Without anybody to ask, asking is denying, and the answer names the rule that would
allow the call.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from ...context.messages import ToolCall
from ..approvals.policy import Decision, Policy, subject_of
from ..approvals.rules import parse_rules, rule_text
from ..backends.protocol import Backend, BackendError
from ..config import PermissionMode
from ..events import Approval, ApprovalAsked, Denied
from ..tool import Tool, ToolResult
from .base import Middleware, RunState, RunStopped, ToolHandler


class Approvals(Middleware):
    """Asks before it lets a tool run."""

    def __init__(self, policy: Policy, backend: Backend, *, interactive: bool) -> None:
        """`interactive`: somebody watches the events and answers `ApprovalAsked`."""
        self._policy = policy
        self._backend = backend
        self._interactive = interactive
        self._turn = asyncio.Lock()
        self._denied: dict[str, int] = {}
        """Calls that were denied, and in which of the run's answers first: in the same one it is no repetition."""
        self._stop: str | None = None

    def set_mode(self, mode: PermissionMode) -> None:
        """From the next call on, another mode decides; the rules stay."""
        self._policy = replace(self._policy, mode=mode)

    def allow(self, rule: str) -> None:
        """Allows what `rule` names, for as long as the agent lives. Raises `ConfigError`."""
        self._policy = replace(self._policy, allow=(*self._policy.allow, *parse_rules((rule,))))

    async def before_agent(self, run: RunState) -> None:
        self._denied.clear()
        self._stop = None

    async def before_model(self, run: RunState) -> None:
        if self._stop is not None:
            raise RunStopped("error", self._stop, kind="repeated_denial")

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        if tool is None or call.error is not None:
            return await handle(call)
        try:
            subject = subject_of(call, tool, self._backend.resolve)
        except BackendError:
            return await handle(call)  # it fails for the same reason, in the tool's own words
        decision = self._policy.decide(call, tool, subject)
        if decision.kind == "ask" and self._interactive:
            decision = await self._ask(run, call, decision)
        if decision.kind == "allow":
            return await handle(call)
        rule = decision.rule if len(decision.rules) < 2 else rule_text(call.name, subject)  # one rule for a whole line
        return self._deny(run, call, decision, rule)

    async def _ask(self, run: RunState, call: ToolCall, decision: Decision) -> Decision:
        """One question at a time, in the order of the calls."""
        async with self._turn:
            answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
            run.emit(ApprovalAsked(call=call, rule=decision.rule, answer=answer))
            approval = await _answered(answer)
        if approval.allowed:
            return Decision(kind="allow", rules=decision.rules, reason=approval.reason)
        return Decision(kind="deny", rules=decision.rules, reason=approval.reason or "the user said no")

    def _deny(self, run: RunState, call: ToolCall, decision: Decision, rule: str) -> ToolResult:
        run.denied = True
        run.emit(Denied(call=call, rule=rule, reason=decision.reason))
        key = json.dumps([call.name, dict(call.arguments)], sort_keys=True)
        if self._denied.setdefault(key, run.turns) < run.turns:
            self._stop = f"{call.name} was called again after it had been denied: {decision.reason}"
        text = (
            f"Not allowed: {decision.reason}. Do not try this call again; do without it, or say what you need and why."
        )
        return ToolResult(text=text, summary="denied", is_error=True)


async def _answered(answer: asyncio.Future[Approval]) -> Approval:
    """The answer; whoever cancels the question alone, and not the run, says no."""
    try:
        return await answer
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Approval(allowed=False, reason="nobody answered")
