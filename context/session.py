"""A session: its log, the view that follows from it, and the archive beside it.

Everything that changes a session goes through `append`; nothing else does. Which folder the files lie in is the
storage's business, what to append is the loop's and the ladder's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC
from secrets import choice
from typing import TypedDict

from .archive import Archive
from .entries import FORMAT_VERSION, Entry, MessageLogged, SessionStarted, UsageReported
from .log import LogWriter, load
from .messages import AssistantMessage, Clock, Message, ToolMessage, UserMessage, new_id, timestamp, utc_now
from .storage import Storage, StorageError, log_name
from .view import View, ViewBuilder

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


class Header(TypedDict):
    """What every entry begins with."""

    id: str
    time: str
    parent: str | None


def new_session_id(clock: Clock = utc_now) -> str:
    """`YYYYMMDD-HHMMSS-xxxx`, in UTC."""
    return f"{clock().astimezone(UTC):%Y%m%d-%H%M%S}-{''.join(choice(_ALPHABET) for _ in range(4))}"


class Session:
    """One conversation, on disk and in memory alike."""

    def __init__(
        self,
        storage: Storage,
        session: str,
        *,
        clock: Clock = utc_now,
        first: SessionStarted | None = None,
    ) -> None:
        """Use `start`, `resume` or `fork`. Raises `Locked` if another process has the session open."""
        self.id = session
        self.storage = storage
        self.clock = clock
        self.archive = Archive(storage, session)
        self.notices: tuple[str, ...] = ()
        """What was odd about the log when it was opened."""
        self._log = LogWriter(storage, session, first=first)
        self.entries: list[Entry] = []
        self.answers = 0
        """How many answers of a model the log holds."""
        self.call_ids: set[str] = set()
        """The ids of all tool calls so far."""
        self.cost: float | None = 0.0
        """US dollars so far; None once a price was unknown."""
        self._builder = ViewBuilder()
        if first is not None:
            self._take(first)

    @classmethod
    def start(cls, storage: Storage, *, workspace: str, cwd: str, clock: Clock = utc_now) -> Session:
        """A new session. Nothing is written before something is said in it."""
        session = new_session_id(clock)
        first = SessionStarted(
            id=new_id(),
            time=timestamp(clock),
            parent=None,
            version=FORMAT_VERSION,
            session=session,
            workspace=workspace,
            cwd=cwd,
        )
        return cls(storage, session, clock=clock, first=first)

    @classmethod
    def start_task(cls, parent: Session) -> Session:
        """A new session for a sub-agent's task: its files carry the parent's id, and go with it."""
        first = next(entry for entry in parent.entries if isinstance(entry, SessionStarted))
        task = f"{parent.id}.{''.join(choice(_ALPHABET) for _ in range(4))}"
        started = replace(first, id=new_id(), time=timestamp(parent.clock), session=task, forked_from=None)
        return cls(parent.storage, task, clock=parent.clock, first=started)

    @classmethod
    def resume(cls, storage: Storage, session: str, *, clock: Clock = utc_now) -> Session:
        """A session as its log left it. Raises `FileNotFoundError`, `LogError`, `Locked`."""
        name = log_name(session)
        storage.read(name)  # for its error: opening would make a log that is not there
        resumed = cls(storage, session, clock=clock)
        with resumed._closed_on_error():
            loaded = load(
                name, storage.read(name)
            )  # only now, as another process may have written until we had the lock
            if not loaded.closed:
                resumed._log.close_torn_line()
            resumed.notices = loaded.notices
            for entry in loaded.entries:
                resumed._take(entry)
        return resumed

    @classmethod
    def fork(cls, storage: Storage, session: str, *, clock: Clock = utc_now) -> Session:
        """A new session that begins with everything `session` holds; the old one is only read."""
        loaded = load(log_name(session), storage.read(log_name(session)))
        old = loaded.entries[0]
        assert isinstance(old, SessionStarted)
        forked = cls(storage, new_session_id(clock), clock=clock)
        with forked._closed_on_error():
            forked.notices = loaded.notices
            first = forked.started(workspace=old.workspace, cwd=old.cwd)
            forked.append(replace(first, id=old.id, forked_from=session))
            forked._log.copy(loaded.lines[1:])
            for entry in loaded.entries[1:]:
                forked._take(entry)
            forked.sync()
        return forked

    @contextmanager
    def _closed_on_error(self) -> Generator[None]:
        """Gives the lock back when opening the session fails half-way."""
        try:
            yield
        except BaseException:
            with suppress(StorageError):
                self._log.close()
            raise

    def started(self, *, workspace: str, cwd: str) -> SessionStarted:
        """The first entry."""
        return SessionStarted(**self.header(), version=FORMAT_VERSION, session=self.id, workspace=workspace, cwd=cwd)

    def header(self) -> Header:
        """Id, time and parent of the next entry."""
        parent = self.entries[-1].id if self.entries else None
        return Header(id=new_id(), time=timestamp(self.clock), parent=parent)

    def append(self, entry: Entry) -> None:
        """Adds an entry to log and view, lone surrogates replaced. Raises `StorageError`; then neither has changed."""
        self._take(self._log.append(entry))

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._builder.add(entry)
        match entry:
            case MessageLogged(message=AssistantMessage() as answer):
                self.answers += 1
                self.call_ids.update(call.id for call in answer.calls)
            case UsageReported(cost=cost):
                self.cost = None if self.cost is None or cost is None else self.cost + cost
            case _:
                pass

    def say(self, message: Message) -> None:
        """Adds a message to the conversation."""
        self.append(MessageLogged(id=message.id, time=message.time, parent=self.header()["parent"], message=message))

    def sync(self) -> None:
        """Returns when everything appended is on the disk."""
        self._log.sync()

    def close(self) -> None:
        """Syncs and gives the session back, even if that raises `StorageError`."""
        self._log.close()

    @property
    def view(self) -> View:
        """What the model sees now."""
        return self._builder.view

    @property
    def live(self) -> Sequence[Entry]:
        """The entries that count now, oldest first: what was rewound or taken back does not."""
        return self._builder.live

    def messages(self) -> Iterable[Message]:
        """Every message of the conversation as it was logged, in the view or not, oldest first."""
        return (entry.message for entry in self.live if isinstance(entry, MessageLogged))

    def requests(self) -> tuple[UserMessage, ...]:
        """What the user wrote, oldest first."""
        return tuple(m for m in self.messages() if isinstance(m, UserMessage) and not m.synthetic)

    def open_calls(self) -> bool:
        """Whether the newest answer waits for results."""
        answered: set[str] = set()
        for message in reversed(self.view.tail):
            match message:
                case ToolMessage():
                    answered.add(message.call_id)
                case AssistantMessage():
                    return any(call.id not in answered for call in message.calls)
                case UserMessage():
                    return False
        return False
