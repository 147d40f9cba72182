"""What is made from files is made anew when one of them has changed: to look at stamps is cheap, to read is not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

_SETTLED = 50_000_000
"""Nanoseconds: a file that was written less long before it was looked at may change once more under the same stamp."""
_Stamp = tuple[int, int, int, int] | None


class Watched(Generic[T]):
    """Holds a value and the stamps of the files that it was made from."""

    def __init__(self) -> None:
        self._held: tuple[object, T, dict[Path, _Stamp]] | None = None

    def get(self, key: object, make: Callable[[], tuple[T, Iterable[Path]]]) -> T:
        """The value for `key`. `make` gives it and the places that were looked at, the missing ones included."""
        held = self._held
        if held is not None and held[0] == key and all(_stamp(path) == stamp for path, stamp in held[2].items()):
            return held[1]
        before = time.time_ns()
        value, places = make()
        stamps = {path: _stamp(path) for path in places}
        settled = all(stamp is None or max(stamp[:2]) < before - _SETTLED for stamp in stamps.values())
        self._held = (key, value, stamps) if settled else None
        return value


def _stamp(path: Path) -> _Stamp:
    try:
        stat = os.stat(path)  # noqa: PTH116 - `Path.stat` costs twice as much, and this runs before each request
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino
