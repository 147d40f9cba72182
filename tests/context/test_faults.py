"""A disk that fails at any one operation: nothing acknowledged is lost or doubled, and the session goes on."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from context_samples import SUMMARY, Rig, answer, assert_valid, call, result, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.archive import parse
from deepagent.context.ladder import CannotUndo
from deepagent.context.messages import AssistantMessage, Message, Pointer, ToolMessage, UserMessage, shown
from deepagent.context.record import Ask
from deepagent.context.session import Session
from deepagent.context.storage import AppendFile, StorageError

OPERATIONS = 60
"""More than the scenario has; a test says so."""


class Crash(BaseException):
    """The process ends here: nobody catches it."""


class Fault:
    """Counts operations and fails at one of them."""

    def __init__(self, at: int, failure: type[BaseException]) -> None:
        self.at = at
        self.failure = failure
        self.done = 0

    def step(self) -> None:
        """One operation begins."""
        self.done += 1
        if self.done == self.at or (self.failure is Crash and self.done > self.at):
            raise self.failure("the disk is full")


class FailingFile:
    """An open file on a failing disk; a failed write may leave half of it."""

    def __init__(self, file: AppendFile, fault: Fault, *, torn: bool) -> None:
        self._file = file
        self._fault = fault
        self._torn = torn

    def append(self, data: bytes) -> int:
        try:
            self._fault.step()
        except Crash:
            if self._torn and self._fault.done == self._fault.at:
                self._file.append(data[: len(data) // 2])
            raise
        return self._file.append(data)

    def sync(self) -> None:
        self._fault.step()
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class FailingStorage(DiskStorage):
    """A disk that fails at one operation."""

    fault = Fault(0, StorageError)
    torn = False

    def open(self, name: str, *, lock: bool = False) -> AppendFile:
        return FailingFile(super().open(name, lock=lock), self.fault, torn=self.torn)

    def create(self, name: str, data: bytes) -> None:
        self.fault.step()
        super().create(name, data)


async def scenario(made: Rig, acknowledged: list[Message]) -> None:
    """Offloads on entry, trims, compacts, takes back, compacts again; goes on after what fails but for a crash."""

    def say(*messages: Message) -> None:
        for message in messages:
            with suppress(StorageError):
                admitted = message
                if isinstance(message, UserMessage):
                    admitted = made.ladder.admit_user(message)
                elif isinstance(message, ToolMessage):
                    (admitted,) = made.ladder.admit_results([message])
                made.session.say(admitted)
                made.session.sync()
                acknowledged.append(message)

    for turn in range(3):
        write, run = call("write_file", path="x", content=f"{turn} " * 1_500), call()
        say(user(f"task {turn} " * 40), answer(write, run), result(write, "ok", path="x", added=1))
        say(result(run, f"out {turn}\n" * (3_000 if turn == 1 else 400)), answer(f"note {turn} " * 60))
    with suppress(StorageError):
        made.ladder.trim()
    with suppress(StorageError):
        await made.ladder.compact(Ask(reason="user"))
    with suppress(StorageError, CannotUndo):
        made.ladder.undo()
    say(user("go on"))
    with suppress(StorageError):
        await made.ladder.compact(Ask(reason="user"))
    say(answer("The end."))


def texts(messages: Sequence[Message], storage: DiskStorage) -> dict[str, list[str]]:
    """What each message holds, whole, wherever it lies."""
    found: dict[str, list[str]] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            found[message.id] = [str(part) for part in message.content]
            continue
        found[message.id] = [
            storage.read(block.path.removeprefix(".deepagents/")).decode()
            if isinstance(block, Pointer)
            else shown(block)
            for block in message.content
        ]
    return found


async def play(folder: Path, at: int, failure: type[BaseException], *, torn: bool = False) -> int:
    """Plays the scenario on a disk that fails at operation `at`, looks at what is left, and goes on."""
    places = (folder / "work" / ".deepagents", folder / "home")
    storage = FailingStorage(*places, prefix=".deepagents")
    storage.fault, storage.torn = Fault(0, failure), torn
    session = Session.start(storage, workspace="/w", cwd="/w")
    acknowledged: list[Message] = []
    storage.fault.at, storage.fault.done = at, 0
    with suppress(Crash):
        await scenario(Rig(session, answers=[SUMMARY]), acknowledged)
    storage.fault.at = 0
    reached = storage.fault.done
    storage.fault = Fault(0, StorageError)
    with suppress(StorageError, Crash):
        session.close()
    if not acknowledged:
        return reached
    healthy = DiskStorage(*places, prefix=".deepagents")
    again = Session.resume(healthy, session.id)
    try:
        logged = list(again.messages())
        assert len({message.id for message in logged}) == len(logged)
        whole = texts(logged, healthy)
        for message in acknowledged:
            assert whole[message.id] == texts([message], healthy)[message.id]
        assert_valid(again.view.messages)
        pointers = [b for m in again.view.tail if not isinstance(m, AssistantMessage) for b in m.content]
        for pointer in pointers:
            if isinstance(pointer, Pointer) and pointer.path.startswith(".deepagents"):
                assert healthy.read(pointer.path.removeprefix(".deepagents/"))
        made = Rig(again, answers=[SUMMARY])
        made.say(user("and on"), answer("words " * 300), user("once more"))
        assert await made.ladder.compact(Ask(reason="user"))
        sections = parse(healthy.read(f"conversation_history/{again.id}.md")).sections
        archived = [message.id for section in sections for message in section.messages]
        assert len(set(archived)) == len(archived)
    finally:
        again.close()
    return reached


@pytest.fixture
def folder(storage: DiskStorage) -> Path:
    """A folder where syncing costs nothing, if the system has such a place."""
    return storage.root.parents[1]


async def test_without_a_fault_there_are_fewer_operations_than_are_tried(folder: Path) -> None:
    assert 20 < await play(folder, 0, StorageError) < OPERATIONS


@pytest.mark.parametrize("failure", [StorageError, Crash])
@pytest.mark.parametrize("torn", [False, True])
async def test_one_operation_fails(folder: Path, failure: type[BaseException], torn: bool) -> None:
    for at in range(1, OPERATIONS):
        place = folder / str(at)
        await play(place, at, failure, torn=torn)
        shutil.rmtree(place, ignore_errors=True)
