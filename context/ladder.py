"""The ladder: the steps that make room, the cheapest first, each one entry of the log.

1. On entry: long results and user messages go to files (`context.offload`).
2. From `trim` on where it pays, and always at the trigger: old arguments become stubs (`context.shorten`).
3. At the trigger: compaction (`context.compact`).
4. When the provider says "too long" all the same: the newest results go to files, then a compaction that keeps half.

After two compactions that do not get below the trigger the ladder stops by itself and says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .budget import LEAST_WINDOW, Budget, ContextSettings, budget_for
from .compact import Ask, Compactor
from .entries import Compacted, CompactionUndone, Offloaded, OffloadedBlock, Shortened
from .messages import Text, ToolMessage, UserMessage
from .meter import Meter, Used
from .offload import POINTER_TOKENS, Offloader
from .preview import PREVIEW_TOKENS
from .session import Session
from .shorten import plan_shortening
from .storage import StorageError
from .tokens import Counter
from .view import build_view

Step = Shortened | Offloaded | Compacted
_PAYS = 0.05
"""Share of the budget that shortening must free to be worth a changed prefix before the trigger."""


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
        if self.used.tokens < self.budget.trim:
            return
        at_trigger = self.used.tokens >= self.budget.trigger
        self._shorten(floor=0 if at_trigger else int(_PAYS * self.budget.tokens))
        if self.used.tokens >= self.budget.trigger and self.settings.auto_compact and not self.paused:
            await self._compact_until_below()

    def _shorten(self, floor: int) -> bool:
        """Makes stubs of old arguments if that frees more than `floor` tokens."""
        plan = plan_shortening(self.session.view.tail, self.budget.keep, self.counter)
        if not plan.stubs or plan.tokens_saved <= floor:
            return False
        self._step(Shortened(**self.session.header(), stubs=plan.stubs, tokens_saved=plan.tokens_saved))
        return True

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
        self._shorten(floor=0)
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
