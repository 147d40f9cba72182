"""Which session to work in: listing those of a workspace, choosing one, opening, continuing and copying it.

Only sessions with a twin in the user's own folder are known here; logs that came with a clone are not.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..context.entries import SessionStarted
from ..context.log import LogError, load
from ..context.session import Session
from ..context.storage import Locked, StorageError, archive_name, log_name
from .errors import SessionError
from .storage import DiskStorage
from .workspace import Workspace

_LONGEST_LINE = 1024 * 1024
"""Bytes; the first line of a log has a few hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which session to work in."""

    session: str | None = None
    """An id or the beginning of one; empty for the newest; None for a new session."""
    fork: bool = False
    """Work in a copy, and leave the session as it is."""
    persist: bool = True
    """Keep the session on disk after the run."""


def open_storage(workspace: Workspace, choice: Choice) -> tuple[DiskStorage, Callable[[], None]]:
    """The workspace's storage, or one in a temporary folder, and what takes the latter away again.

    What is not kept may go on with a session all the same: with a copy of its log. Raises `SessionError`, and
    `StorageError` where sessions cannot be kept.
    """
    if choice.persist:
        _need_writable(workspace.user)
        return workspace.storage(), lambda: None
    try:
        folder = Path(tempfile.mkdtemp(prefix="deepagent-"))
    except OSError as error:
        raise StorageError(f"no temporary folder can be made: {error.strerror}") from error
    storage = DiskStorage(folder, folder / "twins", prefix=str(folder))
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    if choice.session is not None:
        try:
            kept = workspace.storage()
            name = log_name(pick_session(kept, choice.session or None))
            storage.create(name, kept.read(name))
        except BaseException:
            remove()
            raise
    return storage, remove


def _need_writable(user: Path) -> None:
    """Says what to do where the user's folder cannot be written, as in some containers."""
    nearest = next(folder for folder in (user, *user.parents) if os.path.exists(folder))  # noqa: PTH110 - raises nothing
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise StorageError(
            f"{nearest} cannot be written, and sessions are kept in {user}: "
            "set DEEPAGENT_HOME to another folder, or use --no-session-persistence"
        )


def open_session(storage: DiskStorage, workspace: Workspace, choice: Choice) -> tuple[Session, tuple[str, ...]]:
    """The session, and what a person should know of it. Raises `SessionError` or `StorageError`."""
    if choice.session is None:
        return Session.start(storage, workspace=str(workspace.root), cwd=str(workspace.cwd)), ()
    wanted = pick_session(storage, choice.session or None)
    restore(storage, wanted)
    try:
        if choice.fork:
            return Session.fork(storage, wanted), ()
        return Session.resume(storage, wanted), ()
    except Locked:
        forked = Session.fork(storage, wanted)
        return forked, (f"{wanted} is open in another process; this is a copy of it, {forked.id}",)
    except (LogError, FileNotFoundError) as error:
        raise SessionError(f"the session {wanted} cannot be continued: {error}") from error


def put_back(storage: DiskStorage, workspace: Workspace, session: str) -> bool:
    """Puts back what was taken away from the project of a session in use; whether that was anything.

    Raises `StorageError`.
    """
    names = (
        log_name(session),
        archive_name(session),
        f"large_tool_results/{session}",
        f"conversation_history/{session}",
    )
    if all(storage.path(name).exists() or not (storage.mirror / name).exists() for name in names):
        return False
    try:
        workspace.keep_out_of_git()
    except OSError as error:
        raise StorageError(f"cannot write {error.filename}: {error.strerror}") from error
    restore(storage, session)
    return True


def restore(storage: DiskStorage, session: str) -> None:
    """Puts the files of a session, and of those that it was copied from, back into the project.

    Raises `StorageError`.
    """
    seen: set[str] = set()
    following: str | None = session
    while following is not None and following not in seen:
        seen.add(following)
        storage.restore_all(following)
        following = _copied_from(storage, following)


def _copied_from(storage: DiskStorage, session: str) -> str | None:
    """The session that this one began as a copy of: texts that it points to are that one's files."""
    with suppress(FileNotFoundError, LogError):
        first = load(session, _first_line(storage, session)).entries[0]
        return first.forked_from if isinstance(first, SessionStarted) else None
    return None


def _first_line(storage: DiskStorage, session: str) -> bytes:
    """With its end, if that is there. Raises `FileNotFoundError` or `StorageError`."""
    path = storage.mirror / log_name(session)
    try:
        with path.open("rb") as file:
            return file.readline(_LONGEST_LINE)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def session_ids(storage: DiskStorage) -> tuple[str, ...]:
    """The sessions of this workspace that this user wrote, newest first."""
    logs = [name for name in storage.names("sessions") if name.endswith(".jsonl")]
    logs.sort(key=lambda name: (storage.mirror / name).stat().st_mtime_ns, reverse=True)
    return tuple(Path(name).stem for name in logs if "." not in Path(name).stem)


def pick_session(storage: DiskStorage, wanted: str | None) -> str:
    """The session with the id (or the beginning of one) `wanted`; None for the newest. Raises `SessionError`."""
    ids = session_ids(storage)
    if wanted is None:
        newest = next((known for known in ids if _first_line(storage, known).endswith(b"\n")), None)
        if newest is None:  # a crash at the very beginning leaves a log that holds nothing
            raise SessionError("there is no session to continue in this workspace")
        return newest
    matches = [wanted] if wanted in ids else [known for known in ids if known.startswith(wanted)]
    if len(matches) != 1:
        problem = "no session" if not matches else f"{len(matches)} sessions"
        raise SessionError(f"{problem} of this workspace match {wanted!r}; `deepagent sessions` lists them")
    return matches[0]
