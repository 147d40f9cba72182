"""A long text that went to a file while it came, and what is known of it without reading it again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A text in a file."""

    path: str
    """As `read_file` takes it."""
    bytes: int
    lines: int
    sha256: str
    head: str
    """How it begins."""
    tail: str
    """How it ends."""
    lost: str = ""
    """Why its end is missing in the file, or empty."""
