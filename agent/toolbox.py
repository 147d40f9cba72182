"""The tools of an agent, and the running of the calls of one answer.

Calls that only read run together, all others alone and in order. Results join the log together, so that their sum can
be kept small; whatever happens, every call gets one.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..context.budget import Budget
from ..context.facts import SECONDS, SUMMARY
from ..context.ladder import Ladder
from ..context.messages import AssistantMessage, Content, Pointer, Text, ToolCall, ToolMessage, clean, new_id, timestamp
from ..context.session import Session
from ..context.tokens import Counter
from .backends.protocol import Backend, BackendError
from .brief import shown
from .events import Event, Offloading, ToolFinished, ToolOutput, ToolStarted
from .middleware.base import Middleware, RunState, ToolHandler
from .model.types import ToolSchema
from .runtime import SessionServices, ToolRuntime
from .sandbox.bounds import USUAL, Grant
from .tool import Tool, ToolResult

_CUT_OFF = "Not run: the answer was cut off by the output limit, so this call is incomplete. Write in smaller parts."
_INTERRUPTED = "Interrupted: this call may have run in part, or not at all."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finished:
    """One call and what came of it."""

    call: ToolCall
    result: ToolResult
    seconds: float


class _Clock:
    """Measures the tool itself, without what approvals and other middleware take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._began


class Toolbox:
    """Runs tools by name."""

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        session: Session,
        ladder: Ladder,
        backend: Backend,
        services: SessionServices,
        middleware: Sequence[Middleware],
        context: object,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._session = session
        self._ladder = ladder
        self._backend = backend
        self._services = services
        self._middleware = middleware
        self._context = context
        self.schemas: tuple[ToolSchema, ...] = ()
        """What models are told of."""
        self.texts: dict[str, str] = {}
        """The schemas' texts by name, for counting."""
        self.fit(ladder.budget)

    def fit(self, budget: Budget) -> None:
        """Tells of the tools in a form that suits a window."""
        self.schemas = shown((tool.schema for tool in self._tools.values()), budget)
        self.texts = {s.name: json.dumps([s.name, s.description, dict(s.parameters)]) for s in self.schemas}

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def tokens(self, counter: Counter) -> int:
        """Tokens of the schemas."""
        return sum(counter.text(text) for text in self.texts.values())

    async def act(self, answer: AssistantMessage, calls: Sequence[ToolCall], run: RunState) -> None:
        """Runs the calls of an answer; their results are on the disk when this returns."""
        finished: dict[str, _Finished] = {}
        try:
            for group in self._groups(calls):
                await _together([self._run(call, answer, run, finished) for call in group])
        finally:
            self._log(calls, finished, run)
        await asyncio.to_thread(self._session.sync)

    def _groups(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        """Neighbouring calls that do not disturb each other, together; any other call alone."""
        group: list[ToolCall] = []
        for call in calls:
            tool = self._tools.get(call.name)
            if tool is not None and tool.parallel:
                group.append(call)
                continue
            if group:
                yield group
            yield [call]
            group = []
        if group:
            yield group

    async def _run(
        self, call: ToolCall, answer: AssistantMessage, run: RunState, finished: dict[str, _Finished]
    ) -> None:
        clock = _Clock()
        if answer.stop == "length":
            result = ToolResult(text=_CUT_OFF, summary="cut off", is_error=True)
        else:
            run.emit(ToolStarted(call=call))
            result = await self._handler(call, run, clock)(call)
        finished[call.id] = _Finished(call=call, result=result, seconds=clock.seconds)

    def _handler(self, call: ToolCall, run: RunState, clock: _Clock) -> ToolHandler:
        tool = self._tools.get(call.name)

        async def timed(call: ToolCall) -> ToolResult:
            with clock:
                return await self._execute(call, tool, run)

        handler: ToolHandler = timed
        for middleware in reversed(self._middleware):
            handler = _around(middleware, run, tool, handler)
        return handler

    async def _execute(self, call: ToolCall, tool: Tool | None, run: RunState) -> ToolResult:
        """The innermost handler. Whatever a tool raises is an answer to the model."""
        if call.error is not None:
            return ToolResult(text=f"{call.name} was not run: {call.error}", summary="unreadable call", is_error=True)
        if tool is None:
            return ToolResult(text=self._no_tool(call.name), is_error=True)
        try:
            return await tool.run(call.arguments, self.runtime(call.id, run.emit, run.grants.get(call.id, USUAL)))
        except BackendError as error:
            return ToolResult(text=str(error), summary=str(error)[:80], is_error=True)
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # whoever wrote it, a failure is an answer
            if isinstance(error, asyncio.CancelledError) and _cancelled():
                raise
            kind = type(error).__name__
            return ToolResult(text=f"{call.name} failed: {kind}: {error}", summary=kind, is_error=True)

    def _no_tool(self, name: str) -> str:
        near = difflib.get_close_matches(name.lower(), self._tools, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        return f"There is no tool {name!r}.{meant} There are: {', '.join(self._tools)}."

    def runtime(self, call_id: str, emit: Callable[[Event], None], grant: Grant) -> ToolRuntime[Any]:
        """What a tool gets that runs for a call."""
        return ToolRuntime(
            context=self._context,
            backend=self._backend,
            session=self._services,
            call_id=call_id,
            result_limit=self._ladder.budget.result_limit,
            on_output=lambda data: emit(ToolOutput(call_id=call_id, data=data)),
            grant=grant,
        )

    def _log(self, calls: Sequence[ToolCall], finished: dict[str, _Finished], run: RunState) -> None:
        """Puts a result for every call into the log, those that did not come to an end included."""
        interrupted = ToolResult(text=_INTERRUPTED, summary="interrupted", is_error=True)
        done = [finished.get(call.id) or _Finished(call=call, result=interrupted, seconds=0) for call in calls]
        messages = self._ladder.admit_results([self._message(item) for item in done])
        for item, message in zip(done, messages, strict=True):
            self._session.say(message)
            self._tell(item, message, run)

    def _message(self, item: _Finished) -> ToolMessage:
        return ToolMessage(
            id=new_id(),
            time=timestamp(self._session.clock),
            call_id=item.call.id,
            tool=item.call.name,
            content=self._content(item),
            is_error=item.result.is_error,
            log={**item.result.log, SUMMARY: item.result.summary, SECONDS: round(item.seconds, 3)},
        )

    def _content(self, item: _Finished) -> tuple[Content, ...]:
        text = Text(text=clean(item.result.text))
        blocks = (text, *item.result.images)
        if item.result.stored is None:
            return blocks
        return (self._ladder.offloader.stored(item.result.stored, item.call.name), *blocks)

    def _tell(self, item: _Finished, message: ToolMessage, run: RunState) -> None:
        for block in message.content:
            if isinstance(block, Pointer):
                size = self._ladder.counter.text(block.shown)
                run.emit(Offloading(path=block.path, tokens=block.tokens, shown_tokens=size, message=message.id))
        run.emit(ToolFinished(call=item.call, message=message, summary=item.result.summary, seconds=item.seconds))


def _around(middleware: Middleware, run: RunState, tool: Tool | None, handler: ToolHandler) -> ToolHandler:
    return lambda call: middleware.wrap_tool(run, call, tool, handler)


async def _together(runs: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Runs all at once. When one raises, or the run is cancelled, none of them goes on after this has returned."""
    tasks = [asyncio.ensure_future(one) for one in runs]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _cancelled() -> bool:
    """Whether somebody wants the running task to end; else a `CancelledError` is something that went wrong in it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
