"""What the log says of the model: when another one answers."""

from __future__ import annotations

from ..context.entries import MessageLogged, ModelChanged
from ..context.messages import AssistantMessage
from ..context.session import Session


def log_model(session: Session, name: str) -> None:
    """Logs that another model answers from here on, if one answered before. Raises `StorageError`."""
    for entry in reversed(session.entries):
        if isinstance(entry, ModelChanged):
            last = entry.model
        elif isinstance(entry, MessageLogged) and isinstance(entry.message, AssistantMessage):
            last = entry.message.model
        else:
            continue
        if last != name:
            session.append(ModelChanged(**session.header(), model=name))
        return
