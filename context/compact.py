"""Compaction: older messages go to the archive, a record of them takes their place in the view.

Order: plan, then archive and record side by side, then one log entry, with which the view changes. Whatever fails
before, nothing has changed: an archive that cannot be written stops the compaction. How the record is got is the
business of `context.record`, when to compact the ladder's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace

from .archive import Written
from .budget import Budget
from .check import lost_lines
from .entries import Compacted, UsageReported
from .facts import gather
from .head import Head, compose_head
from .messages import Message, Text, UserMessage, new_id, timestamp
from .meter import Meter
from .plan import Plan, plan_cut
from .record import Ask, Material, Prepared, Record, Recorder
from .session import Session
from .summary import transcript
from .tokens import Counter


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A compaction before it is in the log."""

    id: str
    time: str
    began: float
    material: Material
    archived: tuple[Message, ...]
    """What goes to the archive: the evicted messages, and notes between them that had left the view before."""
    left: tuple[Message, ...]
    """Every message that is out of the view after the cut, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a compaction would do. All figures are tokens."""

    plan: Plan
    """What would leave the view, and what would stay as it is behind the record."""
    requests: tuple[str, ...]
    """The ids of the user's messages that the record would repeat word for word."""
    before: int
    after: int
    """About: the record is not written yet."""
    sent: int
    """What the model that writes the record would be sent, cached tokens included; 0 without one."""
    cached: int
    """How many of these are likely to come from the provider's cache."""
    record: int
    """The most that the record may have."""


@dataclass(slots=True, kw_only=True)
class Compactor:
    """Compacts one session."""

    session: Session
    counter: Counter
    meter: Meter
    recorder: Recorder
    on_start: Callable[[int], None]
    """Told how many messages are about to leave the view."""
    _prepared: Prepared | None = None

    def plan(self, budget: Budget, ask: Ask) -> Plan | None:
        """What would go and what would stay; no model is asked and nothing is written."""
        return plan_cut(
            self.session.view.tail,
            cost=self.counter.message,
            keep=int(budget.keep * ask.keep),
            keep_messages=budget.keep_messages if ask.keep == 1.0 else None,
        )

    def preview(self, budget: Budget, ask: Ask) -> Preview | None:
        """What a compaction would do now; None where nothing could go. No model is asked and nothing is written."""
        plan = self.plan(budget, ask)
        if plan is None:
            return None
        draft = self._draft(plan)
        head = self._head(draft, Record(text="", by="harness"), budget)
        sent, cached = self.recorder.price(draft.material, budget, ask)
        return Preview(
            plan=plan,
            requests=head.requests,
            before=draft.material.used,
            after=self._after(plan.kept, head.text) + budget.summary_limit,
            sent=sent,
            cached=cached,
            record=budget.summary_limit,
        )

    def prepare(self, budget: Budget) -> None:
        """Begins a record for a compaction to come, if none is under way."""
        if self._prepared is None and (plan := self.plan(budget, Ask(reason="trigger"))):
            self._prepared = self.recorder.prepare(self._draft(plan).material, budget)

    async def close(self) -> None:
        """Gives up what was being prepared."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            prepared.record.cancel()
            await asyncio.gather(prepared.record, return_exceptions=True)

    async def run(self, budget: Budget, ask: Ask) -> Compacted | None:
        """Compacts; None when there is nothing that could go. Raises `StorageError`; then nothing has changed.

        The entry is in the log, the view and the meter when this returns; making sure of the disk is the caller's.
        """
        prepared, plan = self._plan(budget, ask)
        if plan is None:
            return None
        self.on_start(len(plan.evicted))
        draft = self._draft(plan)
        written, record = await self._archive_beside(draft, self.recorder.record(draft.material, budget, ask, prepared))
        since = prepared.material.since if prepared else draft.material.since
        entry = replace(self._entry(draft, ask, written, record, budget), cost=self._spent(since))
        self.session.append(entry)  # no await from here on: a cancelled compaction is either whole or not there
        self.meter.add(entry)
        self._prepared = None
        return entry

    def _plan(self, budget: Budget, ask: Ask) -> tuple[Prepared | None, Plan | None]:
        """The cut, and the record that was prepared for it, if it is still of use."""
        prepared = self._prepared
        plan = prepared.plan(self.session.view) if prepared and ask == Ask(reason="trigger") else None
        if prepared is not None and plan is None:
            prepared.record.cancel()
            self._prepared = prepared = None
        return prepared, plan or self.plan(budget, ask)

    def _draft(self, plan: Plan) -> _Draft:
        evicted = {message.id for message in plan.evicted}
        kept = {message.id for message in plan.kept}
        messages = tuple(self.session.messages())
        left = tuple(message for message in messages if message.id not in kept)
        material = Material(
            plan=plan,
            originals=tuple(message for message in messages if message.id in evicted),
            facts=gather(left),
            used=self.meter.used(self.session.view.messages).tokens,
            since=len(self.session.entries),
        )
        first = plan.evicted[0].id
        begin = next((at for at, message in enumerate(left) if message.id == first), 0)
        return _Draft(
            id=new_id(),
            time=timestamp(self.session.clock),
            began=time.monotonic(),
            material=material,
            archived=tuple(self._earlier_notes(left[:begin])) + left[begin:],
            left=left,
        )

    def _earlier_notes(self, left: Sequence[Message]) -> Iterator[Message]:
        """Notes right before the evicted messages: they were folded into the prompt since the last compaction."""
        head = self.session.view.head
        since = next((at for at, m in enumerate(left) if head is not None and m.id == head.first_kept), 0)
        return (m for m in left[since:] if isinstance(m, UserMessage) and m.part is not None)

    async def _archive_beside(self, draft: _Draft, recording: Coroutine[None, None, Record]) -> tuple[Written, Record]:
        """Writes the archive while the record is made."""
        material = draft.material
        tokens = self.counter.messages(material.plan.evicted)
        record = asyncio.ensure_future(recording)
        try:
            archive = self.session.archive
            written = await asyncio.to_thread(archive.add, draft.id, draft.time, draft.archived, tokens)
            return written, await record
        finally:
            if not record.done():
                record.cancel()
                await asyncio.gather(record, return_exceptions=True)

    def _spent(self, since: int) -> float | None:
        """US dollars of the summaries that the log has from entry `since` on; None where that is not known."""
        entries = self.session.entries[since:]
        costs = [entry.cost for entry in entries if isinstance(entry, UsageReported) and entry.purpose == "summary"]
        return None if not costs or None in costs else sum(filter(None, costs))

    def _head(self, draft: _Draft, record: Record, budget: Budget, reattached: Sequence[str] = ()) -> Head:
        view = self.session.view
        return compose_head(
            requests=[m for m in draft.left if isinstance(m, UserMessage) and not m.synthetic],
            summary=record.text,
            facts=draft.material.facts,
            todos=view.todos,
            pins=view.pins,
            reattached=reattached,
            archive=" and ".join(self._archives()),
            evicted=len(draft.left),
            budget=budget,
            counter=self.counter,
        )

    def _checked_head(self, draft: _Draft, record: Record, budget: Budget) -> tuple[Head, tuple[str, ...]]:
        """The head, and the lines of the earlier record that the new one lacked and the head has all the same."""
        head = self._head(draft, record, budget)
        now = "\n".join((head.text, *map(transcript, draft.material.plan.kept)))
        earlier = self.recorder.previous() or ""
        lost = lost_lines(earlier, now, limit=budget.reattach_limit, counter=self.counter)
        return (self._head(draft, record, budget, lost), lost) if lost else (head, ())

    @property
    def _archive(self) -> str:
        return self.session.storage.shown(self.session.archive.name)

    def _archives(self) -> tuple[str, ...]:
        """Where what left the view stands: a forked session's oldest part is in another session's archive."""
        earlier = [entry.archive for entry in self.session.entries if isinstance(entry, Compacted)]
        return tuple(dict.fromkeys((*earlier, self._archive)))

    def _entry(self, draft: _Draft, ask: Ask, written: Written, record: Record, budget: Budget) -> Compacted:
        material = draft.material
        head, reattached = self._checked_head(draft, record, budget)
        return Compacted(
            id=draft.id,
            time=draft.time,
            parent=self.session.header()["parent"],
            first_kept=material.plan.kept[0].id,
            summary=record.text,
            by=record.by,
            shown=head.text,
            requests=head.requests,
            archive=self._archive,
            archive_start=written.start,
            archive_end=written.end,
            tokens_before=material.used,
            tokens_after=self._after(material.plan.kept, head.text),
            messages=len(material.originals),
            files_read=material.facts.read,
            files_changed=tuple(changed.path for changed in material.facts.changed),
            reason=ask.reason,
            reattached=reattached,
            seconds=round(time.monotonic() - draft.began, 3),
        )

    def _after(self, kept: Sequence[Message], head: str) -> int:
        first = UserMessage(id="", time="", content=(Text(text=head),), synthetic=True)
        return self.meter.scale(self.meter.count((first, *kept)))
