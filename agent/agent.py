"""`Agent`: a model, tools and a session behind one call that takes a prompt and gives events.

What goes into an agent is put together in `agent.build`; how a run proceeds is the business of `agent.loop`. All is
async inside; `invoke` and `stream` serve callers that are not, at the edge.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from ..context.accounting import Account, account
from ..context.compact import Compactor
from ..context.control import Control
from ..context.entries import Compacted, Ended
from ..context.ladder import CannotUndo, Ladder
from ..context.log import LogError
from ..context.meter import Meter
from ..context.offload import Offloader
from ..context.record import Ask, Recorder
from ..context.session import Session
from ..context.storage import StorageError
from ..context.view import View
from .by_user import ByUser
from .checkpoints.files import Files, FilesReport
from .config import PermissionMode
from .edge import Edge
from .errors import DeepagentError
from .events import CompactionTakenBack, Event, Gauge, GaugeChanged, Noticed, Outcome, RunEnded
from .head import Head
from .loop import Loop
from .middleware.base import RunState, RunStopped
from .middleware.context import ContextCare
from .middleware.telling import Settling, Telling
from .model.types import ModelRequest
from .notes import items
from .parts import Parts
from .prompt_log import log_model
from .reports import Reports
from .services import Services
from .summaries import Summaries
from .toolbox import Toolbox
from .window_keeper import WindowKeeper


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run came to."""

    text: str
    outcome: Outcome
    events: tuple[Event, ...]


class Agent:
    """One session with one model. Not for use by two tasks at once."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.session = parts.session
        self.notices = (*parts.notices, *parts.session.notices)
        parts.files.may = lambda: self._run is None
        self._sink: Callable[[Event], None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._edge = Edge()
        self._inbox: list[str] = []
        self._run: RunState | None = None
        self._meter = Meter(parts.counter, parts.model.name)
        for entry in self.session.entries:
            self._meter.add(entry)
        reports = Reports(self._emit, self.gauge, lambda: self.archive, lambda: self._run)
        self._ladder = self._make_ladder(reports)
        self._windows = WindowKeeper(
            self._ladder,
            parts.model,
            summary_model=parts.summary_model,
            summary_window=parts.summary_window,
            known=parts.known_windows,
        )
        toolbox = self._make_toolbox()
        self._head = Head(parts.prompt, self._ladder, mask=parts.masker.mask, fit=toolbox.fit)
        self._loop = self._make_loop(toolbox)
        self._loop.measure()

    def _make_ladder(self, reports: Reports) -> Ladder:
        parts = self.parts
        summaries = Summaries(
            parts.summary_model,
            parts.session,
            window=lambda: self._windows.summary_window,
            prompt=parts.summary_prompt,
            request=self._next_request if parts.summary_model is parts.model else None,
            price=parts.summary_price,
            masker=parts.masker,
            run=lambda: self._run,
        )
        return Ladder(
            session=parts.session,
            counter=parts.counter,
            meter=self._meter,
            settings=parts.settings.context,
            budget=parts.budget,
            offloader=Offloader(
                storage=parts.session.storage,
                session=parts.session.id,
                counter=parts.counter,
                can_read=lambda: any(tool.name == "read_file" for tool in parts.tools),
            ),
            compactor=Compactor(
                session=parts.session,
                counter=parts.counter,
                meter=self._meter,
                recorder=Recorder(
                    session=parts.session,
                    counter=parts.counter,
                    meter=self._meter,
                    summarizer=summaries.summarizer,
                    on_trouble=reports.trouble,
                    cache=parts.cache,
                ),
                on_start=reports.compaction_started,
            ),
            on_step=reports.step,
            on_trouble=reports.trouble,
            may_prepare=lambda: self._run is not None and self._windows.may_ask_beside,
        )

    def _make_toolbox(self) -> Toolbox:
        parts = self.parts
        return Toolbox(
            (*parts.tools, *(tool for one in parts.middleware for tool in one.tools)),
            session=parts.session,
            ladder=self._ladder,
            backend=parts.backend,
            services=Services(parts.session, self._ladder, self._emit, parts.masker, sees=parts.sees),
            middleware=parts.middleware,
            context=parts.context,
        )

    def _make_loop(self, toolbox: Toolbox) -> Loop:
        parts = self.parts
        care = ContextCare(self._ladder, self._windows, self.gauge)
        return Loop(
            model=parts.model,
            session=parts.session,
            ladder=self._ladder,
            toolbox=toolbox,
            middleware=(*parts.middleware, Telling(self._head), care, Settling(self._head)),
            masker=parts.masker,
            system=lambda: self._head.text,
            gauge=self.gauge,
            price=parts.price,
            prepare_counter=parts.counter.prepare,
            inbox=self._inbox,
            effort=parts.settings.effort,
            max_output=parts.max_output,
            image=parts.image if parts.sees else None,
        )

    def _next_request(self) -> ModelRequest:
        return self._loop.request()

    def _emit(self, event: Event) -> None:
        if self._sink is not None:
            self._sink(event)

    @property
    def archive(self) -> str | None:
        """The archive's absolute path; None while nothing was archived."""
        compacted = any(isinstance(entry, Compacted) for entry in self.session.entries)
        return str(self.session.storage.path(self.session.archive.name)) if compacted else None

    def gauge(self) -> Gauge:
        """How full the window is now."""
        self._loop.measure()  # the tokenizer may have come since
        used, budget = self._ladder.used, self._ladder.budget
        return Gauge(
            used=used.tokens,
            source=used.source,
            window=budget.window.tokens,
            window_source=budget.window.source,
            budget=budget.tokens,
            trigger=budget.trigger,
            cost=self.session.cost,
        )

    def astream(self, prompt: str) -> AsyncGenerator[Event, None]:
        """Runs a prompt to its end; the last event is `RunEnded`."""
        return self._events(lambda: self._run_prompt(prompt))

    def run_command(self, command: str, *, keep: bool = True) -> AsyncGenerator[Event, None]:
        """Runs a shell command of the user's own, unconfined and unasked; `keep`: the model is told with its next
        request. Gives the events of a tool."""
        by_user = ByUser(toolbox=self._loop.toolbox, ladder=self._ladder, masker=self.parts.masker, emit=self._emit)
        return self._events(lambda: by_user.run(command, keep=keep))

    @property
    def control(self) -> Control:
        """What the user does to the context by hand: pin, drop, restore, rewind, preview."""
        return Control(ladder=self._ladder, mask=self.parts.masker.mask)

    @property
    def files(self) -> Files:
        """What the session did to files: show, undo, redo, rewind. Its calls block."""
        return self.parts.files

    def rewind(self, message: str, *, talk: bool = True, files: bool = True) -> FilesReport:
        """Goes back to before a message of the user's, given by the beginning of its id: what was said since then, the
        files, or both. Raises `CannotDo`, `StorageError` or `GitError`; the first means that nothing was done."""
        control = self.control
        request = control.request(message).id
        report = self.files.rewind(request, preview=True)
        if talk:
            control.rewind(request)
        return self.files.rewind(request) if files else report

    def compact(self, focus: str | None = None, *, model: bool = True) -> AsyncGenerator[Event, None]:
        """Compacts at once, whatever the filling, and gives the events of it.

        Without a `model` the harness writes the record from the log: the same log gives the same record.
        """
        return self._events(lambda: self._compact(Ask(reason="user", focus=focus, model=model)))

    def steer(self, text: str) -> None:
        """Says something while a run goes on: it joins the conversation after the tools that run now."""
        self._inbox.append(text)

    def allow(self, rule: str) -> None:
        """Allows what `rule` names, for as long as the agent lives. Raises `ConfigError`."""
        self.parts.allow(rule)

    @property
    def waiting(self) -> tuple[str, ...]:
        """What was said to the run and has not joined the conversation yet, oldest first."""
        return tuple(self._inbox)

    def take_back(self) -> str | None:
        """The newest of what was said to a run and has not joined the conversation yet; None if there is nothing."""
        return self._inbox.pop() if self._inbox else None

    def set_mode(self, mode: PermissionMode) -> None:
        """From the next call on, another mode decides what runs without being asked about."""
        self.parts.set_mode(mode)

    def account(self, view: View | None = None) -> Account:
        """What fills the window, in rows that add up. With a `view` taken before, it may run in another thread."""
        self._loop.measure()
        return account(
            prompt=[(part.name, part.text) for part in self._head.parts],
            tools=self._loop.toolbox.texts,
            view=view or self.session.view,
            counter=self.parts.counter,
            meter=self._meter,
            items=items,
        )

    def undo_compaction(self) -> AsyncGenerator[Event, None]:
        """Takes the newest compaction back, if its messages still fit. Automatic compaction then pauses."""
        return self._events(self._undo)

    async def ainvoke(self, prompt: str) -> Result:
        """Runs a prompt to its end."""
        events = [event async for event in self.astream(prompt)]
        ended = events[-1]
        assert isinstance(ended, RunEnded)
        return Result(text=ended.text, outcome=ended.outcome, events=tuple(events))

    def invoke(self, prompt: str) -> Result:
        """`ainvoke` for callers without an event loop."""
        return self._edge.run(lambda: self.ainvoke(prompt))

    def stream(self, prompt: str) -> Iterator[Event]:
        """`astream` for callers without an event loop."""
        return self._edge.iterate(self.astream(prompt))

    def interrupt(self) -> None:
        """Stops the run, in order: what has come so far stays in the log, and `RunEnded` follows. From any thread."""
        if (task := self._task) is not None:
            with suppress(RuntimeError):  # its loop has ended, and the run with it
                task.get_loop().call_soon_threadsafe(task.cancel)  # not at once: a run that never began has no end

    async def aclose(self) -> None:
        """Ends the run, what its commands left running, and the session's use of files and connections."""
        await self._stop()
        await self._ladder.compactor.close()
        try:
            await self.parts.backend.aclose()
            for model in {self.parts.model, self.parts.summary_model} if not self.parts.lent else ():
                await model.aclose()
        finally:
            self.session.close()
            self.parts.on_close()

    def close(self) -> None:
        """`aclose` for callers without an event loop."""
        self._edge.run(self.aclose)
        self._edge.close()

    async def _stop(self) -> None:
        """Ends the run that goes on, if any: its caller may have stopped taking its events."""
        if (task := self._task) is not None:
            self.interrupt()
            await asyncio.wait((task,))

    async def _events(self, work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[Event, None]:
        """The events that `work` emits while it runs on its own task."""
        await self._stop()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._sink = queue.put_nowait
        task = self._task = asyncio.create_task(work())
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            await task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            if self._task is task:
                self._sink = self._task = None

    async def _compact(self, ask: Ask) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.to_thread(self.parts.counter.prepare)
            self._loop.measure()
            await self._ladder.compact(ask)
            await self._head.settle(self._emit)
        self._emit(GaugeChanged(gauge=self.gauge()))

    async def _undo(self) -> None:
        try:
            entry = await asyncio.to_thread(self._ladder.undo)
        except (CannotUndo, StorageError) as reason:
            self._emit(Noticed(text=str(reason)))
        else:
            self._emit(CompactionTakenBack(compaction=entry.compaction))
        self._emit(GaugeChanged(gauge=self.gauge()))

    async def _run_prompt(self, prompt: str) -> None:
        run = self._run = RunState(session=self.session, emit=self._emit)
        outcome: Outcome = "error"
        text, error = "", None
        seconds = self.parts.settings.limits.timeout
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                log_model(self.session, self.parts.model.name)
                await self._windows.find()
                await self._head.begin()
                text, outcome = await self._loop.run(prompt, run), "success"
        except TimeoutError:
            if not limit.expired():
                raise
            outcome, error = "timeout", _problem("timeout", f"the time limit of {seconds:g} s is reached")
        except asyncio.CancelledError:
            outcome = "interrupted"
        except RunStopped as stop:
            outcome, error = stop.outcome, _problem(stop.kind, str(stop))
        except (DeepagentError, StorageError, LogError) as failure:
            error = _problem(getattr(failure, "kind", "storage"), self.parts.masker.mask(str(failure)))
        self._end(run, outcome, text, error)

    def _end(self, run: RunState, outcome: Outcome, text: str, error: Mapping[str, JsonValue] | None) -> None:
        with suppress(StorageError):
            self.session.append(Ended(**self.session.header(), reason=outcome))
            self.session.sync()
        self._run = None
        self._emit(GaugeChanged(gauge=self.gauge()))
        self._emit(
            RunEnded(
                outcome=outcome,
                text=text or (_last_words(self.session) if outcome != "error" else ""),
                turns=run.turns,
                usage=run.usage,
                cost=run.cost,
                compactions=run.compactions,
                error=error,
            )
        )


def _problem(kind: str, message: str) -> dict[str, JsonValue]:
    return {"kind": kind, "message": message}


def _last_words(session: Session) -> str:
    """The newest text of the model, for runs that a limit ended."""
    for message in reversed(session.view.tail):
        if message.role == "assistant" and message.text.strip():
            return message.text
        if message.role == "user":
            break
    return ""
