"""What of a session's results the model still has: whole, as a pointer, or not at all. Derived from the view alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .messages import Message, Pointer, ToolMessage
from .view import View

Presence = Literal["whole", "pointer", "archived"]


def presence(view: View, messages: Iterable[Message]) -> dict[str, Presence]:
    """How the view has each result of `messages` (all of the log's), by the id of its call.

    `pointer`: a part of it at least is in a file, and its beginning or nothing of it is sent.
    """
    sent = {message.id: message for message in view.messages if isinstance(message, ToolMessage)}
    states: dict[str, Presence] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            now = sent.get(message.id)
            if now is None:
                states[message.call_id] = "archived"
            else:
                states[message.call_id] = "pointer" if any(isinstance(b, Pointer) for b in now.content) else "whole"
    return states
