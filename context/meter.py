"""How full the window is: the one figure that footer, `/context`, JSON output and triggers share.

`used` is the provider's last report plus our count of what has come (or gone) since, scaled by how the provider's
figures compare with ours in this session. Before the first report it is our count with a margin.

Reports hold counts of the tokenizer, and estimates are no match for them: until its tables are there (`Counter.exact`),
only what came after the reported request is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .entries import (
    Compacted,
    CompactionUndone,
    Dropped,
    Entry,
    Offloaded,
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
_PLAUSIBLE = (0.6, 2.0)
"""Ratios of reported to counted tokens outside this range are not learned: a server cut the prompt."""
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


class Meter:
    """Measures requests to one model in one session."""

    def __init__(self, counter: Counter, model: str) -> None:
        self._counter = counter
        self._model = model
        self._ratio: float | None = None
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
            case _:
                pass

    def _take(self, report: UsageReported) -> None:
        if report.usage.input <= 0:
            return  # some servers report nothing as zero
        low, high = _PLAUSIBLE
        ratio = report.usage.input / report.counted if report.counted else 1.0
        if report.counted >= _ENOUGH and not low <= ratio <= high:
            self.suspicious = report
            return
        if report.counted >= _ENOUGH:
            self._ratio = ratio
        self._base, self._changed, self.suspicious = report, False, None

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
        since = self.count(messages) - base.counted if exact else self._estimate_since(base, messages)
        if since is None:
            return Used(tokens=self.count(messages), source="estimated")
        tokens = base.usage.input + int(since * (self._ratio or 1.0))
        return Used(tokens=max(0, tokens), source="counted" if self._changed else "reported")

    def _estimate_since(self, base: UsageReported, messages: Sequence[Message]) -> int | None:
        """What the reported request's answer and all after it take; None where the view was changed since."""
        if self._changed:
            return None
        tokens = 0
        for message in reversed(messages):
            tokens += self._counter.message(message)
            if message.id == base.message:
                return tokens
        return None

    def scale(self, counted: int) -> int:
        """Our count as the provider would report it."""
        return int(counted * (self._ratio or (1.0 if self._base else MARGIN)))
