"""The seam between the context layer and the disk: named files that only ever grow.

Names are relative, with slashes: `sessions/ID.jsonl`, `large_tool_results/ID/1-execute.txt`.
Where they lie, how they are doubled at user level and what is foreign is the business of whoever implements this.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class StorageError(Exception):
    """A file of ours cannot be written or read; the text says which, and why."""


class AppendFile(Protocol):
    """A file that is open for appending."""

    def append(self, data: bytes) -> int:
        """Adds `data` and returns the byte at which it starts. Raises `StorageError`; then nothing counts as added."""
        ...

    def sync(self) -> None:
        """Returns when everything added is on the disk."""
        ...

    def close(self) -> None:
        """Gives the file, and a lock on it, back."""
        ...


class Storage(Protocol):
    """Files of ours."""

    def open(self, name: str, *, lock: bool = False) -> AppendFile:
        """Opens `name`, making it where it is missing. With `lock`, raises `Locked` if another process writes it."""
        ...

    def create(self, name: str, data: bytes) -> None:
        """Makes a new file and returns when it is on the disk. Raises `FileExistsError` if the name is taken."""
        ...

    def read(self, name: str, *, start: int = 0, size: int | None = None) -> bytes:
        """A file, or `size` bytes of it from `start` on. Raises `FileNotFoundError` or `StorageError`."""
        ...

    def size(self, name: str) -> int:
        """Bytes of a file. Raises `FileNotFoundError` or `StorageError`."""
        ...

    def own(self, name: str) -> Path:
        """Where a file lies that only this user's `deepagent` can have written, whatever came with a clone."""
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        """The names of the files below `folder`, sorted."""
        ...

    def shown(self, name: str) -> str:
        """The path of a file as a model may give it to `read_file`."""
        ...

    def path(self, name: str) -> Path:
        """Where a file lies."""
        ...


class Locked(StorageError):
    """Another process writes the file."""


def log_name(session: str) -> str:
    """The name of a session's log."""
    return f"sessions/{session}.jsonl"


def archive_name(session: str) -> str:
    """The name of a session's archive."""
    return f"conversation_history/{session}.md"
