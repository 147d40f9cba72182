"""A clock for questions that stands still, so that "too early" does not depend on how fast the machine is."""

from __future__ import annotations

import time
from types import TracebackType
from unittest import mock

from deepagent.cli.tui import approval


class ControlledClock:
    """Within its block only `now`, in seconds, decides whether a key came too early."""

    def __init__(self) -> None:
        self.now = time.monotonic()
        self._patch = mock.patch.object(approval, "time", self)

    def monotonic(self) -> float:
        return self.now

    def __enter__(self) -> ControlledClock:
        self._patch.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._patch.stop()
