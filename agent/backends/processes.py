"""The processes of a session: which of them still run, and a signal to all.

A command is the leader of a session of its own, so its number is theirs. Where there is no `/proc`, only the process
group is seen and reached, which is the same unless a shell turned on job control.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def running(session: int) -> bool:
    """Whether anything of the session still runs. Who has ended and waits to be collected does not."""
    members = _members(session)
    return _signal_group(session, 0) if members is None else bool(members)


def signal_all(session: int, number: int) -> None:
    """Sends a signal to every process of the session."""
    _signal_group(session, number)
    for pid in _members(session) or ():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _members(session: int) -> list[int] | None:
    """Numbers of the session's processes, or None where the system does not tell."""
    try:
        names = [entry.name for entry in os.scandir(_PROC) if entry.name.isdecimal()]
    except OSError:
        return None
    return [int(name) for name in names if _belongs(name, session)] if names else None


def _belongs(pid: str, session: int) -> bool:
    try:
        text = (_PROC / pid / "stat").read_bytes()
    except OSError:  # gone by now
        return False
    state, _parent, _group, of_session, *_ = text[text.rindex(b")") + 2 :].split(b" ", 4)
    return int(of_session) == session and state not in b"ZX"
