"""How full the window is: the one figure that footer, `/context`, JSON output and triggers share.

`used` is the provider's last report plus our count of what has come (or gone) since, scaled by how the provider's
figures compare with ours in this session. Before the first report it is our count with a margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .entries import Compacted, CompactionUndone, Entry, Offloaded, Shortened, UsageReported
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
        self.overhead = 0
        """Tokens of system prompt and tool schemas."""

    def add(self, entry: Entry) -> None:
        """Takes an entry of the log."""
        match entry:
            case UsageReported(purpose="turn") if entry.model == self._model:
                self._take(entry)
            case Compacted() | CompactionUndone() | Offloaded() | Shortened():
                self._changed = True
            case _:
                pass

    def _take(self, report: UsageReported) -> None:
        low, high = _PLAUSIBLE
        ratio = report.usage.input / report.counted if report.counted else 1.0
        if report.counted >= _ENOUGH and not low <= ratio <= high:
            self.suspicious = report
            return
        if report.counted >= _ENOUGH:
            self._ratio = ratio
        self._base, self._changed, self.suspicious = report, False, None

    def count(self, messages: Sequence[Message]) -> int:
        """Our own count of a request with these messages."""
        return self.overhead + self._counter.messages(messages)

    def used(self, messages: Sequence[Message]) -> Used:
        """What a request with these messages takes."""
        counted = self.count(messages)
        if self._base is None:
            source: Source = "counted" if self._counter.exact else "estimated"
            return Used(tokens=int(counted * MARGIN), source=source)
        since = counted - self._base.counted
        tokens = self._base.usage.input + int(since * (self._ratio or 1.0))
        return Used(tokens=max(0, tokens), source="counted" if self._changed else "reported")

    def scale(self, counted: int) -> int:
        """Our count as the provider would report it."""
        return int(counted * (self._ratio or (1.0 if self._base else MARGIN)))
