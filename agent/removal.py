"""Removing sessions: exactly one session's files, never those that another session needs, never one that is open."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from ..context.messages import Clock, utc_now
from ..context.recall import Recall
from ..context.storage import archive_name, log_name
from .errors import SessionError
from .sessions import session_ids
from .storage import DiskStorage


def files_of(storage: DiskStorage, session: str) -> tuple[str, ...]:
    """The names of a session's files, those of its sub-agents included."""
    return tuple(name for name in storage.names(".") if _belongs(name, session))


def _belongs(name: str, session: str) -> bool:
    """Whether a file is `…/SESSION.jsonl`, `…/SESSION.TASK.md`, or lies in a folder of that name."""
    return any(part == session or part.startswith(f"{session}.") for part in PurePosixPath(name).parts)


def referring(storage: DiskStorage, session: str) -> tuple[str, ...]:
    """Other sessions that need the files of this one: they began as its copy, or point to its texts."""
    marks = (f'"{session}"'.encode(), f"/{session}/".encode(), archive_name(session).encode())
    others = (other for other in session_ids(storage) if other != session)
    return tuple(other for other in others if _holds(storage, other, marks))


def _holds(storage: DiskStorage, session: str, marks: tuple[bytes, ...]) -> bool:
    with suppress(FileNotFoundError):
        data = storage.read(log_name(session))
        return any(mark in data for mark in marks)
    return False


def is_open(storage: DiskStorage, session: str) -> bool:
    """Whether a process, perhaps this one, has the session open."""
    try:
        fd = os.open(storage.own(log_name(session)), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(fd)


def remove_session(storage: DiskStorage, session: str) -> tuple[str, ...]:
    """Removes a session's files here and at user level, and its words from the index; gives their names.

    Raises `SessionError` if it is open or another session needs it, `StorageError` if a file stays.
    """
    if is_open(storage, session):
        raise SessionError(f"{session} is open in a process; close it first")
    if others := referring(storage, session):
        raise SessionError(f"{session} is needed by {', '.join(others)}: a copy goes on where it ended")
    Recall(storage).forget(session)
    names = files_of(storage, session)
    for name in sorted(names, key=lambda name: name == log_name(session)):  # the log last: until then it is listed
        storage.remove(name)
    return names


def remove_expired(storage: DiskStorage, days: int, *, keep: str, clock: Clock = utc_now) -> tuple[str, ...]:
    """Removes sessions whose logs were not written for `days` days; not `keep`, nor what is needed or open."""
    before = clock() - timedelta(days=days)
    removed: list[str] = []
    for session in session_ids(storage):
        written = datetime.fromtimestamp(storage.own(log_name(session)).stat().st_mtime, UTC)
        if session != keep and written < before:
            with suppress(SessionError):
                remove_session(storage, session)
                removed.append(session)
    return tuple(removed)
