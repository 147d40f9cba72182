"""Where to cut: the oldest messages go, the newest stay, and no tool result is ever parted from its call.

The cut is found by token budget. What becomes of either side is the business of `context.compact`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .messages import Message, ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A cut through the messages."""

    evicted: tuple[Message, ...]
    kept: tuple[Message, ...]


def plan_cut(
    messages: Sequence[Message], *, cost: Callable[[Message], int], keep: int, keep_messages: int | None = None
) -> Plan | None:
    """The cut that keeps as much as fits into `keep` tokens (or `keep_messages` messages), but at least the last group.

    A group is an answer with the results of its calls; calls that are still open stay. At most half of what is there is
    kept, so that a cut of little is worth a summary all the same. None when nothing can go.
    """
    cuts = _cuts(messages)
    if not cuts:
        return None
    tails = _tail_costs(messages, cost)
    keep = min(keep, tails[0] // 2)
    if keep_messages is not None:
        keep_messages = min(keep_messages, len(messages) // 2)
    fits = [cut for cut in cuts if _fits(cut, len(messages), tails, keep, keep_messages)]
    cut = fits[0] if fits else cuts[-1]
    return Plan(evicted=tuple(messages[:cut]), kept=tuple(messages[cut:]))


def _fits(cut: int, count: int, tails: Sequence[int], keep: int, keep_messages: int | None) -> bool:
    return tails[cut] <= keep if keep_messages is None else count - cut <= keep_messages


def _cuts(messages: Sequence[Message]) -> list[int]:
    """Positions at which a cut parts no pair, oldest first; 0 is none, as nothing would go.

    Calls that are still open stay, as nothing but results follows them.
    """
    return [at for at in range(1, len(messages)) if not isinstance(messages[at], ToolMessage)]


def _tail_costs(messages: Sequence[Message], cost: Callable[[Message], int]) -> list[int]:
    """For each position, the tokens from there to the end."""
    tails = [0] * (len(messages) + 1)
    for position in range(len(messages) - 1, -1, -1):
        tails[position] = tails[position + 1] + cost(messages[position])
    return tails
