"""The words of checkpoints: the state of a file, a change of it, and all changes that belong together."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..git.objects import Item

Name = bytes
"""A file: relative to the workspace with slashes, or absolute where it lies outside. Bytes, as the system has them."""
FILE_BYTES = 16 * 1024 * 1024
"""Bytes of the longest file of which states are kept."""
_EXECUTABLE = 0o100


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file's state before and after; None where it is not there."""

    before: Item | None
    after: Item | None

    @property
    def kind(self) -> Literal["added", "changed", "removed"]:
        """What a person would call it."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What one call, or one step back or forth, did to files."""

    files: Mapping[Name, Change] = field(default_factory=dict[Name, Change])
    left: Mapping[Name, str] = field(default_factory=dict[Name, str])
    """Files that were changed and cannot be brought back, and why."""

    def __bool__(self) -> bool:
        return bool(self.files or self.left)


def same(one: Item | None, other: Item | None) -> bool:
    """Whether two states are the same as far as git would say: content, kind, and whether it can be executed."""
    if one is None or other is None:
        return one is other
    return one.oid == other.oid and plain_mode(one.mode) == plain_mode(other.mode)


def plain_mode(mode: int) -> int:
    """A mode as git keeps it."""
    if stat.S_ISLNK(mode):
        return stat.S_IFLNK
    return stat.S_IFREG | (0o755 if mode & _EXECUTABLE else 0o644)


def shown(name: Name) -> str:
    """A file's name for people and models: one line."""
    text = name.decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "�" for char in text.replace("\n", "␊"))


def folders_of(name: Name) -> list[Name]:
    """The folders above a file, innermost first, without the workspace itself."""
    parts = name.split(b"/")[:-1]
    return [b"/".join(parts[:end]) for end in range(len(parts), 0, -1) if b"/".join(parts[:end])]


def name_of(path: str) -> Name:
    """The name of a file that `Backend.resolve` calls `path`."""
    return os.fsencode(path)


def net(all_changes: Iterable[Changes]) -> Changes:
    """What changes, oldest first, come to: from each file's first state to its last."""
    files: dict[Name, Change] = {}
    left: dict[Name, str] = {}
    for changes in all_changes:
        for name, change in changes.files.items():
            first = files.get(name, change)
            files[name] = Change(before=first.before, after=change.after)
        left.update(changes.left)
    return Changes(files={n: c for n, c in files.items() if not same(c.before, c.after)}, left=left)
