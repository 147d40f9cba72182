"""Approvals around tools: what is allowed runs, what is denied is answered, and what is neither is asked about.

The rules are in `agent.approvals`. Without anybody to ask, asking is denying, and the answer names the rules that would
allow the call.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from ...context.messages import ToolCall
from ..approvals.decision import Decision
from ..approvals.edited import changes
from ..approvals.policy import Policy, subject_of
from ..approvals.rules import parse_rules
from ..backends.protocol import Backend, BackendError
from ..config import PermissionMode
from ..events import Approval, ApprovalAsked, Denied
from ..sandbox.bounds import Grant
from ..tool import Tool, ToolResult
from .base import Middleware, RunState, RunStopped, ToolHandler

UNANSWERED = "nobody answered the question whether it may run"
"""Why a call did not run whose question was withdrawn: nobody said no."""
_READING = Grant(reading=True)


@dataclass(slots=True, eq=False)
class InForce:
    """The rules and the mode that hold now, and whose turn it is to ask: one for an agent and its sub-agents."""

    policy: Policy
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Approvals(Middleware):
    """Asks before it lets a tool run."""

    def __init__(
        self,
        policy: Policy | InForce,
        backend: Backend,
        *,
        interactive: bool,
        root: Path | None = None,
        confined: Callable[[], bool] = lambda: False,
        origin: str = "",
    ) -> None:
        """`interactive`: somebody watches the events and answers `ApprovalAsked`.

        `root` is the workspace; `confined` says whether a sandbox can keep a command from writing and from the network;
        `origin` names a sub-agent in its questions. With what is in force for another agent it shares its rules.
        """
        self._root = os.path.realpath(root) if root is not None else None
        self.in_force = policy if isinstance(policy, InForce) else InForce(policy)
        self._backend = backend
        self._interactive = interactive
        self._confined = confined
        self._origin = origin
        self._denied: dict[str, int] = {}
        """Calls that were denied, and in which of the run's answers first: in the same one it is no repetition."""
        self._stop: str | None = None

    def set_mode(self, mode: PermissionMode) -> None:
        """From the next call on, another mode decides; the rules stay."""
        self.in_force.policy = replace(self.in_force.policy, mode=mode)

    def allow(self, rule: str) -> None:
        """Allows what `rule` names, for as long as the agent lives. Raises `ConfigError`."""
        policy = self.in_force.policy
        self.in_force.policy = replace(policy, allow=(*policy.allow, *parse_rules((rule,))))

    async def before_agent(self, run: RunState) -> None:
        self._denied.clear()
        self._stop = None

    async def before_model(self, run: RunState) -> None:
        if self._stop is not None:
            raise RunStopped("error", self._stop, kind="repeated_denial")

    async def wrap_tool(self, run: RunState, call: ToolCall, tool: Tool | None, handle: ToolHandler) -> ToolResult:
        if tool is None or call.error is not None:
            return await handle(call)
        if tool.access == "execute":
            await asyncio.to_thread(self._confined)  # the first time, that takes a moment
        try:
            decision = self._decide(call, tool)
        except BackendError:
            return await handle(call)  # it fails for the same reason, in the tool's own words
        if decision.kind == "ask" and self._interactive:
            return await self._ask(run, call, tool, handle)
        if decision.kind == "allow":
            return await self._run(run, call, decision, handle)
        return self._deny(run, call, decision)

    def _decide(self, call: ToolCall, tool: Tool) -> Decision:
        """The decision by the rules. Raises `BackendError` for a path that cannot be reached."""
        subject = subject_of(call, tool, self._backend.resolve)
        confined = tool.access == "execute" and self._confined()
        policy = replace(self.in_force.policy, resolve=self._resolve)
        return policy.decide(call, tool, subject, confined=confined)

    def _resolve(self, path: str) -> str:
        """What a path in a shell line is called in rules, also where no tool of ours reaches it."""
        try:
            return self._backend.resolve(path)
        except BackendError:
            if self._root is None or "\0" in path:
                return os.path.normpath(path)
        real = os.path.realpath(os.path.join(self._root, self._backend.resolve("."), path))  # noqa: PTH118 - it may be absolute
        return ".." if f"{self._root}/".startswith(f"{real.rstrip('/')}/") else real

    async def _run(self, run: RunState, call: ToolCall, decision: Decision, handle: ToolHandler) -> ToolResult:
        if decision.reading:
            run.grants[call.id] = _READING
        return await handle(call)

    async def _ask(self, run: RunState, call: ToolCall, tool: Tool, handle: ToolHandler) -> ToolResult:
        """Asks one question at a time, in the order of the calls, unless an answer to an earlier one decides it."""
        async with self.in_force.turn:
            decision = self._decide(call, tool)
            approval = await self._answer(run, call, decision) if decision.kind == "ask" else None
        if approval is None:
            return await self._act(run, call, decision, handle)
        if approval.answer:
            return ToolResult(text=f"Not run: the user answered instead: {approval.answer}", summary="answered")
        if not approval.allowed:
            reason = approval.reason or "the user said no"
            return self._deny(run, call, Decision(kind="deny", rules=decision.rules, reason=reason))
        if approval.grant is not None:
            run.grants[call.id] = approval.grant
        if approval.arguments is None or dict(approval.arguments) == dict(call.arguments):
            return await handle(call)
        return await self._run_edited(run, call, approval.arguments, tool, handle)

    async def _act(self, run: RunState, call: ToolCall, decision: Decision, handle: ToolHandler) -> ToolResult:
        if decision.kind == "allow":
            return await self._run(run, call, decision, handle)
        return self._deny(run, call, decision)

    async def _answer(self, run: RunState, call: ToolCall, decision: Decision) -> Approval:
        answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        asked = ApprovalAsked(
            call=call,
            rules=decision.rules,
            reason=decision.reason,
            warning=decision.warning,
            origin=self._origin,
            answer=answer,
        )
        run.emit(asked)
        return await answered(answer)

    async def _run_edited(
        self, run: RunState, call: ToolCall, arguments: Mapping[str, JsonValue], tool: Tool, handle: ToolHandler
    ) -> ToolResult:
        """Runs what the person made of a call; the model is told, so that it does not take it for its own."""
        edited = replace(call, arguments=dict(arguments))
        try:
            decision = self._decide(edited, tool)
        except BackendError:
            decision = Decision(kind="allow", reason="it fails in the tool's own words")
        told = f"The user changed this call before it ran.\n{changes(call.arguments, arguments)}"
        if decision.kind == "deny":
            denied = self._deny(run, call, decision)
            return replace(denied, text=f"{denied.text}\n\n{told}")
        result = await handle(edited)
        return replace(result, text=f"{told}\n\n{result.text}")

    def _deny(self, run: RunState, call: ToolCall, decision: Decision) -> ToolResult:
        run.denied = True
        run.emit(Denied(call=call, rules=decision.rules, reason=decision.reason))
        if decision.reason == UNANSWERED:
            text = f"Not allowed: {UNANSWERED}. Go on without it, or say what you need and why."
            return ToolResult(text=text, summary="unanswered", is_error=True)
        key = json.dumps([call.name, dict(call.arguments)], sort_keys=True)
        if self._denied.setdefault(key, run.turns) < run.turns:
            self._stop = f"{call.name} was called again after it had been denied: {decision.reason}"
        text = (
            f"Not allowed: {decision.reason}. Do not try this call again; do without it, or say what you need and why."
        )
        return ToolResult(text=text, summary="denied", is_error=True)


async def answered(answer: asyncio.Future[Approval]) -> Approval:
    """The answer; who cancels the question alone, and not the run, has not said no."""
    try:
        return await answer
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Approval(allowed=False, reason=UNANSWERED)
