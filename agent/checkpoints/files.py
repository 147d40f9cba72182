"""`Files`: what a session did to files, shown, undone and redone.

Everything is an entry of the log, so a session that is opened again can do it too. Only files whose content is what the
session wrote last are touched; all others are named and left. Calls block, for a worker thread where that matters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ...context.control import CannotDo
from ...context.entries import FilesRedone, FilesUndone
from ...context.session import Session
from ...context.storage import StorageError
from ..git.objects import Item, MissingError
from ..git.process import GitError
from ..git.repository import changes as worktree_changes
from ..git.shadow import diff_of, locked
from .places import LeftAlone, Places
from .plan import Plan, plan_back
from .states import Change, Changes, Name, net, shown
from .store import Store
from .timeline import FilesEntry, Timeline, Turn, timeline_of

Scope = Literal["turn", "session", "worktree"]
_PATIENCE = 10.0
"""Seconds to wait for another process that is at work on the same states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that differs."""

    path: str
    kind: Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """What has changed."""

    diff: str
    """As git shows it, without colours, at most 2 MB."""
    files: tuple[ChangedFile, ...]
    """Empty for the work tree, whose diff names its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftFile:
    """A file that is not as it was meant to be."""

    path: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesReport:
    """What was done, or in a preview, what would be."""

    action: Literal["undo", "redo", "rewind"]
    messages: tuple[str, ...]
    """The messages of the user's whose turns it is about, newest first."""
    request: str
    """What the user wrote in the oldest of them."""
    written: tuple[str, ...]
    """Files that have their other content again."""
    removed: tuple[str, ...]
    """Files that were not there then."""
    left: tuple[LeftFile, ...]
    """Files that were not touched, or not all the way."""


class Files:
    """The files of one session. All methods raise `CannotDo`, `StorageError` or `GitError`."""

    def __init__(
        self,
        session: Session,
        store: Store,
        places: Places,
        *,
        root: Path,
        git: bool,
        may: Callable[[], bool] = lambda: True,
        mask: Callable[[str], str] = lambda text: text,
    ) -> None:
        """`git`: the workspace is a repository; `may` says whether nothing runs that could change files meanwhile."""
        self._session = session
        self._store = store
        self._places = places
        self._root = root
        self._git = git
        self.may = may
        self.off: Callable[[], str] = lambda: ""
        """Why changes made by commands are not kept, or nothing."""
        self._mask = mask

    def changes(self, scope: Scope) -> FileChanges:
        """What the newest turn changed, or the session, or how the work tree differs from the last commit."""
        if scope == "worktree":
            if not self._git:
                raise CannotDo("this is no git repository")
            return FileChanges(diff=worktree_changes(self._root), files=())
        line = timeline_of(self._session.entries)
        if scope == "turn":
            turn = line.last()
            steps = line.steps[turn.first :] if turn else []
        else:
            steps = line.steps
        with self._store.objects:
            total = net(self._set(step) for step in steps)
            return FileChanges(diff=self._mask(self._diff(total)), files=tuple(_listed(total)))

    def undo(self, *, preview: bool = False) -> FilesReport:
        """Takes back what the newest turn did to files that is not undone yet."""
        line = self._line()
        turn = line.last()
        if turn is None:
            raise CannotDo(self._nothing() if not line.turns else "there is nothing to undo")
        return self._back("undo", line.steps[turn.first :], [turn], preview=preview)

    def _nothing(self) -> str:
        off = self.off()
        kept = f"; those that commands change are not kept here: {off}" if off else ""
        return f"no files were changed in this session{kept}"

    def redo(self, *, preview: bool = False) -> FilesReport:
        """Takes the newest undoing back. A later turn that changes files makes it final."""
        line = self._line()
        if not line.redoable:
            raise CannotDo("there is nothing to redo")
        entry = line.redoable[-1]
        turns = [line.turns[message] for message in entry.messages if message in line.turns]
        return self._back("redo", [entry], turns, preview=preview)

    def rewind(self, message: str, *, preview: bool = False) -> FilesReport:
        """Takes back what was done to files since a message of the user's, given by its id."""
        line = self._line()
        try:
            position = line.position(self._session.entries, message)
        except StopIteration:
            raise CannotDo(f"{message!r} names no message") from None
        turns = line.since(position)
        return self._back("rewind", line.steps[position:] if turns else [], turns, preview=preview)

    def _line(self) -> Timeline:
        if not self.may():
            raise CannotDo("that waits until the run has ended")
        return timeline_of(self._session.entries)

    def _back(
        self,
        action: Literal["undo", "redo", "rewind"],
        steps: Sequence[FilesEntry],
        turns: Sequence[Turn],
        *,
        preview: bool,
    ) -> FilesReport:
        """Goes back over steps, oldest first, or tells what that would do."""
        with self._store.objects:
            sets = [self._set(step) for step in reversed(steps)]
            plan = plan_back(sets, lambda name: self._places.look(name).item, self._has)
            report = _report(action, plan, turns)
            if preview or not steps:
                return report
            with locked(self._store.folder, time.monotonic() + _PATIENCE):
                failed = self._do(plan, steps, turns, redo=action == "redo")
        return _without(report, failed)

    def _do(self, plan: Plan, steps: Sequence[FilesEntry], turns: Sequence[Turn], *, redo: bool) -> dict[Name, str]:
        """Logs what is to be done, then does it; gives what could not be done, and why."""
        session = self._session
        failed = self._keep_present(plan)
        todo = {name: change for name, change in plan.files.items() if name not in failed}
        try:
            kept, number = self._store.keep(Changes(files=todo), session.id), len(todo)
        except OSError as error:
            raise StorageError(f"states of files cannot be kept in {self._store.folder}: {error.strerror}") from error
        if redo:
            entry = FilesRedone(**session.header(), undone=steps[0].id, changes=kept, files=number)
        else:
            messages = tuple(turn.message for turn in turns)
            entry = FilesUndone(**session.header(), messages=messages, changes=kept, files=number)
        session.append(entry)
        session.sync()
        for name, change in sorted(todo.items(), key=lambda one: (one[1].after is not None, -one[0].count(b"/"))):
            try:
                self._change(name, change)
            except LeftAlone as why:
                failed[name] = str(why)
        return failed

    def _keep_present(self, plan: Plan) -> dict[Name, str]:
        """Keeps what is there now, so that it can be had again; gives what could not be kept."""
        failed: dict[Name, str] = {}
        for name, change in plan.files.items():
            try:
                seen = self._places.look(name)
                if change.before is not None and seen.item == change.before:
                    self._store.objects.write("blob", seen.data)
            except LeftAlone as why:
                failed[name] = str(why)
            except OSError as error:
                failed[name] = f"what it is now cannot be kept: {error.strerror}"
        return failed

    def _change(self, name: Name, change: Change) -> None:
        if change.after is not None:
            self._places.put(name, change.after, self._store.content(change.after), expected=change.before)
        elif change.before is not None:
            self._places.remove(name, expected=change.before)

    def _set(self, entry: FilesEntry) -> Changes:
        try:
            return self._store.changes(entry.changes)
        except MissingError as error:
            raise CannotDo(f"what files were like on {entry.time[:10]} is no longer kept") from error

    def _has(self, item: Item) -> bool:
        return self._store.objects.has(item.oid)

    def _diff(self, total: Changes) -> str:
        """The diff, or where git is missing, nothing."""
        if not total.files:
            return ""
        try:
            return diff_of(self._store.folder, *self._store.sides(self._store.write(total)))
        except (GitError, OSError) as error:
            return f"The differences cannot be shown: {error}"


def _listed(total: Changes) -> list[ChangedFile]:
    return [ChangedFile(path=shown(name), kind=change.kind) for name, change in sorted(total.files.items())]


def _report(action: Literal["undo", "redo", "rewind"], plan: Plan, turns: Sequence[Turn]) -> FilesReport:
    return FilesReport(
        action=action,
        messages=tuple(turn.message for turn in turns),
        request=turns[-1].text if turns else "",
        written=tuple(shown(name) for name, change in sorted(plan.files.items()) if change.after is not None),
        removed=tuple(shown(name) for name, change in sorted(plan.files.items()) if change.after is None),
        left=tuple(LeftFile(path=shown(name), why=why) for name, why in sorted(plan.left.items())),
    )


def _without(report: FilesReport, failed: dict[Name, str]) -> FilesReport:
    """A report of what was really done."""
    names = {shown(name) for name in failed}
    left = (*report.left, *(LeftFile(path=shown(name), why=why) for name, why in failed.items()))
    return replace(
        report,
        written=tuple(path for path in report.written if path not in names),
        removed=tuple(path for path in report.removed if path not in names),
        left=left,
    )
