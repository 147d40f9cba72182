"""How full the window is: the one figure that footer, `/context`, JSON output and triggers share.

`used` is the provider's last report plus our count of what has come (or gone) since, scaled by how the provider's
figures compare with ours in this session (`context.calibration`). Before the first report it is our count with
a margin.

Reports hold counts of the tokenizer, and estimates are no match for them: until its tables are there (`Counter.exact`),
only what came after the reported request is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .calibration import PLAUSIBLE, Calibration, Counts
from .entries import (
    Compacted,
    CompactionUndone,
    Dropped,
    Entry,
    Offloaded,
    PromptPart,
    Restored,
    Rewound,
    Shortened,
    UsageReported,
)
from .messages import Message
from .tokens import Counter

Source = Literal["reported", "counted", "estimated"]

MARGIN = 1.10
"""On our count while no report is there: other tokenizers and chat templates need up to about a tenth more."""
_ENOUGH = 500
"""Counted tokens below which a ratio says little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Tokens of a request, and how the figure was got."""

    tokens: int
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Messages that were counted, and how."""

    messages: Sequence[Message]
    exact: bool
    tokens: int


def _same(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages both begin with."""
    for position, (one, other) in enumerate(zip(before, now, strict=False)):
        if one is not other:
            return position
    return min(len(before), len(now))


def _since(base: UsageReported, messages: Sequence[Message]) -> Sequence[Message]:
    """The reported request's answer and all after it; empty where that cannot be told."""
    for position in range(len(messages) - 1, -1, -1):
        if messages[position].id == base.message:
            return messages[position:]
    return ()


class Meter:
    """Measures requests to one model in one session."""

    def __init__(self, counter: Counter, model: str) -> None:
        self._counter = counter
        self._model = model
        self._ratio: float | None = None
        """Of the last whole request."""
        self._calibration = Calibration()
        """For what comes after it."""
        self._base: UsageReported | None = None
        self._changed = False
        """The view was made smaller or larger since the last report."""
        self.suspicious: UsageReported | None = None
        """The last report, if its figure cannot be true of the whole request."""
        self._last = _Counted(messages=(), exact=False, tokens=0)
        self.overhead = 0
        """Tokens of system prompt and tool schemas."""

    @property
    def last_report(self) -> UsageReported | None:
        """The last report that could be believed."""
        return self._base

    @property
    def reported(self) -> bool:
        """A report of the provider is there to go by."""
        return self._base is not None

    def add(self, entry: Entry) -> None:
        """Takes an entry of the log."""
        match entry:
            case UsageReported(purpose="turn") if entry.model == self._model:
                self._take(entry)
            case Compacted() | CompactionUndone() | Offloaded() | Shortened() | Dropped() | Restored() | Rewound():
                self._changed = True
            case PromptPart():
                self._changed = True  # notes on the part have left the view
            case _:
                pass

    def _take(self, report: UsageReported) -> None:
        if report.usage.input <= 0 or report.counted <= 0:
            return  # some servers report nothing as zero; answers that were passed over are not counted
        low, high = PLAUSIBLE
        ratio = report.usage.input / report.counted
        if report.counted >= _ENOUGH and not low <= ratio <= high:
            self.suspicious = report
            return
        if report.counted >= _ENOUGH:
            self._calibrate(report)
            self._ratio = ratio
        self._base, self._changed, self.suspicious = report, False, None

    def _calibrate(self, report: UsageReported) -> None:
        """Learns from a report on the request that was counted last; from an older one only the ratio of the whole."""
        base, messages, reported = self._base, self._last.messages, report.usage.input
        if self.overhead + self._last.tokens != report.counted or not self._last.exact:
            self._calibration = Calibration()
            self._calibration.begin(Counts(all=report.counted), reported)
        elif base is None or self._changed or not (new := _since(base, messages)):
            self._calibration.begin(Counts(all=report.counted, beyond=self._beyond(messages)), reported)
        else:
            grown = Counts(all=report.counted - base.counted, beyond=self._beyond(new))
            self._calibration.go_on(grown, reported - base.usage.input)

    def count(self, messages: Sequence[Message]) -> int:
        """Our own count of a request with these messages; costs only what differs from the last one."""
        last, exact = self._last, self._counter.exact
        if last.exact is not exact:
            last = _Counted(messages=(), exact=exact, tokens=0)
        if last.messages is not messages:
            same = _same(last.messages, messages)
            gone, new = last.messages[same:], messages[same:]
            tokens = last.tokens - self._counter.messages(gone) + self._counter.messages(new)
            last = _Counted(messages=messages, exact=exact, tokens=tokens)
        self._last = last
        return self.overhead + last.tokens

    def used(self, messages: Sequence[Message]) -> Used:
        """What a request with these messages takes."""
        base, exact = self._base, self._counter.exact
        if base is None:
            return Used(tokens=int(self.count(messages) * MARGIN), source="counted" if exact else "estimated")
        if not exact:
            since = self._estimate_since(base, messages)
            if since is None:
                return Used(tokens=self.count(messages), source="estimated")
            return Used(tokens=base.usage.input + int(since * (self._ratio or 1.0)), source="reported")
        more = self.count(messages) - base.counted
        if self._changed:
            return Used(tokens=max(0, base.usage.input + int(more * (self._ratio or 1.0))), source="counted")
        new = Counts(all=more, beyond=min(max(0, more), self._beyond(_since(base, messages))))
        return Used(tokens=max(0, base.usage.input + int(self._calibration.predict(new))), source="reported")

    def _beyond(self, messages: Iterable[Message]) -> int:
        return sum(map(self._counter.beyond, messages))

    def _estimate_since(self, base: UsageReported, messages: Sequence[Message]) -> int | None:
        """What the reported request's answer and all after it take; None where the view was changed since."""
        new = _since(base, messages)
        return None if self._changed or not new else self._counter.messages(new)

    def expected(self, counted: int) -> int:
        """Our count as the provider would report it, without a margin before the first report."""
        return int(counted * (self._ratio or 1.0))

    def scale(self, counted: int) -> int:
        """Our count as the provider would report it."""
        return int(counted * (self._ratio or (1.0 if self._base else MARGIN)))
