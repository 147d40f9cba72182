"""The ladder: the steps that make room, the cheapest first, each one entry of the log.

1. On entry: long results and user messages go to files (`context.offload`).
2. From `trim` on where it pays, and always at the trigger: old arguments become stubs, stale reads and old results
   pointers (`context.trim`). After a pause that no prompt cache outlives it may come earlier: it costs nothing then.
3. At the trigger: compaction (`context.compact`).
4. When the provider says "too long" all the same: the newest results go to files, then a compaction that keeps half.

After two compactions that do not get below the trigger the ladder stops by itself and says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .budget import LEAST_WINDOW, Budget, ContextSettings, budget_for
from .cache import CacheTerms, is_cold, pays
from .compact import Compactor
from .entries import Compacted, CompactionUndone, Offloaded, OffloadedBlock, Shortened
from .messages import AssistantMessage, Text, ToolMessage, UserMessage, new_id, timestamp
from .meter import Meter, Used
from .offload import POINTER_TOKENS, Offloader
from .preview import PREVIEW_TOKENS
from .record import Ask
from .session import Session
from .storage import StorageError
from .tokens import Counter
from .trim import Trim, plan_trim, point
from .view import build_view

Step = Shortened | Offloaded | Compacted
_PAYS = 0.05
"""Share of the budget that trimming must free to be worth a changed prefix before the trigger."""
_PINNED = "The user has pinned this; it holds from now on, word for word:"
_EASED = 0.9
"""Part of the trigger below which trimming must come there, or compaction follows at once."""


class CannotUndo(Exception):
    """A compaction cannot be taken back; the text says why, with numbers."""


@dataclass(slots=True, kw_only=True)
class Ladder:
    """Keeps one session's requests within its budget."""

    session: Session
    counter: Counter
    meter: Meter
    settings: ContextSettings
    budget: Budget
    offloader: Offloader
    compactor: Compactor
    on_step: Callable[[Step], None]
    on_trouble: Callable[[str], None]
    may_prepare: Callable[[], bool] = lambda: False
    """Whether a summary may be asked for beside the work: a server with one slot would lose its cache."""
    paused: bool = False
    """Automatic compaction is off until the next user message, and why has been said."""

    @property
    def used(self) -> Used:
        """What the next request takes."""
        return self.meter.used(self.session.view.messages)

    def admit_user(self, message: UserMessage) -> UserMessage:
        """A user's message on its way in. Raises `StorageError`."""
        self.paused = False
        return self.offloader.user(message, self.budget)

    def admit_results(self, messages: Sequence[ToolMessage]) -> tuple[ToolMessage, ...]:
        """The results of one step on their way in; when no file can be written they stay whole, and that is said."""
        try:
            return self.offloader.results(messages, self.budget)
        except StorageError as error:
            self.on_trouble(f"a long result stays in the view: {error}")
            return tuple(messages)

    async def make_room(self) -> None:
        """Before a request: the steps that its size asks for."""
        self._tell_pins()
        budget, used = self.budget, self.used.tokens
        if not self.settings.auto_compact or (used < budget.trim and not self._cold):
            return
        at_trigger = used >= budget.trigger
        if at_trigger or used > budget.trim_to:
            target = min(budget.trim_to, used // 2) if self._cold else budget.trim_to
            self._trim(enough=used - target, always=at_trigger)
        if at_trigger and self.used.tokens >= _EASED * budget.trigger and not self.paused:
            await self._compact_until_below()
        elif budget.prepare <= self.used.tokens < budget.trigger and not self.paused and self.may_prepare():
            self.compactor.prepare(budget)

    def _tell_pins(self) -> None:
        """Says what was pinned and stands nowhere in the view yet."""
        view = self.session.view
        if not view.pins:
            return
        seen = {m.id for m in view.tail}
        told = {m.part for m in view.tail if isinstance(m, UserMessage)}
        head = view.head.shown if view.head else ""
        for pin in view.pins:
            part = f"pin:{pin.id}"
            if pin.message not in seen and part not in told and pin.text not in head:
                content = (Text(text=f"{_PINNED}\n{pin.text}"),)
                time = timestamp(self.session.clock)
                self.session.say(UserMessage(id=new_id(), time=time, content=content, synthetic=True, part=part))

    @property
    def cache(self) -> CacheTerms:
        """The terms of the model's prompt cache."""
        return self.compactor.recorder.cache

    @property
    def _cold(self) -> bool:
        """The provider's cache has ended since the last request: a changed prefix costs nothing."""
        last = self.meter.last_report
        return last is not None and is_cold(self.cache, last.time, self.session.clock)

    def trim(self) -> bool:
        """Lets go of all that may leave the view without a model, whether or not it pays; whether anything did."""
        return self._trim(enough=self.budget.tokens, always=True)

    def _trim(self, *, enough: int, always: bool) -> bool:
        """Lets go of what is old, if that pays or is to be done `always`; one entry for all of it."""
        view = self.session.view
        plan = plan_trim(
            view.tail,
            keep=self.budget.keep,
            enough=enough,
            counter=self.counter,
            spared=lambda m: m.tool in self.settings.keep_results or m.id in view.restored,
        )
        if plan.saved <= 0 or not (always or self._pays(plan)):
            return False
        try:
            results = tuple(point(result, self.offloader) for result in plan.results)
        except StorageError as error:
            self.on_trouble(f"old results stay in the view: {error}")
            results = ()
        if not (plan.stubs.stubs or results):
            return False
        self._step(Shortened(**self.session.header(), stubs=plan.stubs.stubs, results=results, tokens_saved=plan.saved))
        return True

    def _pays(self, plan: Trim) -> bool:
        if plan.saved < _PAYS * self.budget.tokens:
            return False
        tail = self.session.view.tail
        answers = sum(isinstance(message, AssistantMessage) for message in tail)
        growth = self.counter.messages(tail) // max(1, answers)
        return self._cold or pays(self.cache, saved=plan.saved, resent=plan.resent, growth=growth)

    async def _compact_until_below(self) -> None:
        """Compacts, once more with half the keep if need be; stops and says why when even that does not help."""
        for keep in (1.0, 0.5):
            if not await self.compact(Ask(reason="trigger", keep=keep)):
                break
            if self.used.tokens < self.budget.trigger:
                return
        if not self.paused:
            self._pause()

    def _pause(self) -> None:
        self.paused = True
        fixed = self.meter.scale(self.meter.overhead)
        self.on_trouble(
            f"compaction does not get below {self.budget.trigger:,} tokens: {self.used.tokens:,} stay, of which "
            f"prompt, memory, skills and tools are {fixed:,}. It pauses until your next message. Shorten AGENTS.md, "
            "use a larger window, or start a new session."
        )

    async def compact(self, ask: Ask) -> Compacted | None:
        """Compacts now; None when nothing could go or archive or log could not be written (which is then said).

        Raises `StorageError` if the disk does not confirm the entry.
        """
        try:
            entry = await self.compactor.run(self.budget, ask)
        except StorageError as error:
            self.paused = True
            self.on_trouble(f"not compacted, all messages stay: {error}")
            return None
        if entry is not None:
            self.on_step(entry)
            await asyncio.to_thread(self.session.sync)
        return entry

    def undo(self) -> CompactionUndone:
        """Takes the newest compaction back and pauses automatic compaction. Raises `CannotUndo` or `StorageError`."""
        head = self.session.view.head
        if head is None:
            raise CannotUndo("there is no compaction to take back")
        entry = CompactionUndone(**self.session.header(), compaction=head.id)
        messages = build_view((*self.session.entries, entry)).messages
        tokens = self.meter.scale(self.meter.count(messages))
        if tokens > self.budget.tokens:
            raise CannotUndo(
                f"the compaction cannot be taken back: its messages have {tokens:,} tokens, and {self.budget.tokens:,} "
                "are the limit. They stand in the archive"
            )
        self.session.append(entry)
        self.session.sync()
        self.meter.add(entry)
        self.paused = True
        return entry

    async def rescue(self, attempt: int) -> bool:
        """After "too long": makes the request smaller than the one that was refused; False when nothing helps."""
        before = self._counted
        if attempt == 1:
            self._offload_newest()
            if self._counted < before:
                return True
        self.trim()
        await self.compact(Ask(reason="overflow", keep=0.5))
        return self._counted < before

    @property
    def _counted(self) -> int:
        return self.meter.count(self.session.view.messages)

    def _offload_newest(self) -> None:
        """Writes the newest step's results to files, whatever their size, if a pointer is shorter."""
        blocks: list[OffloadedBlock] = []
        try:
            for message in _newest_results(self.session):
                for number, block in enumerate(message.content):
                    if isinstance(block, Text) and self.counter.about(block.text) > PREVIEW_TOKENS + POINTER_TOKENS:
                        pointer = self.offloader.pointer(block.text, message.tool)
                        blocks.append(OffloadedBlock(message=message.id, block=number, pointer=pointer))
        except StorageError as error:
            self.on_trouble(f"a long result stays in the view: {error}")
        if blocks:
            self._step(Offloaded(**self.session.header(), blocks=tuple(blocks)))

    def _step(self, entry: Shortened | Offloaded) -> None:
        self.session.append(entry)
        self.session.sync()
        self.meter.add(entry)
        self.on_step(entry)

    def lower_window(self, tokens: int) -> None:
        """Takes the window that an overflow error named; one too small for any work is not believed to the letter."""
        window = replace(self.budget.window, tokens=max(tokens, LEAST_WINDOW), source="overflow")
        self.budget = budget_for(window, self.settings)


def _newest_results(session: Session) -> list[ToolMessage]:
    results: list[ToolMessage] = []
    for message in reversed(session.view.tail):
        if not isinstance(message, ToolMessage):
            break
        results.append(message)
    return results
