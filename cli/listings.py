"""What lists of sessions and archives say, read from the files that this user's `deepagent` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from ..agent.errors import SessionError
from ..agent.sessions import pick_session, session_ids
from ..agent.workspace import Workspace
from ..context.archive import parse
from ..context.entries import Compacted, Ended, MessageLogged
from ..context.log import LogError, load
from ..context.messages import UserMessage, text_of
from ..context.storage import archive_name, log_name

_TITLE = 60
"""Characters of a session's first request that stand for its title."""


class SessionRow(TypedDict):
    """A session in a list."""

    id: str
    title: str
    messages: int
    compactions: int
    ended: str
    """How its last run ended; `stopped` where the log breaks off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRow:
    """A section of an archive in a list."""

    session: str
    compaction: str
    time: str
    messages: int
    size: int
    """Bytes."""


def session_rows(workspace: Workspace) -> list[SessionRow]:
    """The sessions of a workspace, newest first; those that cannot be read say so."""
    storage = workspace.storage()
    return [_session_row(session, storage.read(log_name(session))) for session in session_ids(storage)]


def _session_row(session: str, data: bytes) -> SessionRow:
    try:
        entries = load(session, data).entries
    except LogError as error:
        return SessionRow(id=session, title=str(error), messages=0, compactions=0, ended="unreadable")
    messages = [entry.message for entry in entries if isinstance(entry, MessageLogged)]
    first = next((text_of(m) for m in messages if isinstance(m, UserMessage)), "")
    last = entries[-1]
    return SessionRow(
        id=session,
        title=" ".join(first.split())[:_TITLE],
        messages=len(messages),
        compactions=sum(isinstance(entry, Compacted) for entry in entries),
        ended=last.reason if isinstance(last, Ended) else "stopped",
    )


def archive_rows(workspace: Workspace) -> list[ArchiveRow]:
    """Every section of every archive of a workspace, newest session first."""
    storage = workspace.storage()
    rows: list[ArchiveRow] = []
    for session in session_ids(storage):
        try:
            sections = parse(storage.read(archive_name(session))).sections
        except FileNotFoundError:
            continue
        rows += [
            ArchiveRow(
                session=session,
                compaction=section.compaction,
                time=section.time,
                messages=len(section.messages),
                size=section.end - section.start,
            )
            for section in sections
        ]
    return rows


def archive_text(workspace: Workspace, session: str, compaction: str | None) -> str:
    """An archive as it is, or one section of it. Raises `SessionError`."""
    storage = workspace.storage()
    found = pick_session(storage, session)
    try:
        data = storage.read(archive_name(found))
    except FileNotFoundError as error:
        raise SessionError(f"nothing of {found} was archived") from error
    if compaction is None:
        return data.decode("utf-8", "replace")
    for section in parse(data).sections:
        if section.compaction.startswith(compaction):
            return data[section.start : section.end].decode("utf-8", "replace").strip()
    raise SessionError(f"the archive {Path(archive_name(found)).name} has no compaction {compaction!r}")
