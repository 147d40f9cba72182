"""What the log says of the system prompt and of the model: each when it has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from ..context.entries import MessageLogged, ModelChanged
from ..context.entries import PromptPart as LoggedPart
from ..context.messages import AssistantMessage
from ..context.session import Session
from .prompt import PromptPart


def log_prompt(session: Session, parts: Sequence[PromptPart]) -> None:
    """Logs the parts that are not what the log has. Raises `StorageError`."""
    known = {entry.name: entry.sha256 for entry in session.entries if isinstance(entry, LoggedPart)}
    for name, text in _changed(parts, known):
        session.append(LoggedPart(**session.header(), name=name, sha256=_digest(text), content=text))


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


def _changed(parts: Sequence[PromptPart], known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names and texts of parts that have changed; parts that are gone have an empty text."""
    for part in parts:
        if known.get(part.name) != _digest(part.text):
            yield part.name, part.text
    present = {part.name for part in parts}
    for name, digest in known.items():
        if name not in present and digest != _digest(""):
            yield name, ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
