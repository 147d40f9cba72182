"""What is made of values that never change, made once: forms of messages, bytes of forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")

_SPARE = 1_000
"""How many may be kept beyond twice those in use."""


class Kept(Generic[Made]):
    """Makes something of each value and keeps it, by the value's identity.

    The value is kept with it, so its identity stays its own. Values that are no longer asked for are forgotten.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self._kept: dict[int, tuple[object, Made]] = {}

    def of(self, values: Sequence[object]) -> list[Made]:
        """What is made of each of `values`, in order."""
        kept = self._kept
        if len(kept) > 2 * len(values) + _SPARE:
            kept = self._kept = {id(value): entry for value in values if (entry := kept.get(id(value)))}
        return [(kept.get(id(value)) or self._add(value))[1] for value in values]

    def _add(self, value: object) -> tuple[object, Made]:
        entry = self._kept[id(value)] = (value, self._make(value))
        return entry
