"""`Keeper`: takes down what a call of a tool does to files, by looking before and after.

A tool that names its file is watched at that file, anything else at the whole workspace, with git. Where that is not
possible, or would take too long, only the first is done, and why is said once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..git.objects import Item
from ..git.process import GitError, program
from ..git.shadow import Difference, Omitted, Shadow, Snapshot, TooMuchError
from .hidden import Hidden, hidden_before
from .places import LeftAlone, Places
from .states import Change, Changes, Name, name_of, same
from .store import Store

_TICK = 20_000_000
"""Nanoseconds by which the times of files may lag behind the clock."""
_MAYBE = "it may have been there before"
_UNHIDDEN = "the same command changed which files are ignored: it may have been there before"
_RULES_BYTES = 1024 * 1024
Stamp = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was there before a call."""

    name: Name | None = None
    """The one file that is watched; None: all."""
    item: Item | None = None
    why: str = ""
    """Why that file's state could not be kept."""
    stamp: Stamp = ()
    snapshot: Snapshot | None = None
    rules: Stamp = ()
    began: int = 0
    """Nanoseconds since the epoch."""


@dataclass(slots=True, kw_only=True)
class Keeper:
    """Looks after the files of one workspace. Calls block, for a worker thread; they raise nothing."""

    store: Store
    places: Places
    root: Path
    open_shadow: Callable[[], Shadow]
    off: str = ""
    """Why the workspace as a whole is not looked at; empty where it is."""
    news: list[str] = field(default_factory=list[str])
    """What a person should be told, once."""
    _shadow: Shadow | None = None
    _said: set[str] = field(default_factory=set[str])

    def before(self, path: str | None) -> Before | None:
        """Before a call that changes the file `path` (as `Backend.resolve` names it), or anything (None)."""
        try:
            return self._all_before() if path is None else self._one_before(name_of(path))
        except OSError as error:
            self._tell(f"What files were like cannot be kept: {error.strerror}")
            return None

    def after(self, before: Before) -> Changes:
        """What the call has changed."""
        try:
            return self._one_after(before.name, before) if before.name is not None else self._all_after(before)
        except OSError as error:
            self._tell(f"What files were like cannot be kept: {error.strerror}")
            return Changes()

    def keep(self, changes: Changes, session: str) -> str | None:
        """Keeps what a call has changed, and gives the name under which; None where that cannot be done."""
        try:
            return self.store.keep(changes, session)
        except OSError as error:
            self._tell(f"What files were like cannot be kept: {error.strerror}")
            return None

    def _tell(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.news.append(text)

    # One file

    def _one_before(self, name: Name) -> Before:
        try:
            return Before(name=name, item=self._look(name))
        except LeftAlone as why:
            return Before(name=name, why=str(why), stamp=self._stamp(name))

    def _one_after(self, name: Name, before: Before) -> Changes:
        if before.why:
            return Changes(left={name: before.why} if self._stamp(name) != before.stamp else {})
        try:
            item = self._look(name)
        except LeftAlone as why:
            return Changes(left={name: str(why)})
        if same(before.item, item):
            return Changes()
        return Changes(files={name: Change(before=before.item, after=item)})

    def _look(self, name: Name) -> Item | None:
        """The state of a file, which is kept. Raises `LeftAlone`, `OSError`."""
        seen = self.places.look(name)
        if seen.item is not None:
            self.store.objects.write("blob", seen.data)
        return seen.item

    def _stamp(self, name: Name) -> Stamp:
        try:
            status = os.lstat(self._path(name))
        except OSError:
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _path(self, name: Name) -> bytes:
        return os.path.join(os.fsencode(self.root), name)  # noqa: PTH118 - bytes

    # All files

    def _all_before(self) -> Before | None:
        snapshot = self._snapshot()
        if snapshot is None:
            return None
        return Before(snapshot=snapshot, rules=self._rules(), began=time.time_ns())

    def _all_after(self, before: Before) -> Changes:
        assert before.snapshot is not None
        snapshot = self._snapshot()
        if snapshot is None or self._shadow is None:
            return Changes()
        try:
            found = self._shadow.differences(before.snapshot.tree, snapshot.tree)
        except GitError as error:
            self._tell(f"What the command changed cannot be undone: {error}")
            return Changes()
        left = dict(_omitted(before.snapshot.omitted, snapshot.omitted))
        files: dict[Name, Change] = {}
        with self.store.objects as objects:
            read: Callable[[Item], bytes] = lambda item: objects.read(item.oid, _RULES_BYTES)[1]  # noqa: E731
            hidden = hidden_before(found, read, others=before.rules != self._rules())
        moved = {_content(one.name, one.before) for one in found if one.before and not one.after}
        for one in found:
            if one.name in before.snapshot.omitted or one.name in snapshot.omitted:
                continue
            if _content(one.name, one.after) not in moved and (why := self._doubt(one, before, hidden)):
                left[one.name] = why
            else:
                files[one.name] = Change(before=one.before, after=one.after)
        return Changes(files=files, left=left)

    def _snapshot(self) -> Snapshot | None:
        """The state of all files, or None; then why is told."""
        if not self.off:
            try:
                self._shadow = self._shadow or self._open()
                return self._shadow.snapshot()
            except TooMuchError as error:
                self.off = str(error)
            except GitError as error:
                self._tell(f"What the command changed cannot be undone: {error}")
                return None
        self._tell(f"Changes made by commands cannot be undone here: {self.off}. Those of the file tools can")
        return None

    def _open(self) -> Shadow:
        """Raises `TooMuchError` where there is no git: it will not come."""
        try:
            program()
        except GitError as error:
            raise TooMuchError(str(error)) from error
        return self.open_shadow()

    def _rules(self) -> Stamp:
        excludes = self._shadow.excludes if self._shadow else None
        return self._stamp(os.fsencode(excludes)) if excludes else ()

    def _doubt(self, one: Difference, before: Before, hidden: Hidden) -> str:
        """Why a file that appeared may be older than the call: to take it away could lose what nobody has kept."""
        assert before.snapshot is not None
        if one.before is not None:
            return ""
        if any(one.name.startswith(folder) for folder in before.snapshot.unseen):
            return _MAYBE
        stamp = self._stamp(one.name)
        if not stamp or stamp[-1] < before.began - _TICK:
            return _MAYBE
        return _UNHIDDEN if hidden.may_have(one.name) else ""


def _content(name: Name, item: Item | None) -> tuple[bytes, str]:
    """What stays the same of a file whose folder is moved: its times do, too, so they do not tell that it is new."""
    return name.rpartition(b"/")[2], item.oid if item else ""


def _omitted(before: Mapping[Name, Omitted], after: Mapping[Name, Omitted]) -> Iterator[tuple[Name, str]]:
    """Files that cannot be kept and have changed, and why not."""
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        if one != other:
            yield name, (other or one or Omitted(why="")).why
