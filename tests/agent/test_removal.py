"""Removing sessions: exactly their files go, never what another session needs, never one that is open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deepagent.agent.errors import SessionError
from deepagent.agent.removal import files_of, referring, remove_expired, remove_session
from deepagent.agent.sessions import session_ids
from deepagent.agent.storage import DiskStorage
from deepagent.context.messages import Text, UserMessage, new_id
from deepagent.context.recall import Recall
from deepagent.context.recall_query import Query
from deepagent.context.session import Session


@pytest.fixture
def storage(tmp_path: Path) -> DiskStorage:
    return DiskStorage(tmp_path / "work" / ".deepagents", tmp_path / "home" / "twins", prefix=".deepagents")


def talk(storage: DiskStorage, text: str) -> str:
    """A session with all kinds of files; its id."""
    session = Session.start(storage, workspace="/w", cwd="/w")
    message = UserMessage(id=new_id(), time="2026-11-30T21:15:11.042Z", content=(Text(text=text),))
    session.say(message)
    session.archive.add(new_id(), message.time, (message,), 10)
    storage.create(f"large_tool_results/{session.id}/1-execute.txt", b"long")
    storage.create(f"conversation_history/{session.id}/user-1.md", b"long")
    storage.create(f"sessions/{session.id}.task1.jsonl", b"{}\n")
    session.close()
    return session.id


def everything(storage: DiskStorage) -> set[Path]:
    roots = (storage.root, storage.mirror)
    return {path for root in roots for path in root.rglob("*") if path.is_file() and "index.sqlite" not in path.name}


def test_exactly_its_files_go(storage: DiskStorage) -> None:
    kept = talk(storage, "a word to keep")
    before = everything(storage)
    gone = talk(storage, "a zebra to forget")
    assert Recall(storage).search(Query(text="zebra")).total == 1
    assert len(remove_session(storage, gone)) == 5
    assert everything(storage) == before
    assert not (storage.root / "large_tool_results" / gone).exists()
    assert session_ids(storage) == (kept,)
    assert Recall(storage).search(Query(text="zebra")).total == 0
    assert Recall(storage).search(Query(text="keep")).total >= 1


def test_an_id_that_begins_another_removes_nothing_of_it(storage: DiskStorage) -> None:
    one = talk(storage, "one")
    storage.create(f"sessions/{one}x.jsonl", b"{}\n")
    assert f"sessions/{one}x.jsonl" not in files_of(storage, one)


def test_one_that_is_open_stays(storage: DiskStorage) -> None:
    one = talk(storage, "one")
    session = Session.resume(storage, one)
    with pytest.raises(SessionError, match="is open"):
        remove_session(storage, one)
    session.close()
    remove_session(storage, one)
    assert session_ids(storage) == ()


def test_one_that_a_copy_needs_stays_until_the_copy_is_gone(storage: DiskStorage) -> None:
    one = talk(storage, "one")
    copy = Session.fork(storage, one)
    copy.close()
    assert referring(storage, one) == (copy.id,)
    with pytest.raises(SessionError, match=f"is needed by {copy.id}"):
        remove_session(storage, one)
    remove_session(storage, copy.id)
    remove_session(storage, one)
    assert everything(storage) == set()


def test_old_ones_go_but_for_those_that_are_needed_and_the_one_in_use(storage: DiskStorage) -> None:
    old, current = talk(storage, "old"), talk(storage, "current")
    needed = talk(storage, "needed")
    copy = Session.fork(storage, needed)
    later = datetime.now(UTC) + timedelta(days=31)
    assert remove_expired(storage, 40, keep=current, clock=lambda: later) == ()
    assert remove_expired(storage, 30, keep=current, clock=lambda: later) == (old,)
    copy.close()
    assert set(session_ids(storage)) == {current, needed, copy.id}


def test_a_file_that_is_not_ours_any_more_stays(storage: DiskStorage) -> None:
    one = talk(storage, "one")
    path = storage.path(f"conversation_history/{one}.md")
    path.unlink()
    path.write_text("somebody else's")
    remove_session(storage, one)
    assert path.read_text() == "somebody else's"
