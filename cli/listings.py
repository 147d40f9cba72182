"""What lists of sessions and archives say, read from the files that this user's `deepagent` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from ..agent.errors import SessionError
from ..agent.removal import is_open
from ..agent.sessions import pick_session, session_ids
from ..agent.storage import DiskStorage
from ..agent.workspace import Workspace
from ..context.archive import parse
from ..context.entries import Ended, Entry, MessageLogged
from ..context.log import LogError, decode, load
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
    """How its last run ended; `stopped` where the log breaks off, `open` where a process has it open."""
    size: int
    """Bytes of the log."""
    time: str
    """When something was last written; empty where that cannot be read."""


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
    return list(each_session(workspace))


def each_session(workspace: Workspace) -> Iterator[SessionRow]:
    """The same, one at a time: a list of hundreds can be shown while it is being read."""
    storage = workspace.storage()
    for session in session_ids(storage):
        with suppress(FileNotFoundError):  # removed meanwhile
            yield _session_row(session, storage)


def title_of(message: UserMessage) -> str:
    """The beginning of a request, in one line; `…` where it goes on."""
    line = " ".join(text_of(message)[: _TITLE * 20].split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1].rstrip()}…"


def _session_row(session: str, storage: DiskStorage) -> SessionRow:
    """The row, from the few lines that matter: a log of many megabytes is not taken apart for it."""
    data = storage.read(log_name(session))
    row = SessionRow(id=session, title="", messages=0, compactions=0, ended="unreadable", size=len(data), time="")
    try:
        load(session, data[: data.find(b"\n") + 1 or len(data)])
    except LogError as error:
        return {**row, "title": str(error)}
    last = _last_entry(data)
    ended = last.reason if isinstance(last, Ended) else "stopped"
    return {
        **row,
        "title": _title(data),
        "messages": _count(data, "message"),
        "compactions": _count(data, "compacted"),
        "ended": "open" if is_open(storage, session) else ended,
        "time": last.time if last else "",
    }


def _count(data: bytes, kind: str) -> int:
    """How many entries of a kind a log has. In each line the kind comes last, and no text of a line looks like it."""
    return data.count(f',"kind":"{kind}"}}\n'.encode())


def _title(data: bytes) -> str:
    """The first request; empty where there is none."""
    for line in _lines(data):
        if b'"role":"user"' in line:
            match _decoded(line):
                case MessageLogged(message=UserMessage(synthetic=False) as message):
                    return title_of(message)
                case _:
                    pass
    return ""


def _lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def _last_entry(data: bytes) -> Entry | None:
    """The last entry that can be read."""
    end = len(data.rstrip())
    while end > 0:
        start = data.rfind(b"\n", 0, end) + 1
        if (entry := _decoded(data[start:end])) is not None:
            return entry
        end = start - 1
    return None


def _decoded(line: bytes) -> Entry | None:
    with suppress(ValueError, RecursionError):
        return decode(line)
    return None


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
