"""`--debug FILE`: every event of a run with its time, a line each."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TextIO

from ..agent.errors import ConfigError
from ..agent.events import Event


class DebugLog:
    """Writes events to a file, or nothing without one. A file that takes no more, as on a full disk, ends no run."""

    def __init__(self, path: Path | None) -> None:
        """Raises `ConfigError` if the file cannot be written."""
        self._began = time.monotonic()
        self._file: TextIO | None = None
        if path is not None:
            try:
                self._file = path.open("a", encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise ConfigError(f"--debug: cannot write {path}: {error.strerror}") from error

    def __enter__(self) -> DebugLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def event(self, event: Event) -> None:
        """Writes an event."""
        if self._file is not None:
            with suppress(OSError):
                print(f"{time.monotonic() - self._began:9.3f} {event!r}", file=self._file, flush=True)
