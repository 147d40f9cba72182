"""The processes of a command: which of them still run, and a signal to all.

A command is the leader of a session of its own, so its number is the session's. To it belong the members of the
session, whatever they started (also in a session of their own), and whatever bears the command's mark in its
environment: a child that was given away to init is known by that alone. Where there is no `/proc`, only the process
group is seen and reached.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_LOOKS = 4
"""How often the list of processes is read at most for one answer."""
MARK = "DEEPAGENT_COMMAND"
"""The variable whose value tells which command a process belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A command's processes."""

    session: int
    """Number of the command's first process, and of its session."""
    mark: str
    """The value of `MARK` in its environment."""

    def running(self) -> bool:
        """Whether anything of it still runs. Who has ended and waits to be collected does not."""
        members = self._members()
        return _signal_group(self.session, 0) if members is None else bool(members)

    def signal(self, number: int) -> None:
        """Sends a signal to every process of it."""
        members = self._members()
        _signal_group(self.session, number)
        for pid in members or ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _members(self) -> list[int] | None:
        """Numbers of its processes, parents first, or None where the system does not tell.

        Whoever ended while the list was being read may have had a child that is not in it: then it is read again.
        """
        found: list[int] = []
        for _ in range(_LOOKS):
            table = _table()
            if table is None:
                return None
            found = self._among(table)
            ended = (pid for pid, entry in table.items() if entry is None or not entry.alive)
            if found or not any(pid > self.session for pid in ended):
                break
        return found

    def _among(self, table: Mapping[int, _Entry | None]) -> list[int]:
        others = {pid: entry for pid, entry in table.items() if entry is not None and pid != os.getpid()}
        found = [pid for pid, entry in others.items() if entry.session == self.session or self._marked(pid)]
        known = set(found)
        for pid in found:  # grows while it is gone through
            children = [child for child, entry in others.items() if entry.parent == pid and child not in known]
            known.update(children)
            found += children
        return [pid for pid in found if others[pid].alive]

    def _marked(self, pid: int) -> bool:
        """Whether a process that is younger than the command bears its mark."""
        if pid <= self.session:
            return False
        try:
            return f"{MARK}={self.mark}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:  # gone by now, or somebody else's
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    parent: int
    session: int
    alive: bool


def _table() -> dict[int, _Entry | None] | None:
    """All processes, None for those that were gone when they were looked at; None where there is no `/proc`."""
    try:
        names = [entry.name for entry in os.scandir(_PROC) if entry.name.isdecimal()]
    except OSError:
        return None
    return {int(name): _entry(name) for name in names} or None


def _entry(pid: str) -> _Entry | None:
    try:
        text = (_PROC / pid / "stat").read_bytes()
    except OSError:  # gone by now
        return None
    state, parent, _group, session, *_ = text[text.rindex(b")") + 2 :].split(b" ", 4)
    return _Entry(parent=int(parent), session=int(session), alive=state not in b"ZX")


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
