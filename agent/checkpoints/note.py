"""What the model is told when files are not what it last saw, because the user went back or forth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...context.entries import Entry, FilesChanged, MessageLogged, Rewound
from ...context.messages import AssistantMessage, UserMessage, text_of
from ...context.session import Session
from ..git.process import GitError
from ..notes import HEADING
from .states import Changes, net, shown
from .store import Store
from .timeline import FilesEntry

_TEXT = HEADING.format(
    "the user has undone or redone changes of files, or went back in the conversation. These files differ from what "
    "you last saw. Read them again before you rely on them:"
)
_WORDS = {"added": "is there", "changed": "has another content", "removed": "is gone"}
_MOST = 30
"""Files that are named."""


def files_note(session: Session, store: Store, mask: Callable[[str], str]) -> str | None:
    """What is to be said before the next request; None where the model knows all, or was told."""
    steps = _untold(session.entries, session.live)
    if not steps:
        return None
    with store.objects:
        changes = net(_set(store, step) for step in steps)
    lines = [f"- {shown(name)} {_WORDS[change.kind]}" for name, change in sorted(changes.files.items())]
    if not lines:
        return None
    more = [f"- and {len(lines) - _MOST:,} more"] if len(lines) > _MOST else []
    text = mask("\n".join((_TEXT, *lines[:_MOST], *more)))
    return None if text in _said(session.live) else text


def _untold(entries: Sequence[Entry], live: Sequence[Entry]) -> list[FilesEntry]:
    """What happened to files since the model last answered, and is not its own doing as far as it remembers."""
    last = next((entry.id for entry in reversed(live) if _is_answer(entry)), None)
    later: list[Entry] = []
    for entry in reversed(entries):
        if entry.id == last:
            break
        later.append(entry)
    if not any(isinstance(entry, Rewound | FilesEntry) for entry in later):
        return []
    remembered = {entry.id for entry in live}
    steps = [entry for entry in reversed(later) if isinstance(entry, FilesEntry)]
    return [step for step in steps if not (isinstance(step, FilesChanged) and step.id in remembered)]


def _said(live: Sequence[Entry]) -> set[str]:
    """What the harness has said since the last answer."""
    texts: set[str] = set()
    for entry in reversed(live):
        if _is_answer(entry):
            break
        if isinstance(entry, MessageLogged) and isinstance(entry.message, UserMessage) and entry.message.synthetic:
            texts.add(text_of(entry.message))
    return texts


def _is_answer(entry: Entry) -> bool:
    return isinstance(entry, MessageLogged) and isinstance(entry.message, AssistantMessage)


def _set(store: Store, step: FilesEntry) -> Changes:
    try:
        return store.changes(step.changes)
    except GitError:
        return Changes()
