"""Pairs: each tool call is followed by its results, each result follows its call, and no answer follows another.

Providers refuse a request that breaks this, and answers without text or calls, whatever a log has been through. The log
keeps everything as it is; only what the model is sent is repaired.
"""

from __future__ import annotations

from collections.abc import Iterable

from .messages import AssistantMessage, Message, Text, ToolCall, ToolMessage, UserMessage

INTERRUPTED = "Interrupted: this call has no result. It may have run in part, or not at all."
"""Answers a call that a crash or an interrupt left open."""


MISSING = "(Nothing is known of what was said here.)"
"""Stands before an answer that follows another one, or nothing at all: some providers want them to take turns."""


def asked_before(answer: AssistantMessage) -> UserMessage:
    """What stands before an answer that nobody asked for."""
    content = (Text(text=MISSING),)
    return UserMessage(id=f"{answer.id}.before", time=answer.time, content=content, synthetic=True)


class Pairs:
    """Takes messages one at a time and gives them back with every pair whole."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._whole: list[Message] = []
        self._owner: AssistantMessage | None = None
        self._open: dict[str, ToolCall] = {}
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Takes the next message. Empty answers and results without a call are left out."""
        if isinstance(message, ToolMessage):
            if self._open.pop(message.call_id, None):
                self._whole.append(message)
            return
        self._whole += self._answers()
        self._open, self._owner = {}, None
        if isinstance(message, AssistantMessage):
            if not (message.text.strip() or message.calls):
                return
            if self._whole and isinstance(self._whole[-1], AssistantMessage):
                self._whole.append(asked_before(message))
            self._open, self._owner = {call.id: call for call in message.calls}, message
        self._whole.append(message)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages so far; calls that are still open are answered."""
        return (*self._whole, *self._answers())

    def _answers(self) -> list[ToolMessage]:
        owner = self._owner
        if owner is None:
            return []
        return [
            ToolMessage(
                id=f"{owner.id}.{call.id}",
                time=owner.time,
                call_id=call.id,
                tool=call.name,
                content=(Text(text=INTERRUPTED),),
                is_error=True,
            )
            for call in self._open.values()
        ]


def repair(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with every pair whole."""
    return Pairs(messages).messages
