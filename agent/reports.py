"""What the context layer did, as events."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..context.entries import Compacted, Offloaded, Shortened
from ..context.ladder import Step
from .events import (
    CompactionDone,
    CompactionStarted,
    Event,
    Gauge,
    GaugeChanged,
    Noticed,
    Offloading,
    Trimmed,
)
from .middleware.base import RunState


class Reports:
    """Turns the ladder's steps and troubles into events."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        gauge: Callable[[], Gauge],
        archive: Callable[[], str | None],
        run: Callable[[], RunState | None],
    ) -> None:
        self._emit = emit
        self._gauge = gauge
        self._archive = archive
        self._run = run
        self._began = 0.0

    def compaction_started(self, messages: int) -> None:
        """A compaction begins."""
        self._began = time.monotonic()
        self._emit(CompactionStarted(messages=messages))

    def trouble(self, text: str) -> None:
        """Something went wrong that does not end the run."""
        self._emit(Noticed(text=text))

    def step(self, entry: Step) -> None:
        """A step is in the log."""
        match entry:
            case Shortened(stubs=stubs, results=results, tokens_saved=saved):
                self._emit(
                    Trimmed(stubs=len(stubs), results=tuple(block.message for block in results), tokens_saved=saved)
                )
            case Offloaded(blocks=blocks):
                for block in blocks:
                    pointer = block.pointer
                    self._emit(
                        Offloading(
                            path=pointer.path,
                            tokens=pointer.tokens,
                            shown_tokens=len(pointer.shown) // 4,
                            message=block.message,
                        )
                    )
            case Compacted():
                self._compacted(entry)
        self._emit(GaugeChanged(gauge=self._gauge()))

    def _compacted(self, entry: Compacted) -> None:
        run = self._run()
        if run is not None:
            run.compactions += 1
        seconds = time.monotonic() - self._began
        self._emit(CompactionDone(entry=entry, archive=self._archive() or entry.archive, seconds=seconds))
