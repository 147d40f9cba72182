"""What going back over changes would do to each file, from what is there now.

A file goes back as far as its states hang together: where one is not what the change before it had made, somebody else
had a hand in it, and further back it does not go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..git.objects import Item
from .places import LeftAlone
from .states import Change, Changes, Name, same

OTHERS = "somebody else has changed it since"
_BETWEEN = "it goes back only to what somebody else had made of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be done."""

    files: dict[Name, Change] = field(default_factory=dict[Name, Change])
    """The files that change, from what they are now to what they will be."""
    left: dict[Name, str] = field(default_factory=dict[Name, str])
    """The files that stay as they are, or do not go back all the way, and why."""


def plan_back(sets: Sequence[Changes], look: Callable[[Name], Item | None], has: Callable[[Item], bool]) -> Plan:
    """What going back over `sets`, newest first, comes to.

    `look` gives what is there now, or raises `LeftAlone`; `has` says whether a content is kept.
    """
    plan = Plan()
    for name in dict.fromkeys(name for one in sets for name in (*one.files, *one.left)):
        try:
            now = look(name)
        except LeftAlone as why:
            plan.left[name] = str(why)
            continue
        target, why = _back(name, now, sets)
        if not same(now, target) and target is not None and not has(target):
            target, why = now, "its earlier content is no longer kept"
        if not same(now, target):
            plan.files[name] = Change(before=now, after=target)
        if why:
            plan.left[name] = why if same(now, target) or why != OTHERS else _BETWEEN
    return plan


def _back(name: Name, now: Item | None, sets: Sequence[Changes]) -> tuple[Item | None, str]:
    """How far a file can go back, and why no further."""
    state = now
    for one in sets:
        if name in one.left:
            return state, one.left[name]
        change = one.files.get(name)
        if change is None:
            continue
        if same(state, change.after):
            state = change.before
        elif not same(state, change.before):  # else somebody has done this step back already
            return state, OTHERS
    return state, ""
