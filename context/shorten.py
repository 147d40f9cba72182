"""Shortening: long arguments of old write and edit calls become stubs, because the file holds what came of them.

Calls that failed or never ran keep their arguments: nothing else in the view has them. Only the view changes, by one
`Shortened` entry for all of them; the log keeps every argument whole.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from .entries import ArgumentStub
from .messages import AssistantMessage, Message, Part, ToolCall, ToolMessage
from .stubs import STUB_MARK, argument_stub
from .tokens import Counter, estimate

LONG_ARGUMENT = 2_000
"""Characters from which an argument is worth a stub."""
SHORTENED_TOOLS = frozenset({"write_file", "edit_file"})
"""Tools whose arguments end up in a file."""
EDITS = "edits"
"""The argument of theirs that is a list of texts; a stub stands for all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortening:
    """Stubs that could be made, and what they would save."""

    stubs: tuple[ArgumentStub, ...]
    tokens_saved: int


def plan_shortening(messages: Sequence[Message], keep: int, counter: Counter) -> Shortening:
    """Stubs for the long arguments of `messages` that are older than the newest `keep` tokens.

    What they save follows from the messages' counts, which are known: counting each argument again would take long.
    """
    stubs: list[ArgumentStub] = []
    saved = 0
    done = {message.call_id for message in messages if isinstance(message, ToolMessage) and not message.is_error}
    for message in older(messages, keep, counter):
        for stub, share in _stubs(message, done):
            gain = int(share * counter.message(message)) - estimate(stub.shown)
            if gain > 0:
                stubs.append(stub)
                saved += gain
    return Shortening(stubs=tuple(stubs), tokens_saved=saved)


def older(messages: Sequence[Message], keep: int, counter: Counter) -> Sequence[Message]:
    """The messages before the newest `keep` tokens; the last one is never among them."""
    total = 0
    for position in range(len(messages) - 1, -1, -1):
        total += counter.message(messages[position])
        if total > keep:
            return messages[: position + 1] if position < len(messages) - 1 else messages[:position]
    return ()


def _stubs(message: Message, done: Container[str]) -> Iterator[tuple[ArgumentStub, float]]:
    """Stubs for the calls of `message` that are in `done`, each with the share that its text has of the message."""
    if not isinstance(message, AssistantMessage):
        return
    characters = sum(map(_characters, message.content))
    for call in message.calls:
        if call.name in SHORTENED_TOOLS and call.id in done:
            for stub, length in _call_stubs(message, call):
                yield stub, length / characters


def _characters(part: Part) -> int:
    if isinstance(part, ToolCall):
        return len(part.name) + sum(len(name) + len(str(value)) for name, value in part.arguments.items())
    return len(part.text)


def _call_stubs(message: AssistantMessage, call: ToolCall) -> Iterator[tuple[ArgumentStub, int]]:
    """Stubs for the long arguments of one call, and the lengths of those."""
    path = call.arguments.get("path")
    for name, value in call.arguments.items():
        text = value if isinstance(value, str) else str(value) if name == EDITS else ""
        if len(text) > LONG_ARGUMENT and not text.startswith(STUB_MARK):
            shown = argument_stub(name, len(text), path if isinstance(path, str) else None, message.id)
            yield ArgumentStub(message=message.id, call_id=call.id, argument=name, shown=shown), len(text)
