"""What the log says of files: which turns changed them, what was undone, and what can be redone.

All entries count, also those that the talk was rewound behind: files do not go back when the talk does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...context.entries import Entry, FilesChanged, FilesRedone, FilesUndone, MessageLogged
from ...context.messages import UserMessage, text_of

FilesEntry = FilesChanged | FilesUndone | FilesRedone


@dataclass(slots=True, kw_only=True)
class Turn:
    """A message of the user's whose answers changed files."""

    message: str
    text: str = ""
    """What the user wrote, if the log has it."""
    first: int = 0
    """The place of its first change in `Timeline.steps`."""
    undone: bool = False


@dataclass(slots=True, kw_only=True)
class Timeline:
    """The history of a session's files."""

    steps: list[FilesEntry] = field(default_factory=list[FilesEntry])
    """All that happened to files, oldest first."""
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    """The turns that changed files, by message, oldest first."""
    redoable: list[FilesUndone] = field(default_factory=list[FilesUndone])
    """What can be redone, the next one last."""

    def last(self) -> Turn | None:
        """The newest turn that is not undone."""
        return next((turn for turn in reversed(self.turns.values()) if not turn.undone), None)

    def since(self, position: int) -> list[Turn]:
        """The turns from a place in `steps` on that are not undone, newest first."""
        return [turn for turn in reversed(self.turns.values()) if not turn.undone and turn.first >= position]

    def position(self, entries: Sequence[Entry], message: str) -> int:
        """The place in `steps` of the first one that the log has after a message."""
        at = next(number for number, entry in enumerate(entries) if entry.id == message)
        return sum(isinstance(entry, FilesEntry) for entry in entries[:at])


def timeline_of(entries: Iterable[Entry]) -> Timeline:
    """The history that a log tells."""
    line = Timeline()
    texts: dict[str, str] = {}
    for entry in entries:
        match entry:
            case MessageLogged(message=UserMessage(synthetic=False) as message):
                texts[message.id] = text_of(message)
            case FilesChanged(message=message):
                if message not in line.turns or line.turns[message].undone:
                    line.turns.pop(message, None)
                    line.turns[message] = Turn(message=message, text=texts.get(message, ""), first=len(line.steps))
                line.redoable.clear()
                line.steps.append(entry)
            case FilesUndone(messages=messages):
                for message in messages:
                    if message in line.turns:
                        line.turns[message].undone = True
                line.redoable.append(entry)
                line.steps.append(entry)
            case FilesRedone(undone=undone):
                _redo(line, undone)
                line.steps.append(entry)
            case _:
                pass
    return line


def _redo(line: Timeline, undone: str) -> None:
    while line.redoable:
        entry = line.redoable.pop()
        if entry.id == undone:
            for message in entry.messages:
                if message in line.turns:
                    line.turns[message].undone = False
            return
