"""`task`: hands a piece of work to a sub-agent and gives back its last answer.

Each task is an agent with a session of its own beside its parent's: own view, log and archive, the same files, rules
and sandbox. What it asks reaches the same person; what it costs joins the parent's totals; it ends with the parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...context.entries import Usage, UsageReported
from ...context.storage import archive_name, log_name
from ..config import LimitSettings
from ..errors import DeepagentError
from ..events import ApprovalAsked, Denied, Event, Noticed, RunEnded, ToolFinished
from ..middleware.base import NOTHING, Middleware, RunState
from ..runtime import ToolRuntime
from ..tool import Tool, ToolResult, tool
from ..tools.answers import count, failure
from ..undisturbed import undisturbed
from .definition import Subagent

if TYPE_CHECKING:
    from ..agent import Agent

Spawn = Callable[[Subagent, LimitSettings], "Agent"]
"""Makes the agent of a task, with the limits that hold for it. Raises `DeepagentError` or `StorageError`."""


class Tasks(Middleware):
    """The tool, and what its tasks may use up together."""

    def __init__(
        self, agents: Mapping[str, Subagent], spawn: Spawn, *, limits: LimitSettings, at_once: int, folder: str
    ) -> None:
        """`limits` are the parent's; `at_once` is how many tasks run at most; `folder` is what data is found under."""
        self._agents = dict(agents)
        self._spawn = spawn
        self._limits = limits
        self._slots = asyncio.Semaphore(at_once)
        self._folder = folder
        self._run: RunState | None = None
        self.tools = (_with_agents(self._tool(), self._agents),)

    async def before_agent(self, run: RunState) -> None:
        self._run = run

    def _tool(self) -> Tool:
        async def task(runtime: ToolRuntime[Any], prompt: str, agent: str = "general-purpose") -> ToolResult:
            """Hand a piece of work to a sub-agent, and get its last answer. What it reads stays out of your context.

            Worth it for work that reads much and ends in little: searches through many files, reviews, separate
            parts of a change. Several calls in one answer run at the same time; let no two change the same file.

            Args:
                prompt: The whole assignment. The sub-agent knows nothing of this conversation.
            """
            definition = self._agents.get(agent)
            if definition is None:
                return failure(f"There is no sub-agent {agent!r}. There are: {', '.join(self._agents)}.")
            if not prompt.strip():
                return failure("The prompt is empty.")
            async with self._slots:
                return await self._work(definition, prompt, runtime)

        return tool(task)

    async def _work(self, definition: Subagent, prompt: str, runtime: ToolRuntime[Any]) -> ToolResult:
        run = self._run
        assert run is not None
        try:
            child = await asyncio.to_thread(self._spawn, definition, self._left(definition.limits, run))
        except DeepagentError as error:
            return failure(f"The sub-agent {definition.name} cannot begin: {error}")
        try:
            ended = await self._follow(child, prompt, runtime, run)
        finally:
            _account(run, child)
            await undisturbed(child.aclose())
        return self._result(definition, child, ended)

    def _left(self, own: LimitSettings, run: RunState) -> LimitSettings:
        """The limits of a task: its own, or what is left of its parent's where that is less."""
        used = run.usage.input + run.usage.output
        tokens = _least(own.max_tokens, None if self._limits.max_tokens is None else self._limits.max_tokens - used)
        spent = None if self._limits.max_cost is None else self._limits.max_cost - (run.cost or 0.0)
        return replace(own, max_tokens=tokens and max(1, tokens), max_cost=_least(own.max_cost, spent))

    async def _follow(self, child: Agent, prompt: str, runtime: ToolRuntime[Any], run: RunState) -> RunEnded:
        """Plays the task to its end; a line for each of its tools is the call's output for whoever watches."""
        ended: RunEnded | None = None
        asked: set[str] = set()
        async with aclosing(child.astream(prompt)) as events:
            async for event in events:
                match event:
                    case RunEnded():
                        ended = event
                    case ApprovalAsked() | Denied():
                        asked.add(event.call.id)
                        run.denied = run.denied or isinstance(event, Denied)
                        run.emit(_renamed(event, runtime.call_id))
                    case ToolFinished():
                        if event.call.id in asked:
                            run.emit(_renamed(event, runtime.call_id))
                        runtime.on_output(_line(event).encode())
                    case Noticed(text=text):
                        runtime.on_output(f"! {text}\n".encode())
                    case _:
                        pass
        assert ended is not None
        return ended

    def _result(self, definition: Subagent, child: Agent, ended: RunEnded) -> ToolResult:
        tokens = ended.usage.input + ended.usage.output
        spent = f"{count(ended.turns, 'turn')}, {count(tokens, 'token')}"
        if ended.cost is not None:
            spent += f", ${ended.cost:.2f}"
        reason = f" ({ended.error['message']})" if ended.error else ""
        files = [log_name(child.session.id), *([archive_name(child.session.id)] if child.archive else [])]
        where = " and ".join(f"{self._folder}/{name}" for name in files)
        status = f"[{definition.name}: {ended.outcome}{reason} after {spent}; all of it is in {where}]"
        return ToolResult(
            text=f"{ended.text.strip() or '(It gave no answer.)'}\n\n{status}",
            summary=f"{definition.name} · {ended.outcome} · {spent}",
            log={"agent": definition.name, "task": child.session.id, "outcome": ended.outcome},
            is_error=ended.outcome == "error",
        )


def _with_agents(made: Tool, agents: Mapping[str, Subagent]) -> Tool:
    """The tool with its sub-agents told of, and able to run beside others of its kind."""
    listed = "\n".join(f"- {agent.name}: {agent.description}" for agent in agents.values())
    schema = replace(made.schema, description=f"{made.schema.description}\n\nSub-agents:\n{listed}")
    return replace(made, schema=schema, beside=True)


def _least(one: Any, other: Any) -> Any:
    given = [value for value in (one, other) if value is not None]
    return min(given) if given else None


def _renamed(event: Event, task: str) -> Event:
    """A child's event with an id for its call that is not one of the parent's."""
    assert isinstance(event, ApprovalAsked | Denied | ToolFinished)
    return replace(event, call=replace(event.call, id=f"{task}/{event.call.id}"))


def _line(event: ToolFinished) -> str:
    call = event.call
    subject = call.arguments.get("command") or call.arguments.get("path") or call.arguments.get("pattern") or ""
    what = " ".join(f"{call.name} {subject}".split())
    return f"{'✗' if event.message.is_error else '●'} {what[:100]}  {event.summary}\n"


def _account(run: RunState, child: Agent) -> None:
    """What the task has used joins the parent's totals and log, however it ended."""
    reports = [entry for entry in child.session.entries if isinstance(entry, UsageReported)]
    if not reports:
        return
    usage = NOTHING
    for entry in reports:
        usage = Usage(
            input=usage.input + entry.usage.input,
            output=usage.output + entry.usage.output,
            cache_read=usage.cache_read + entry.usage.cache_read,
            cache_write=usage.cache_write + entry.usage.cache_write,
        )
    costs = [entry.cost for entry in reports]
    cost = None if None in costs else sum(filter(None, costs))
    session = run.session
    session.append(
        UsageReported(
            **session.header(),
            model=reports[-1].model,
            usage=usage,
            cost=cost,
            purpose="task",
            message=None,
            counted=0,
        )
    )
    run.add_usage(usage, cost)
