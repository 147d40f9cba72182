"""The view: what the model is sent, derived from the log and from nothing else.

`build_view` folds the entries from the first to the last; a running session folds each new entry as it comes and gets
the same view. Shortening and compaction are entries like any other, so nothing here ever writes. The last step
repairs pairs: whatever a log has been through, each call is followed by its results and each result has its call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .entries import (
    ArgumentStub,
    Compacted,
    CompactionUndone,
    Entry,
    MessageLogged,
    Offloaded,
    OffloadedBlock,
    Shortened,
    Todo,
    TodosWritten,
)
from .messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)

INTERRUPTED = "Interrupted: this call has no result. It may have run in part, or not at all."
"""Answers a call that a crash or an interrupt left open."""


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


class ViewBuilder:
    """Folds entries into a view, one at a time."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Entry] = []
        self._reset()
        for entry in entries:
            self.add(entry)

    def _reset(self) -> None:
        self._head: Compacted | None = None
        self._tail: list[Message] = []
        self._todos: tuple[Todo, ...] = ()
        self._view: View | None = None

    def add(self, entry: Entry) -> None:
        """Takes the next entry of the log."""
        self._entries.append(entry)
        if isinstance(entry, CompactionUndone):
            self._refold()
        else:
            self._fold(entry)
        self._view = None

    @property
    def view(self) -> View:
        """The view after all entries so far."""
        if self._view is None:
            self._view = View(
                head=self._head,
                messages=_head_messages(self._head) + repair(self._tail),
                tail=tuple(self._tail),
                todos=self._todos,
            )
        return self._view

    def _refold(self) -> None:
        """Folds everything again without the compactions that were undone."""
        undone = {entry.compaction for entry in self._entries if isinstance(entry, CompactionUndone)}
        self._reset()
        for entry in self._entries:
            if entry.id not in undone:
                self._fold(entry)

    def _fold(self, entry: Entry) -> None:
        match entry:
            case MessageLogged(message=message):
                self._tail.append(message)
            case Shortened(stubs=stubs):
                self._replace({stub.message for stub in stubs}, lambda message: _with_stubs(message, stubs))
            case Offloaded(blocks=blocks):
                self._replace({block.message for block in blocks}, lambda message: _with_pointers(message, blocks))
            case Compacted():
                self._head = entry
                self._tail = self._from(entry.first_kept)
            case TodosWritten(items=items):
                self._todos = items
            case _:
                pass

    def _replace(self, ids: set[str], change: Callable[[Message], Message]) -> None:
        for position, message in enumerate(self._tail):
            if message.id in ids:
                self._tail[position] = change(message)

    def _from(self, first: str | None) -> list[Message]:
        for position, message in enumerate(self._tail):
            if message.id == first:
                return self._tail[position:]
        return []


def build_view(entries: Iterable[Entry]) -> View:
    """The view of a whole log."""
    return ViewBuilder(entries).view


def _head_messages(head: Compacted | None) -> tuple[Message, ...]:
    if head is None:
        return ()
    return (UserMessage(id=head.id, time=head.time, content=(Text(text=head.shown),), synthetic=True),)


def _with_stubs(message: Message, stubs: Sequence[ArgumentStub]) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    mine = {(stub.call_id, stub.argument): stub.shown for stub in stubs if stub.message == message.id}
    content = tuple(_stubbed(part, mine) if isinstance(part, ToolCall) else part for part in message.content)
    return replace(message, content=content)


def _stubbed(call: ToolCall, stubs: Mapping[tuple[str, str], str]) -> ToolCall:
    arguments = {name: stubs.get((call.id, name), value) for name, value in call.arguments.items()}
    return replace(call, arguments=arguments)


def _with_pointers(message: Message, blocks: Sequence[OffloadedBlock]) -> Message:
    if isinstance(message, AssistantMessage):
        return message
    content = list(message.content)
    for block in blocks:
        if block.message == message.id and block.block < len(content):
            content[block.block] = block.pointer
    return replace(message, content=tuple(content))


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with every pair whole: empty answers and results without a call left out, open calls answered."""
    result: list[Message] = []
    open_calls: dict[str, ToolCall] = {}
    owner: AssistantMessage | None = None
    for message in messages:
        if isinstance(message, ToolMessage):
            if open_calls.pop(message.call_id, None):
                result.append(message)
            continue
        result += _answers(owner, open_calls)
        open_calls, owner = {}, None
        if isinstance(message, AssistantMessage):
            if not (message.text.strip() or message.calls):
                continue
            open_calls, owner = {call.id: call for call in message.calls}, message
        result.append(message)
    return (*result, *_answers(owner, open_calls))


def _answers(owner: AssistantMessage | None, calls: Mapping[str, ToolCall]) -> list[ToolMessage]:
    if owner is None:
        return []
    return [
        ToolMessage(
            id=f"{owner.id}.{number}",
            time=owner.time,
            call_id=call.id,
            tool=call.name,
            content=(Text(text=INTERRUPTED),),
            is_error=True,
        )
        for number, call in enumerate(calls.values(), start=1)
    ]
