"""What a crash, a second process, or a damaged file does to a log: at most the last record is lost."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from context_samples import Rig, answer, assert_valid, call, result, said, step, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.entries import MessageLogged, Note
from deepagent.context.log import encode, load
from deepagent.context.session import Session
from deepagent.context.storage import Locked, log_name


def log_of(storage: DiskStorage, session: str) -> Path:
    return storage.mirror / log_name(session)


def recorded(session: Session) -> list[int]:
    """A few turns; the bytes at which each record of the log begins, and its end."""
    session.say(user("first"))
    one, two = call(path="a"), call(path="b")
    session.say(answer("I look", one, two))
    session.say(result(one, "line\n" * 20))
    session.say(result(two, "é\U0001f600"))
    session.append(Note(**session.header(), text="a note"))
    session.sync()
    ends = [0]
    for entry in session.entries:
        ends.append(ends[-1] + len(encode(entry)))
    return ends


def test_cut_at_every_byte_of_its_last_three_records_a_log_goes_on(session: Session, storage: DiskStorage) -> None:
    ends = recorded(session)
    entries = list(session.entries)
    session.close()
    log = log_of(storage, session.id)
    data = log.read_bytes()
    assert ends[-1] == len(data)
    for cut in range(ends[-4], len(data) + 1):
        log.write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends) - 1
        lone_newline = cut + 1 in ends  # the record is whole but for its newline
        resumed = Session.resume(storage, session.id)
        assert resumed.entries == entries[: whole + lone_newline]
        assert_valid(resumed.view.messages)
        resumed.say(user("next"))
        resumed.close()
        again = load("log", log.read_bytes())
        assert list(again.entries) == resumed.entries
        assert len(again.notices) == (0 if lone_newline or cut in ends else 1)


def test_zeros_that_a_power_cut_left_are_set_aside(session: Session, storage: DiskStorage) -> None:
    recorded(session)
    session.close()
    with log_of(storage, session.id).open("ab") as file:
        file.write(b"\0" * 4096)
    resumed = Session.resume(storage, session.id)
    assert resumed.entries == session.entries
    resumed.say(user("next"))
    resumed.close()
    assert [notice.split(":")[1] for notice in Session.resume(storage, session.id).notices] == ["7"]


def test_without_any_one_line_the_view_is_valid(session: Session, storage: DiskStorage) -> None:
    for number in range(4):
        for message in step(f"out {number}"):
            session.say(message)
    session.close()
    log = log_of(storage, session.id)
    lines = log.read_bytes().splitlines(keepends=True)
    for gone in range(1, len(lines)):
        log.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
        resumed = Session.resume(storage, session.id)
        assert len(resumed.entries) == len(lines) - 1
        assert_valid(resumed.view.messages)
        resumed.close()


async def test_without_the_first_kept_message_the_kept_ones_after_it_stay(
    rig: Callable[..., Rig], storage: DiskStorage
) -> None:
    made = rig(window=8_000)
    made.say(user("the first"))
    for number in range(40):
        made.say(*step(f"out {number}\n" * 150))
    await made.ladder.make_room()
    head = made.session.view.head
    assert head is not None
    kept = made.session.view.tail
    made.say(user("the newest"))
    made.session.close()
    log = log_of(storage, made.session.id)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line for line in lines if json.loads(line)["id"] != head.first_kept))
    resumed = Session.resume(storage, made.session.id)
    assert resumed.view.head == head
    assert resumed.view.tail == (*kept[1:], resumed.view.tail[-1])
    assert "the newest" in repr(resumed.view.tail[-1])
    resumed.close()


def test_a_session_in_which_nothing_was_said_leaves_nothing(session: Session, storage: DiskStorage) -> None:
    assert [entry.kind for entry in session.entries] == ["session_started"]
    session.close()
    assert not storage.root.exists()
    assert storage.names(".") == ()


def test_a_missing_session_is_not_made_by_resuming_it(storage: DiskStorage) -> None:
    with pytest.raises(FileNotFoundError):
        Session.resume(storage, "20260101-000000-none")
    assert storage.names("sessions") == ()


SECOND = """
import sys
from pathlib import Path
from deepagent.agent.storage import DiskStorage
from deepagent.context.messages import Text, UserMessage
from deepagent.context.session import Session
from deepagent.context.storage import Locked
root, mirror, session, act = sys.argv[1:]
storage = DiskStorage(Path(root), Path(mirror), prefix=".deepagents")
try:
    opened = Session.fork(storage, session) if act == "fork" else Session.resume(storage, session)
except Locked as error:
    print("locked:", error)
else:
    opened.say(UserMessage(id="other", time="", content=(Text(text="from the other process"),)))
    opened.close()
    print(opened.id, len(opened.entries))
"""


def other_process(storage: DiskStorage, session: str, act: str) -> str:
    command = [sys.executable, "-c", SECOND, str(storage.root), str(storage.mirror), session, act]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_second_process_is_refused_and_may_fork(session: Session, storage: DiskStorage) -> None:
    recorded(session)
    assert other_process(storage, session.id, "resume") == f"locked: {session.id}.jsonl is open in another process"
    fork, count = other_process(storage, session.id, "fork").split()
    assert fork != session.id
    assert int(count) == len(session.entries) + 1
    session.say(user("still mine"))
    session.close()
    mine, forked = (load("log", storage.read(log_name(name))) for name in (session.id, fork))
    assert list(mine.entries) == session.entries
    assert mine.notices == forked.notices == ()
    assert other_process(storage, session.id, "resume").startswith(session.id)


def test_what_another_process_wrote_until_the_lock_was_ours_is_read(
    session: Session, storage: DiskStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(session)
    session.close()
    real = storage.open

    def late(name: str, *, lock: bool = False) -> object:
        if lock:
            monkeypatch.setattr(storage, "open", real)
            other_process(storage, session.id, "resume")
        return real(name, lock=lock)

    monkeypatch.setattr(storage, "open", late)
    resumed = Session.resume(storage, session.id)
    assert "from the other process" in repr(resumed.view.messages[-1])
    resumed.close()


def test_a_fork_keeps_lines_that_this_version_does_not_know(session: Session, storage: DiskStorage) -> None:
    recorded(session)
    session.close()
    log = log_of(storage, session.id)
    with log.open("ab") as file:
        file.write(b'{"kind":"teleported","id":"t"}\n{"kind":"message","id":\n' + encode(said(user("last"))))
    fork = Session.fork(storage, session.id)
    fork.close()
    data = storage.read(log_name(fork.id))
    assert data.count(b"teleported") == 1
    reloaded = load("log", data)
    assert list(reloaded.entries) == fork.entries
    assert reloaded.notices == ()
    first, *rest = reloaded.entries
    assert first.kind == "session_started"
    assert (first.session, first.forked_from, first.id) == (fork.id, session.id, session.entries[0].id)
    assert rest == list(load("log", log.read_bytes()).entries[1:])


def test_a_failed_start_gives_the_lock_back(session: Session, storage: DiskStorage) -> None:
    recorded(session)
    session.close()
    log_of(storage, session.id).write_bytes(b"{}\n")
    for _ in range(2):
        with pytest.raises(Exception, match="does not begin") as caught:
            Session.resume(storage, session.id)
        assert not isinstance(caught.value, Locked)


def test_files_are_the_users_alone(session: Session, storage: DiskStorage) -> None:
    recorded(session)
    for base in (storage.root, storage.mirror):
        for path in (base, *base.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.long
async def test_sixty_compactions_do_not_double_the_log(rig: Callable[..., Rig], storage: DiskStorage) -> None:
    made = rig(window=8_000)
    raw = 0
    while len(made.compactions()) < 60:
        await made.ladder.make_room()
        messages = [user("go on with the next part"), *step("some output of a command\n" * 200)]
        made.say(*messages)
        raw += sum(len(encode(said(message))) for message in messages)
    entries = len(made.session.entries)
    made.session.close()
    assert log_of(storage, made.session.id).stat().st_size < 2 * raw
    assert entries == len(load("log", storage.read(log_name(made.session.id))).entries)
    assert sum(isinstance(entry, MessageLogged) for entry in made.session.entries) > 100
