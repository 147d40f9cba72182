"""The workspace's files for `@`: listed by a thread with the agent's own search, found by the letters that were typed.

The list is what a search of the workspace would meet: ignore files are respected, the newest files come first.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from heapq import nsmallest
from pathlib import Path

ENTRIES = 50_000
"""Files that are offered at most, the newest."""
FRESH = 5.0
"""Seconds after which a list is made again when it is needed."""
_LISTING = 10.0
"""Seconds that one listing may take; what was found until then counts."""


class PathSearch:
    """Finds paths by letters in their order: whole names first, then beginnings, parts, and scattered letters."""

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths` are relative, with slashes; among equals the earlier ones win."""
        self._paths = paths
        self._folded = [path.casefold() for path in paths]
        self._names = [path.rpartition("/")[2] for path in self._folded]
        self._last: tuple[str, Sequence[int]] = ("", range(len(paths)))
        """The last letters and where they were found: who types on searches there only."""

    def best(self, letters: str, limit: int) -> list[str]:
        """Up to `limit` paths, best first."""
        wanted = letters.casefold()
        if not wanted:
            return list(self._paths[:limit])
        alive = self._alive(wanted)
        found: dict[int, None] = {}
        for fits in self._tests(wanted):
            tier = [at for at in alive if at not in found and fits(at)]
            room = limit - len(found)
            found |= dict.fromkeys(nsmallest(room, tier, key=lambda at: len(self._paths[at])))
            if len(found) >= limit:
                break
        return [self._paths[at] for at in found]

    def _alive(self, wanted: str) -> Sequence[int]:
        letters, among = self._last
        if not wanted.startswith(letters):
            among = range(len(self._paths))
        fits, folded = _scattered(wanted), self._folded
        self._last = (wanted, [at for at in among if fits(folded[at])])
        return self._last[1]

    def _tests(self, wanted: str) -> tuple[Callable[[int], object], ...]:
        folded, names, scattered = self._folded, self._names, _scattered(wanted)
        return (
            lambda at: wanted in (folded[at], names[at]),
            lambda at: names[at].startswith(wanted),
            lambda at: wanted in names[at],
            lambda at: wanted in folded[at],
            lambda at: scattered(names[at]),
            lambda at: True,
        )


def _scattered(letters: str) -> Callable[[str], object]:
    """Whether a text holds the letters in their order; possessive, so that no text takes long."""
    return re.compile("".join(f"[^{re.escape(c)}]*+{re.escape(c)}" for c in letters), re.DOTALL).match


class FileIndex:
    """The files of the workspace around a folder. Lists in a thread that nobody waits for."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._search: PathSearch | None = None
        self._listed = -FRESH
        self._thread: threading.Thread | None = None

    @property
    def ready(self) -> bool:
        """There is a list, if perhaps an old one."""
        return self._search is not None

    def best(self, letters: str, limit: int) -> list[str]:
        """Up to `limit` paths relative to the folder (absolute outside it), best first; none before there is a list."""
        return self._search.best(letters, limit) if self._search else []

    def refresh(self, done: Callable[[], object]) -> None:
        """Makes the list again if it is old; `done` is called by the thread. Does nothing while one is being made."""
        if time.monotonic() - self._listed < FRESH or (self._thread and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._list, args=(done,), daemon=True)
        self._thread.start()

    def _list(self, done: Callable[[], object]) -> None:
        paths = _listed(self._cwd)
        self._search = PathSearch(paths)
        self._listed = time.monotonic()
        done()


def _listed(cwd: Path) -> Sequence[str]:
    """What a search of the workspace meets; nothing where that cannot be searched."""
    import asyncio

    from ...agent.backends.local import LocalBackend
    from ...agent.backends.protocol import BackendError
    from ...agent.errors import ConfigError
    from ...agent.workspace import find_workspace

    try:
        place = find_workspace(cwd, environ=os.environ)
        backend = LocalBackend(place.root, place.cwd, data=place.data, environ=os.environ, search_seconds=_LISTING)
        return asyncio.run(backend.glob("**", str(place.root), limit=ENTRIES)).paths
    except (BackendError, ConfigError, OSError):
        return ()
