"""How a provider's tokens compare with ours: learned from its reports, for two kinds of text apart.

Tokenizers differ little on English and code, and much on Chinese, Japanese or Cyrillic: text beyond ASCII has a ratio
of its own. A report says what both take together; which of them a difference is due to follows from how sure each is
(a Kalman filter with two values). What came between two reports says more than a whole request, whose beginning never
changes, so the first report is a start and the differences are what is learned.
"""

from __future__ import annotations

from dataclasses import dataclass

PLAUSIBLE = (0.6, 2.0)
"""Ratios of reported to counted tokens outside this range are not learned: a server cut the prompt."""

_SPREAD, _SPREAD_BEYOND = 0.08, 0.30
"""How far ratios lie from 1 before anything is known (standard deviations): all text, and what is beyond ASCII more."""
_FIRST, _LATER = 0.01, 0.08
"""How far a report's ratio may lie from the rule: of a whole request, and of what came between two."""
_DRIFT = 0.07
"""How far ratios move from one report to the next, as the conversation turns to other things."""
_ROUGH = 30.0
"""Tokens that any report may be off: chat templates, calls and their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Tokens as we count them."""

    all: int = 0
    beyond: int = 0
    """Those of text beyond ASCII."""


class Calibration:
    """The two ratios of one model in one session."""

    def __init__(self) -> None:
        self._ratios = (1.0, 1.0)
        alike, apart = _SPREAD**2, _SPREAD_BEYOND**2
        self._spread = (alike, alike, alike + apart)
        """Variance of the first ratio, covariance, variance of the second."""

    def predict(self, counts: Counts) -> float:
        """Tokens that the provider will report for `counts`."""
        plain, beyond = (_within(ratio) for ratio in self._ratios)
        return (counts.all - counts.beyond) * plain + counts.beyond * beyond

    def begin(self, counts: Counts, reported: int) -> None:
        """Learns from a whole request."""
        self._learn(counts, reported, _FIRST)

    def go_on(self, counts: Counts, reported: int) -> None:
        """Learns from what came since the report before."""
        a, ab, b = self._spread
        self._spread = (a + _DRIFT**2, ab + _DRIFT**2 / 2, b + _DRIFT**2)
        self._learn(counts, reported, _LATER)

    def _learn(self, counts: Counts, reported: int, noise: float) -> None:
        low, high = PLAUSIBLE
        if counts.all <= 0 or (counts.all > 10 * _ROUGH and not low <= reported / counts.all <= high):
            return
        plain, beyond = counts.all - counts.beyond, counts.beyond
        a, ab, b = self._spread
        for_plain, for_beyond = a * plain + ab * beyond, ab * plain + b * beyond
        doubt = plain * for_plain + beyond * for_beyond + (noise * counts.all) ** 2 + _ROUGH**2
        x, y = self._ratios
        wrong = (reported - plain * x - beyond * y) / doubt
        self._ratios = (x + for_plain * wrong, y + for_beyond * wrong)
        self._spread = (
            a - for_plain * for_plain / doubt,
            ab - for_plain * for_beyond / doubt,
            b - for_beyond * for_beyond / doubt,
        )


def _within(ratio: float) -> float:
    low, high = PLAUSIBLE
    return min(max(ratio, low), high)
