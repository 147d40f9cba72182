"""What the context layer did, in the transcript: compactions and their progress, quiet lines, and marks on cards."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from ...agent.events import CompactionDone, Gauge, Offloading, Trimmed
from ..gauge import tokens, what_left
from .places import Places
from .steps import ProgressLine, QuietLine, Step, StepLine
from .transcript import Entry, Transcript


class Mark(Protocol):
    """Shows on a card how much of its result the model has; None leaves a mark as it is."""

    def __call__(self, call_id: str, *, archived: bool | None = None, pointer: bool | None = None) -> None: ...


@dataclass(slots=True)
class _Compaction:
    """A compaction's line, and how many messages are out of the view with it."""

    step: Step
    entry: Entry[StepLine]
    cut: int

    def show(self) -> None:
        if self.entry.widget is not None:
            self.entry.widget.show()


@dataclass(slots=True)
class LadderLines:
    """The steps of one session's ladder."""

    _transcript: Transcript
    _places: Places
    _mark: Mark
    _compactions: list[_Compaction] = field(default_factory=list[_Compaction])
    _progress: Entry[ProgressLine] | None = None
    _offloads: list[Offloading] = field(default_factory=list[Offloading])
    _gauge: Gauge | None = None
    _unpriced: tuple[_Compaction, float] | None = None
    """A compaction and what the session had cost before it: the next gauge tells its cost."""

    def offloaded(self, event: Offloading) -> None:
        """A text went to a file. If it is new, its card will say so; if it was in the view, a line will."""
        if event.message in self._places:
            self._offloads.append(event)
            if call_id := self._places.call_of(event.message):
                self._mark(call_id, pointer=True)

    def tell_offloads(self) -> None:
        """One line for all that went to files in one step."""
        offloads, self._offloads = self._offloads, []
        if offloads:
            freed = sum(event.tokens - event.shown_tokens for event in offloads)
            self._quiet(freed, what_left(0, len(offloads)))

    def trimmed(self, event: Trimmed) -> None:
        """Old arguments and results left the view."""
        for message in event.results:
            if call_id := self._places.call_of(message):
                self._mark(call_id, pointer=True)
        self._quiet(event.tokens_saved, what_left(event.stubs, len(event.results)))

    def restored(self, message: str) -> None:
        """A result is in the view again."""
        if call_id := self._places.call_of(message):
            self._mark(call_id, pointer=False)

    def _quiet(self, freed: int, what: str) -> None:
        text = f"freed {tokens(freed)} · {what} · no model call"
        self._transcript.add(lambda: QuietLine(text))

    def started(self, messages: int) -> None:
        """A compaction runs."""
        self.stop()
        began = time.monotonic()
        self._progress = self._transcript.add(lambda: ProgressLine(messages, began))

    def stop(self) -> None:
        """The compaction that ran has ended, one way or another."""
        if self._progress is not None:
            self._transcript.remove_entry(self._progress)
            self._progress = None

    def done(self, event: CompactionDone) -> None:
        """A compaction is in the log."""
        self.stop()
        gone = self._gone
        cut = self._places.cut(event.entry, gone)
        step = Step(
            number=len(self._compactions) + 1,
            entry=event.entry,
            archive=event.archive,
            seconds=event.seconds,
            window=self._gauge.window if self._gauge else None,
            requests=self._places.kept(event.entry, cut),
            asked=self._places.requests,
            cost=event.entry.cost,
        )
        self._compactions.append(_Compaction(step, self._transcript.add(lambda: StepLine(step)), cut))
        if step.cost is None and self._gauge is not None and self._gauge.cost is not None:
            self._unpriced = (self._compactions[-1], self._gauge.cost)
        self._show_newest()
        self._mark_archived(gone, cut, archived=True)

    def taken_back(self, compaction: str) -> None:
        """A compaction does not hold any more."""
        gone = self._gone
        for one in self._compactions:
            if one.step.entry.id == compaction:
                one.step.undone = True
                one.show()
        self._show_newest()
        self._mark_archived(self._gone, gone, archived=False)

    def gauged(self, gauge: Gauge) -> None:
        """The window's filling has changed; a compaction that still seems to run was stopped."""
        self.stop()
        self._gauge = gauge
        if self._unpriced is not None and gauge.cost is not None:
            compaction, before = self._unpriced
            compaction.step.cost = gauge.cost - before
            compaction.show()
        self._unpriced = None

    @property
    def _gone(self) -> int:
        """How many messages are out of the view."""
        return max((one.cut for one in self._compactions if not one.step.undone), default=0)

    def _show_newest(self) -> None:
        """Only the newest compaction that holds can be taken back."""
        holding = [one for one in self._compactions if not one.step.undone]
        for one in self._compactions:
            newest = bool(holding) and one is holding[-1]
            if one.step.newest != newest:
                one.step.newest = newest
                one.show()

    def _mark_archived(self, start: int, end: int, *, archived: bool) -> None:
        for call_id in self._places.calls(start, end):
            self._mark(call_id, archived=archived)
