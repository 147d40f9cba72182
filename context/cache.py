"""Prompt caches: what a changed prefix costs, and when a shorter one pays.

A provider that caches takes `read` of the price for the part of a request that begins like the one before, as long as
the last use is not longer ago than `life`. A ladder step changes the prefix: once, everything behind the first change
is paid in full again; from then on, each request is shorter. The arithmetic is told in `docs/decisions/cache.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .messages import Clock

LIFE = 300.0
"""Seconds that the caches of most providers live without use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTerms:
    """A provider's terms."""

    read: float = 0.1
    """Price of a cached token, as a part of an uncached one's; 1 where nothing is cached."""
    life: float = LIFE
    """Seconds."""


def pays(terms: CacheTerms, *, saved: int, resent: int, growth: int) -> bool:
    """Whether a prefix that is shorter by `saved` tokens is worth sending `resent` tokens uncached once.

    The shorter prefix serves until the conversation has grown by as much again, at `growth` tokens a turn.
    """
    turns = max(1.0, saved / max(1, growth))
    return saved * terms.read * turns >= resent * (1.0 - terms.read)


def is_cold(terms: CacheTerms, last: str | None, clock: Clock) -> bool:
    """Whether the cache of a request at time `last` (ISO 8601; None: there was none) has ended."""
    if last is None:
        return True
    return (clock() - datetime.fromisoformat(last)).total_seconds() > terms.life
