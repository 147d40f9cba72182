"""What an agent has seen of the files it works on, so that it never overwrites what it has not seen.

One memory belongs to one agent: a sub-agent has its own. How a fingerprint is made is the backend's business.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class FileMemory:
    """The fingerprint of each file as this agent last read or wrote it, by the path that `Backend.resolve` gives."""

    _seen: dict[str, str] = field(default_factory=dict[str, str])
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])

    def seen(self, path: str) -> str | None:
        """The fingerprint of the content that this agent knows, or None if it never saw the file."""
        return self._seen.get(path)

    def remember(self, path: str, fingerprint: str) -> None:
        """From now on the agent knows this content."""
        self._seen[path] = fingerprint

    def lock(self, path: str) -> asyncio.Lock:
        """Held while a tool changes the file, so that parallel calls change it one after the other."""
        return self._locks.setdefault(path, asyncio.Lock())
