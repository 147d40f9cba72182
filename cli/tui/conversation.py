"""Runs the agent behind the screen: opens it in a thread, sends prompts, steers, queues, interrupts.

Keeps no text of the conversation: what was said is in the session, what waits to be said is in the queue. Events go to
one callback, in order. The agent's modules are imported late, in the thread, so that the first frame does not wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...agent.agent import Agent
    from ...agent.config import PermissionMode
    from ...agent.events import Event
    from ..opening import Opened, Opener

OnEvent = Callable[["Event"], Awaitable[None]]


class Conversation:
    """One screen's talk with an agent; the agent may be replaced, the conversation stays."""

    def __init__(
        self,
        opener: Opener,
        on_event: OnEvent,
        *,
        on_idle: Callable[[], None],
        on_bug: Callable[[Exception], None],
        on_untaken: Callable[[str], None],
    ) -> None:
        """`on_idle` is told when a run has ended and nothing is queued, `on_bug` what nobody had reckoned with,
        `on_untaken` gets a prompt back that could not be taken, as when the disk is full.
        """
        self._opener = opener
        self._on_event = on_event
        self._on_idle = on_idle
        self._on_bug = on_bug
        self._on_untaken = on_untaken
        self._task: asyncio.Task[None] | None = None
        self._model: str | None = None
        """The model that the user chose here; None: the settings'."""
        self.mode: PermissionMode | None = None
        """The same for the permission mode."""
        self.opened: Opened | None = None
        self.queue: list[str] = []
        """What is sent when the run ends, oldest first."""

    @property
    def agent(self) -> Agent | None:
        """The agent, once it is open."""
        return self.opened.agent if self.opened else None

    @property
    def busy(self) -> bool:
        """Something runs that Esc would stop."""
        return self._task is not None and not self._task.done()

    async def open(self, session: str | None = None) -> Opened:
        """Opens an agent in a thread, on `session` if named, and takes it in place of the old one."""
        return await self._open(session, self._model)

    async def change_model(self, name: str) -> Opened:
        """The same session with another model; if that cannot be had, with the old one again."""
        agent = self.agent
        if agent is None or not agent.session.requests():
            return await self._open(None, name)
        session, before = agent.session.id, agent.parts.model.name
        await self._close()
        try:
            return await self._open(session, name)
        except BaseException:
            await self._open(session, before)
            raise

    async def _open(self, session: str | None, model: str | None) -> Opened:
        opened = await asyncio.to_thread(self._opener.open, session=session, model=model)
        await self._close()
        self.opened, self._model = opened, model
        self._opener = replace(self._opener, options=replace(self._opener.options, fork=False))
        if opened.agent is not None and self.mode is not None:
            opened.agent.set_mode(self.mode)
        return opened

    async def _close(self) -> None:
        agent, self.opened = self.agent, None
        if agent is not None:
            await agent.aclose()

    def send(self, text: str) -> None:
        """Runs a prompt; while one runs, the text joins it after the running tools."""
        agent = self.agent
        if agent is None or (self.busy and self._task_is_other):
            self.queue.append(text)
        elif self.busy:
            agent.steer(text)
        else:
            self._start(agent.astream(text), other=False, prompt=text)

    def enqueue(self, text: str) -> None:
        """Keeps a prompt for when the run has ended."""
        self.queue.append(text)

    @property
    def steering(self) -> tuple[str, ...]:
        """What joins the run after the running tools."""
        return self.agent.waiting if self.agent else ()

    def take_back(self) -> str | None:
        """The newest of what was said and has not been taken yet: queued first, then steering."""
        if self.queue:
            return self.queue.pop()
        return self.agent.take_back() if self.agent else None

    def run_command(self, command: str, *, keep: bool) -> None:
        """Runs a command of the user's own; `keep`: the model is told."""
        if self.agent is not None and not self.busy:
            self._start(self.agent.run_command(command, keep=keep), other=True)

    def compact(self, focus: str | None, *, model: bool = True) -> None:
        """Compacts now; without a `model` the record is made from the log."""
        if self.agent is not None and not self.busy:
            self._start(self.agent.compact(focus, model=model), other=True)

    def undo_compaction(self) -> None:
        """Takes the newest compaction back."""
        if self.agent is not None and not self.busy:
            self._start(self.agent.undo_compaction(), other=True)

    def set_mode(self, mode: PermissionMode) -> None:
        """From now on another mode decides what runs without being asked about."""
        self.mode = mode
        if self.agent is not None:
            self.agent.set_mode(mode)

    def allow(self, rule: str) -> None:
        """Allows what `rule` names for the rest of this talk."""
        if self.agent is not None:
            self.agent.allow(rule)

    @property
    def kept(self) -> str:
        """Where a rule for later sessions would be kept, as half a sentence."""
        from ..kept_rules import place_of

        if self.opened is None or not self._opener.options.persist:
            return "in this session only"
        return place_of(self.opened.workspace).text

    async def keep(self, rules: Sequence[str]) -> str:
        """Keeps rules for later sessions, where that is possible; says what came of it."""
        from ...agent.errors import ConfigError
        from ..kept_rules import keep

        if self.opened is None or not self._opener.options.persist:
            return "Allowed in this session"
        try:
            place = await asyncio.to_thread(keep, self.opened.workspace, rules)
        except ConfigError as error:
            return f"Allowed in this session only: {error}"
        return f"Allowed from now on, {place.text}" if place.path else f"Allowed {place.text}"

    def interrupt(self) -> None:
        """Stops what runs, in order."""
        if self.agent is not None:
            self.agent.interrupt()

    async def stop(self) -> None:
        """Stops what runs and waits until its end is in the log. What is queued stays unsent."""
        self.queue.clear()
        self.interrupt()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def close(self) -> None:
        """Stops everything and gives the session back."""
        await self.stop()
        await self._close()

    _task_is_other = False
    """What runs is no prompt: a text cannot join it."""

    def _start(self, events: AsyncGenerator[Event, None], *, other: bool, prompt: str = "") -> None:
        self._task_is_other = other
        self._task = asyncio.create_task(self._follow(events, prompt))
        self._task.add_done_callback(lambda _: self._next())

    async def _follow(self, events: AsyncGenerator[Event, None], prompt: str) -> None:
        from ...agent.events import RunStarted

        untaken = prompt
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    untaken = "" if isinstance(event, RunStarted) else untaken
                    await self._on_event(event)
            if untaken:
                self._on_untaken(untaken)
        except Exception as error:  # noqa: BLE001 - in a task of its own it would pass unseen
            self._on_bug(error)

    def _next(self) -> None:
        """Sends what was queued, or what came too late to join the run."""
        agent = self.agent
        while agent is not None and (late := agent.take_back()) is not None:
            self.queue.insert(0, late)
        if agent is not None and self.queue:
            self.send(self.queue.pop(0))
        else:
            self._on_idle()
