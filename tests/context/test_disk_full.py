"""A full disk: nothing is lost, the log stays readable, and the error says which file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from context_samples import SUMMARY, Rig, answer, assert_valid, call, result, said, step, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.archive import parse
from deepagent.context.log import encode, load
from deepagent.context.messages import Message, Pointer
from deepagent.context.record import Ask
from deepagent.context.session import Session
from deepagent.context.storage import StorageError, archive_name, log_name

Mount = Callable[[int], Path]


@pytest.fixture(params=["one disk", "project full", "home full"])
def full(request: pytest.FixtureRequest, small_disk: Mount, tmp_path: Path) -> tuple[DiskStorage, Path]:
    """A storage of which all, the project or the home lies on a small disk; and that disk."""
    disk = small_disk(192)
    project = tmp_path if request.param == "home full" else disk
    home = tmp_path if request.param == "project full" else disk
    return DiskStorage(project / "work" / ".deepagents", home / "home" / "twins", prefix=".deepagents"), disk


def fill_up(disk: Path, spare: int) -> Path:
    """Leaves about `spare` bytes on the disk."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass
        file.truncate(max(0, file.tell() - spare) // 4096 * 4096)
    return ballast


def test_the_log_is_as_it_was_and_goes_on_when_there_is_room(full: tuple[DiskStorage, Path]) -> None:
    storage, disk = full
    session = Session.start(storage, workspace="/w", cwd="/w")
    session.say(user("before"))
    ballast = fill_up(disk, 8192)
    said_so_far = 0
    with pytest.raises(StorageError, match="the disk is full") as caught:
        for number in range(100):
            session.say(user(f"message {number} " + "x" * 1_500))
            said_so_far = number + 1
    assert said_so_far > 0
    assert f"{session.id}.jsonl" in str(caught.value)
    assert str(disk) in str(caught.value)
    assert len(list(session.messages())) == said_so_far + 1
    assert len(session.view.tail) == said_so_far + 1
    check_log(session, storage)
    ballast.unlink()
    session.say(user("after"))
    session.sync()
    check_log(session, storage)
    session.close()
    assert list(Session.resume(storage, session.id).entries) == session.entries


def check_log(session: Session, storage: DiskStorage) -> None:
    data = storage.read(log_name(session.id))
    assert data == b"".join(map(encode, session.entries))
    assert storage.path(log_name(session.id)).read_bytes() == data
    assert load("log", data).notices == ()


def test_an_offload_that_does_not_fit_leaves_no_file_and_the_text_whole(full: tuple[DiskStorage, Path]) -> None:
    storage, disk = full
    session = Session.start(storage, workspace="/w", cwd="/w")
    session.say(user("before"))
    rig = Rig(session)
    ballast = fill_up(disk, 16_384)
    made = call()
    long = [result(made, "some long output\n" * 3_000)]
    assert rig.ladder.admit_results(long) == tuple(long)
    assert "the disk is full" in rig.troubles[0]
    assert "1-execute.txt" in rig.troubles[0]
    assert storage.names("large_tool_results") == ()
    assert not list(storage.root.rglob("*execute*"))
    ballast.unlink()
    (block,) = rig.ladder.admit_results(long)[0].content
    assert isinstance(block, Pointer)
    assert block.path.endswith("1-execute.txt")
    assert (
        storage.read(block.path.removeprefix(".deepagents/"))
        == storage.path(block.path.removeprefix(".deepagents/")).read_bytes()
    )
    session.close()


async def test_an_archive_that_does_not_fit_leaves_all_messages_in_the_view(full: tuple[DiskStorage, Path]) -> None:
    storage, disk = full
    session = Session.start(storage, workspace="/w", cwd="/w")
    rig = Rig(session, answers=[SUMMARY])
    history: list[Message] = [user("first"), *(m for n in range(10) for m in step(f"output {n} " * 200))]
    rig.say(*history)
    ballast = fill_up(disk, 12_288)
    before = session.view
    assert await rig.ladder.compact(Ask(reason="user")) is None
    assert session.view is before
    assert "the disk is full" in rig.troubles[-1]
    assert f"{session.id}.md" in rig.troubles[-1]
    check_log(session, storage)
    ballast.unlink()
    assert await rig.ladder.compact(Ask(reason="user")) is not None
    archived = [m for s in parse(storage.read(archive_name(session.id))).sections for m in s.messages]
    assert [*archived, *session.view.tail] == history
    assert storage.read(archive_name(session.id)) == storage.path(archive_name(session.id)).read_bytes()
    check_log(session, storage)
    session.close()


def test_a_session_that_could_not_begin_can_begin_later(full: tuple[DiskStorage, Path]) -> None:
    storage, disk = full
    ballast = fill_up(disk, 0)
    session = Session.start(storage, workspace="/w", cwd="/w")
    with pytest.raises(StorageError, match="the disk is full"):
        session.say(user("hello " * 2_000))
    assert list(session.messages()) == []
    ballast.unlink()
    made = call()
    session.say(user("hello"))
    session.say(answer(made))
    session.sync()
    check_log(session, storage)
    assert_valid(session.view.messages)
    session.close()


def test_the_entry_for_a_full_disk_is_not_half_there(full: tuple[DiskStorage, Path]) -> None:
    """The bytes that fitted are taken back, also where the project has a copy on another disk."""
    storage, disk = full
    session = Session.start(storage, workspace="/w", cwd="/w")
    session.say(user("before"))
    size = len(storage.read(log_name(session.id)))
    fill_up(disk, 8192)
    with pytest.raises(StorageError):
        session.say(user("x" * 60_000))
    assert len(storage.read(log_name(session.id))) == size
    assert storage.path(log_name(session.id)).stat().st_size == size
    session.say(short := user("short"))
    assert storage.read(log_name(session.id)).endswith(encode(session.entries[-1]))
    assert session.entries[-1].id == said(short).id
    session.close()
