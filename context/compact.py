"""Compaction: older messages go to the archive, a record of them takes their place in the view.

Order: plan, then archive and summary side by side, then one log entry, with which the view changes. Whatever fails
before, nothing has changed: an archive that cannot be written stops the compaction, a summary that cannot be had is
made from the log instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from .archive import Written
from .budget import Budget
from .entries import Compacted, CompactionReason
from .facts import Facts, gather
from .head import Head, compose_head
from .messages import Message, Text, UserMessage, new_id, timestamp
from .meter import Meter
from .plan import Plan, plan_cut
from .session import Session
from .summary import EARLIER, NoSummary, Summarizer, summarize, summary_without_model
from .tokens import Counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Why and how far to compact."""

    reason: CompactionReason
    focus: str | None = None
    """What the summary should pay attention to, in the user's words."""
    keep: float = 1.0
    """Part of the budget's keep that stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """A summary and who wrote it."""

    text: str
    by: Literal["model", "harness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A compaction before it is in the log."""

    id: str
    time: str
    plan: Plan
    originals: tuple[Message, ...]
    """The evicted messages as they were logged, not as the view has them."""
    left: tuple[Message, ...]
    """Every message that is out of the view after the cut, oldest first."""
    facts: Facts
    tokens_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Compacts one session."""

    session: Session
    counter: Counter
    meter: Meter
    summarizer: Callable[[], Summarizer | None]
    """The model to ask for summaries; None where there is none."""
    on_start: Callable[[int], None]
    """Told how many messages are about to leave the view."""
    on_trouble: Callable[[str], None]
    """Told, in a sentence, what went wrong without stopping the compaction."""

    def plan(self, budget: Budget, ask: Ask) -> Plan | None:
        """What would go and what would stay; no model is asked and nothing is written."""
        return plan_cut(
            self.session.view.tail,
            cost=self.counter.message,
            keep=int(budget.keep * ask.keep),
            keep_messages=budget.keep_messages if ask.keep == 1.0 else None,
        )

    async def run(self, budget: Budget, ask: Ask) -> Compacted | None:
        """Compacts; None when there is nothing that could go. Raises `StorageError`; then nothing has changed.

        The entry is in the log, the view and the meter when this returns; making sure of the disk is the caller's.
        """
        plan = self.plan(budget, ask)
        if plan is None:
            return None
        self.on_start(len(plan.evicted))
        draft = self._draft(plan)
        written, record = await self._archive_and_summarize(draft, budget, ask)
        entry = self._entry(draft, ask, written, record, self._head(draft, record, budget))
        self.session.append(entry)  # no await from here on: a cancelled compaction is either whole or not there
        self.meter.add(entry)
        return entry

    def _draft(self, plan: Plan) -> _Draft:
        evicted = {message.id for message in plan.evicted}
        kept = {message.id for message in plan.kept}
        messages = tuple(self.session.messages())
        left = tuple(message for message in messages if message.id not in kept)
        return _Draft(
            id=new_id(),
            time=timestamp(self.session.clock),
            plan=plan,
            originals=tuple(message for message in messages if message.id in evicted),
            left=left,
            facts=gather(left),
            tokens_before=self.meter.used(self.session.view.messages).tokens,
        )

    async def _archive_and_summarize(self, draft: _Draft, budget: Budget, ask: Ask) -> tuple[Written, _Record]:
        tokens = self.counter.messages(draft.plan.evicted)
        record = asyncio.ensure_future(self._record(draft, budget, ask))
        try:
            written = await asyncio.to_thread(self.session.archive.add, draft.id, draft.time, draft.originals, tokens)
            return written, await record
        finally:
            if not record.done():
                record.cancel()
                await asyncio.gather(record, return_exceptions=True)

    async def _record(self, draft: _Draft, budget: Budget, ask: Ask) -> _Record:
        """The model's summary, or the one from the log where that fails."""
        by = self.summarizer()
        if by is not None:
            try:
                return _Record(text=await self._ask(draft, budget, ask, by), by="model")
            except NoSummary as error:
                self.on_trouble(f"{error}; the log's facts take its place")
            except Exception as error:  # noqa: BLE001 - whatever a model call raises, the compaction goes on
                self.on_trouble(f"the summary failed ({error}); the log's facts take its place")
        text = summary_without_model(
            draft.originals,
            previous=self._previous(by="model"),
            facts=draft.facts,
            todos=self.session.view.todos,
            limit=budget.summary_limit,
            counter=self.counter,
        )
        return _Record(text=text, by="harness")

    async def _ask(self, draft: _Draft, budget: Budget, ask: Ask, by: Summarizer) -> str:
        return await summarize(
            draft.originals,
            previous=self._previous(),
            focus=ask.focus,
            limit=budget.summary_limit,
            by=by,
            counter=self.counter,
        )

    def _previous(self, *, by: Literal["model", "anyone"] = "anyone") -> str | None:
        """The record of what left the view before; only what a model wrote of it, if asked for that."""
        head = self.session.view.head
        if head is None:
            return None
        return head.summary.partition(EARLIER)[2] if by == "model" and head.by == "harness" else head.summary

    def _head(self, draft: _Draft, record: _Record, budget: Budget) -> Head:
        return compose_head(
            requests=[m for m in draft.left if isinstance(m, UserMessage) and not m.synthetic],
            summary=record.text,
            facts=draft.facts,
            todos=self.session.view.todos,
            archive=" and ".join(self._archives()),
            evicted=len(draft.left),
            budget=budget,
            counter=self.counter,
        )

    @property
    def _archive(self) -> str:
        return self.session.storage.shown(self.session.archive.name)

    def _archives(self) -> tuple[str, ...]:
        """Where what left the view stands: a forked session's oldest part is in another session's archive."""
        earlier = [entry.archive for entry in self.session.entries if isinstance(entry, Compacted)]
        return tuple(dict.fromkeys((*earlier, self._archive)))

    def _entry(self, draft: _Draft, ask: Ask, written: Written, record: _Record, head: Head) -> Compacted:
        return Compacted(
            id=draft.id,
            time=draft.time,
            parent=self.session.header()["parent"],
            first_kept=draft.plan.kept[0].id,
            summary=record.text,
            by=record.by,
            shown=head.text,
            requests=head.requests,
            archive=self._archive,
            archive_start=written.start,
            archive_end=written.end,
            tokens_before=draft.tokens_before,
            tokens_after=self._after(draft.plan.kept, head.text),
            messages=len(draft.originals),
            files_read=draft.facts.read,
            files_changed=tuple(changed.path for changed in draft.facts.changed),
            reason=ask.reason,
        )

    def _after(self, kept: Sequence[Message], head: str) -> int:
        first = UserMessage(id="", time="", content=(Text(text=head),), synthetic=True)
        return self.meter.scale(self.meter.count((first, *kept)))
