"""The record of what leaves the view: from a model in one of two forms, prepared or not, or from the log.

A prepared record was begun while the work went on. It serves if the cut that it was made for is still there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .budget import Budget
from .cache import CacheTerms, is_cold
from .entries import Compacted, CompactionReason
from .facts import Facts
from .messages import Message
from .meter import Meter
from .plan import Plan
from .session import Session
from .summary import EARLIER, TOLD, NoSummary, Summarizer, summarize, summarize_by_extending, summary_without_model
from .tokens import Counter
from .view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Why and how far to compact."""

    reason: CompactionReason
    focus: str | None = None
    """What the summary should pay attention to, in the user's words."""
    keep: float = 1.0
    """Part of the budget's keep that stays."""
    model: bool = True
    """A model may write the summary; without one, the same log always gives the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A summary and who wrote it."""

    text: str
    by: Literal["model", "harness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a record is made of."""

    plan: Plan
    originals: tuple[Message, ...]
    """The evicted messages as they were logged, not as the view has them."""
    facts: Facts
    used: int
    """Tokens of a request before the compaction."""
    since: int
    """How many entries the log had when it was begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A record that is being made, or is made, before it is needed."""

    material: Material
    head: Compacted | None
    """The head that the view had."""
    record: asyncio.Task[Record | None]

    def plan(self, view: View) -> Plan | None:
        """The cut that the record was made for, in the view as it is now; None if it is not there any more."""
        evicted, kept = self.material.plan.evicted, self.material.plan.kept
        cut = len(evicted)
        if view.head is not self.head or _ids(view.tail[: cut + 1]) != [*_ids(evicted), kept[0].id]:
            return None
        return Plan(evicted=view.tail[:cut], kept=view.tail[cut:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Gets records for one session."""

    session: Session
    counter: Counter
    meter: Meter
    summarizer: Callable[[], Summarizer | None]
    """The model to ask for summaries; None where there is none."""
    on_trouble: Callable[[str], None]
    """Told, in a sentence, what went wrong without stopping the compaction."""
    cache: CacheTerms = field(default_factory=CacheTerms)

    def prepare(self, material: Material, budget: Budget) -> Prepared | None:
        """Begins a record for a compaction to come; None where no model is there to ask."""
        by = self.summarizer()
        if by is None:
            return None
        asking = _quietly(self._asked(material, budget, Ask(reason="trigger"), by))
        return Prepared(material=material, head=self.session.view.head, record=asyncio.create_task(asking))

    async def record(self, material: Material, budget: Budget, ask: Ask, prepared: Prepared | None) -> Record:
        """The model's record, or the one from the log where that fails."""
        if prepared is not None and (record := await asyncio.shield(prepared.record)):
            return record
        by = self.summarizer() if ask.model else None
        if by is not None:
            try:
                return Record(text=await self._asked(material, budget, ask, by), by="model")
            except NoSummary as error:
                self.on_trouble(f"{error}; the log's facts take its place")
            except Exception as error:  # noqa: BLE001 - whatever a model call raises, the compaction goes on
                self.on_trouble(
                    f"the summary failed ({str(error) or type(error).__name__}); the log's facts take its place"
                )
        text = summary_without_model(
            material.originals,
            previous=self.previous(by="model"),
            facts=material.facts,
            todos=self.session.view.todos,
            limit=budget.summary_limit,
            counter=self.counter,
        )
        return Record(text=text, by="harness")

    async def _asked(self, material: Material, budget: Budget, ask: Ask, by: Summarizer) -> str:
        """What the model writes. Raises `NoSummary`, or what the model call raises."""
        if by.extend is not None and self._extending_is_cheaper(material, budget, ask, by):
            try:
                return await summarize_by_extending(
                    material.plan.kept[0], focus=ask.focus, limit=budget.summary_limit, by=by, counter=self.counter
                )
            except Exception as error:  # noqa: BLE001 - whatever it was, the other form is to be tried
                self.on_trouble(f"the summary is asked for in another form ({str(error) or type(error).__name__})")
        return await summarize(
            material.originals,
            previous=self.previous(),
            focus=ask.focus,
            limit=budget.summary_limit,
            by=by,
            counter=self.counter,
        )

    def price(self, material: Material, budget: Budget, ask: Ask) -> tuple[int, int]:
        """The tokens that a model would be sent for the record, and how many of them are likely cached."""
        by = self.summarizer() if ask.model else None
        if by is None:
            return 0, 0
        if by.extend is not None and self._extending_is_cheaper(material, budget, ask, by):
            return material.used, 0 if self._cold else material.used
        return self._told(material), 0

    def _extending_is_cheaper(self, material: Material, budget: Budget, ask: Ask, by: Summarizer) -> bool:
        """Whether the form that extends the conversation fits into the window, and costs less than the other."""
        if ask.reason == "overflow" or material.used + 3 * budget.summary_limit > by.window:
            return False
        return material.used * (1.0 if self._cold else self.cache.read) < self._told(material)

    @property
    def _cold(self) -> bool:
        last = self.meter.last_report
        return last is None or is_cold(self.cache, last.time, self.session.clock)

    def _told(self, material: Material) -> int:
        """About the tokens of the evicted messages as plain text."""
        return sum(min(self.counter.message(message), TOLD) for message in material.plan.evicted)

    def previous(self, *, by: Literal["model", "anyone"] = "anyone") -> str | None:
        """The record of what left the view before; only what a model wrote of it, if asked for that."""
        head = self.session.view.head
        if head is None:
            return None
        text = head.summary.partition(EARLIER)[2] if by == "model" and head.by == "harness" else head.summary
        return "\n".join((text, *(f"- {line}" for line in head.reattached)))


def _ids(messages: Sequence[Message]) -> list[str]:
    return [message.id for message in messages]


async def _quietly(asking: Awaitable[str]) -> Record | None:
    try:
        return Record(text=await asking, by="model")
    except Exception:  # noqa: BLE001 - whatever it was: the compaction asks again and then says so
        return None
