"""The view: what the model is sent, derived from the log and from nothing else.

`build_view` folds the entries from the first to the last; a running session folds each new entry as it comes and gets
the same view, at a cost that does not grow with what is there already. Shortening and compaction are entries like any
other, so nothing here ever writes. The last step, the repair of pairs, is told in `context.pairs`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from .entries import (
    ArgumentStub,
    Compacted,
    CompactionUndone,
    Dropped,
    Entry,
    MessageLogged,
    Offloaded,
    OffloadedBlock,
    Pinned,
    PromptPart,
    Restored,
    Rewound,
    Shortened,
    Todo,
    TodosWritten,
    Unpinned,
)
from .messages import (
    AssistantMessage,
    Message,
    Pointer,
    Text,
    ToolCall,
    UserMessage,
)
from .pairs import Pairs, asked_before

Change = Callable[[Message], Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a log means now."""

    head: Compacted | None
    """The compaction whose text leads the view, if any."""
    messages: tuple[Message, ...]
    """What the model is sent, oldest first, the head's text included; every pair whole."""
    tail: tuple[Message, ...]
    """The messages after the head as they stand, pairs not repaired: what a compaction plans on."""
    todos: tuple[Todo, ...]
    pins: tuple[Pinned, ...]
    """What every compaction repeats word for word, oldest first."""
    restored: frozenset[str]
    """Ids of messages that the user brought back: they stay until a compaction."""


class ViewBuilder:
    """Folds entries into a view, one at a time."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.live: list[Entry] = []
        """The entries that count: those of compactions taken back, and what was rewound, do not."""
        self._reset()
        for entry in entries:
            self.add(entry)

    def _reset(self) -> None:
        self._head: Compacted | None = None
        self._head_messages: tuple[Message, ...] = ()
        self._tail: list[Message] = []
        self._pairs: Pairs | None = None
        """The tail with its pairs whole; None after something in it has changed."""
        self._todos: tuple[Todo, ...] = ()
        self._pins: dict[str, Pinned] = {}
        self._restored: set[str] = set()
        self._notes = False
        """The tail has notes on parts of the prompt."""
        self._view: View | None = None
        self._before: UserMessage | None = None
        """What stands before an answer that begins the view."""

    def add(self, entry: Entry) -> None:
        """Takes the next entry of the log."""
        if isinstance(entry, CompactionUndone | Rewound):
            self.live = [*_before(self.live, entry), entry]
            self._reset()
            for one in self.live:
                self._fold(one)
        else:
            self.live.append(entry)
            self._fold(entry)
        self._view = None

    @property
    def view(self) -> View:
        """The view after all entries so far."""
        if self._pairs is None:
            self._pairs = Pairs(self._tail)
        if self._view is None:
            messages = self._head_messages + self._pairs.messages
            if messages and isinstance(messages[0], AssistantMessage):  # the log has lost its first line
                messages = (self._asked(messages[0]), *messages)
            self._view = View(
                head=self._head,
                messages=messages,
                tail=tuple(self._tail),
                todos=self._todos,
                pins=tuple(self._pins.values()),
                restored=frozenset(self._restored),
            )
        return self._view

    def _asked(self, first: AssistantMessage) -> UserMessage:
        """The same message again for the same answer: what is unchanged is known by its identity."""
        if self._before is None or self._before.time != first.time or not self._before.id.startswith(first.id):
            self._before = asked_before(first)
        return self._before

    def _fold(self, entry: Entry) -> None:
        match entry:
            case MessageLogged(message=message):
                self._tail.append(message)
                self._notes = self._notes or _part(message) is not None
                if self._pairs is not None:
                    self._pairs.add(message)
            case Shortened(stubs=stubs, results=blocks):
                self._replace(_stubs_by_message(stubs) | _pointers_by_message(blocks))
            case Offloaded(blocks=blocks) | Dropped(blocks=blocks):
                self._replace(_pointers_by_message(blocks))
                self._restored -= {block.message for block in blocks}
            case Restored(messages=messages):
                self._restore(set(messages))
            case PromptPart(name=name) if self._notes:
                self._tail, self._pairs = [m for m in self._tail if _part(m) != name], None
            case Compacted():
                self._head, self._head_messages = entry, _head_messages(entry)
                self._tail, self._pairs = self._from(entry), None
            case TodosWritten(items=items):
                self._todos = items
            case Pinned():
                self._pins[entry.id] = entry
            case Unpinned(pin=pin):
                self._pins.pop(pin, None)
            case _:
                pass

    def _replace(self, changes: Mapping[str, Change]) -> None:
        self._pairs = None
        for position, message in enumerate(self._tail):
            if message.id in changes:
                self._tail[position] = changes[message.id](message)

    def _restore(self, ids: Set[str]) -> None:
        self._restored |= ids
        logged = (entry.message for entry in self.live if isinstance(entry, MessageLogged))
        originals = {message.id: message for message in logged if message.id in ids}
        self._tail, self._pairs = [originals.get(message.id, message) for message in self._tail], None

    def _from(self, head: Compacted) -> list[Message]:
        """What a compaction keeps. If the log lost the line of the first kept message, its place is known by number."""
        for position, message in enumerate(self._tail):
            if message.id == head.first_kept:
                return self._tail[position:]
        return self._tail[head.messages :] if head.first_kept is not None else []


def _before(live: Sequence[Entry], entry: CompactionUndone | Rewound) -> Sequence[Entry]:
    """The entries that still count when `entry` is added."""
    match entry:
        case CompactionUndone(compaction=compaction):
            return [one for one in live if one.id != compaction]
        case Rewound(to=to):
            at = next((at for at, one in enumerate(live) if one.id == to), len(live) - 1)
            return live[: at + 1]


def _part(message: Message) -> str | None:
    return message.part if isinstance(message, UserMessage) else None


def build_view(entries: Iterable[Entry]) -> View:
    """The view of a whole log."""
    return ViewBuilder(entries).view


def _head_messages(head: Compacted) -> tuple[Message, ...]:
    return (UserMessage(id=head.id, time=head.time, content=(Text(text=head.shown),), synthetic=True),)


def _stubs_by_message(stubs: Sequence[ArgumentStub]) -> dict[str, Change]:
    texts: defaultdict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for stub in stubs:
        texts[stub.message][stub.call_id, stub.argument] = stub.shown
    return {message: partial(_with_stubs, stubs=mine) for message, mine in texts.items()}


def _with_stubs(message: Message, stubs: Mapping[tuple[str, str], str]) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    content = tuple(_stubbed(part, stubs) if isinstance(part, ToolCall) else part for part in message.content)
    return replace(message, content=content)


def _stubbed(call: ToolCall, stubs: Mapping[tuple[str, str], str]) -> ToolCall:
    arguments = {name: stubs.get((call.id, name), value) for name, value in call.arguments.items()}
    return replace(call, arguments=arguments)


def _pointers_by_message(blocks: Sequence[OffloadedBlock]) -> dict[str, Change]:
    pointers: defaultdict[str, dict[int, Pointer]] = defaultdict(dict)
    for block in blocks:
        pointers[block.message][block.block] = block.pointer
    return {message: partial(_with_pointers, pointers=mine) for message, mine in pointers.items()}


def _with_pointers(message: Message, pointers: Mapping[int, Pointer]) -> Message:
    if isinstance(message, AssistantMessage):
        return message
    return replace(message, content=tuple(pointers.get(at, block) for at, block in enumerate(message.content)))
