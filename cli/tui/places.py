"""Where messages stood: which of them a compaction took out of the view, and which requests it kept word for word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...context.entries import Compacted


@dataclass(slots=True)
class Places:
    """The messages in the order in which they were said."""

    _ids: dict[str, int] = field(default_factory=dict[str, int])
    _calls: list[str | None] = field(default_factory=list[str | None])
    """For each place the call whose result stood there."""
    _requests: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    """Place, id and text of what the user wrote."""

    def message(self, message_id: str, call_id: str | None = None) -> None:
        """Notes a message; of a result also its call."""
        self._ids[message_id] = len(self._calls)
        self._calls.append(call_id)

    def user(self, message_id: str, text: str) -> None:
        """Notes a message of the user."""
        self._requests.append((len(self._calls), message_id, text))
        self.message(message_id)

    def unseen(self) -> None:
        """Notes a message that no event told of: the rest of an interrupted answer."""
        self._calls.append(None)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._ids

    def call_of(self, message_id: str) -> str | None:
        """The call whose result the message is."""
        place = self._ids.get(message_id)
        return None if place is None else self._calls[place]

    def cut(self, entry: Compacted, before: int) -> int:
        """How many messages are out of the view after a compaction; `before` were before it.

        If its first kept message is not known here, the number of those that it took tells.
        """
        if entry.first_kept is None:
            return len(self._calls)
        return self._ids.get(entry.first_kept, min(len(self._calls), before + entry.messages))

    def calls(self, start: int, end: int) -> Iterator[str]:
        """The calls whose results stand from place `start` up to `end`."""
        return (call for call in self._calls[start:end] if call is not None)

    def kept(self, entry: Compacted, cut: int) -> tuple[str, ...]:
        """The texts of the requests that the view has word for word after a compaction."""
        return tuple(text for place, id, text in self._requests if place >= cut or id in entry.requests)

    @property
    def requests(self) -> int:
        """How many requests there were."""
        return len(self._requests)
