"""The entries of a session's log: everything that ever happened in it, in order, each by its own id.

Entries name each other by id, never by position. What they mean for the model is the business of `context.view`;
how they reach the disk, of `context.log`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .messages import Message, Pointer

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    id: str
    time: str
    parent: str | None
    """The entry that this one follows; None for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted(_Entry):
    """The first entry of every log."""

    version: int
    session: str
    workspace: str
    cwd: str
    forked_from: str | None = None
    """The session that this one was copied from, or None."""
    kind: Literal["session_started"] = "session_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLogged(_Entry):
    """A message joined the conversation."""

    message: Message
    kind: Literal["message"] = "message"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart(_Entry):
    """A part of the system prompt, logged when its content changed; an empty content takes the part away."""

    name: str
    sha256: str
    content: str
    kind: Literal["prompt_part"] = "prompt_part"


Why = Literal["size", "stale", "old", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadedBlock:
    """Block `block` of message `message` now lies in a file."""

    message: str
    block: int
    pointer: Pointer
    why: Why = "size"
    """Too long; made stale by a later read or edit of the same file; old; or the user's wish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded(_Entry):
    """Texts that were in the view were written to files; the messages themselves stay in the log."""

    blocks: tuple[OffloadedBlock, ...]
    kind: Literal["offloaded"] = "offloaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentStub:
    """Argument `argument` of call `call_id` in message `message` is shown as `shown`."""

    message: str
    call_id: str
    argument: str
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened(_Entry):
    """Old arguments became stubs in the view, stale and old results pointers: one entry for all of them."""

    stubs: tuple[ArgumentStub, ...]
    tokens_saved: int
    results: tuple[OffloadedBlock, ...] = ()
    kind: Literal["shortened"] = "shortened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(_Entry):
    """The user sent results out of the view; pointers stand in their place."""

    blocks: tuple[OffloadedBlock, ...]
    kind: Literal["dropped"] = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(_Entry):
    """Messages are in the view again as they were logged."""

    messages: tuple[str, ...]
    kind: Literal["restored"] = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned(_Entry):
    """A text that every compaction repeats word for word."""

    text: str
    message: str | None = None
    """The message that it is the text of; None for a text of its own."""
    kind: Literal["pinned"] = "pinned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpinned(_Entry):
    """A pin holds no longer."""

    pin: str
    kind: Literal["unpinned"] = "unpinned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound(_Entry):
    """The conversation goes on from entry `to`; what came after it stays in the log alone."""

    to: str
    kind: Literal["rewound"] = "rewound"


CompactionReason = Literal["trigger", "user", "model", "overflow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(_Entry):
    """Older messages left the view; `shown` stands in their place."""

    first_kept: str | None
    """The oldest message that stays in the view; None when none stays."""
    summary: str
    """The four-part summary alone."""
    by: Literal["model", "harness"]
    """Who wrote the summary: a model, or the harness from the log."""
    shown: str
    """The whole text that stands at the head of the view: pointer, requests, todos, summary, facts."""
    requests: tuple[str, ...]
    """Ids of the user messages that `shown` repeats word for word."""
    archive: str
    """The archive's path, as `read_file` takes it."""
    archive_start: int
    archive_end: int
    """Bytes of the archive's section of this compaction."""
    tokens_before: int
    tokens_after: int
    messages: int
    """How many messages left the view."""
    files_read: tuple[str, ...]
    files_changed: tuple[str, ...]
    reason: CompactionReason
    reattached: tuple[str, ...] = ()
    """What the summary had lost of the earlier record, and `shown` has all the same: names of files, paths, numbers."""
    cost: float | None = None
    """US dollars of the summary; None where no model wrote it or the price is unknown."""
    seconds: float = 0
    """How long it took."""
    kind: Literal["compacted"] = "compacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionUndone(_Entry):
    """The view is again what it was before the compaction."""

    compaction: str
    kind: Literal["compaction_undone"] = "compaction_undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One line of the plan."""

    text: str
    status: Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TodosWritten(_Entry):
    """The plan, whole."""

    items: tuple[Todo, ...]
    kind: Literal["todos"] = "todos"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChanged(_Entry):
    """From here on another model answers."""

    model: str
    kind: Literal["model_changed"] = "model_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one model call used, in tokens. `input` includes what was read from or written to a cache."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReported(_Entry):
    """What the provider said that a call used."""

    model: str
    usage: Usage
    cost: float | None
    """US dollars; None where the price is unknown."""
    purpose: Literal["turn", "summary", "task"]
    """`task`: all that a sub-agent used for one task, its own log has the parts."""
    message: str | None
    """The answer's message; None for a summary and for a task."""
    counted: int
    """What our own counter had said of the same request, in tokens."""
    kind: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged(_Entry):
    """A tool call changed files. What they were before is kept; the view knows nothing of it."""

    message: str
    """The newest message of the user's: the turn that it belongs to."""
    call_id: str
    changes: str
    """The name of the set of changes where states of files are kept."""
    files: int
    """How many, those that cannot be brought back included."""
    kind: Literal["files_changed"] = "files_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesUndone(_Entry):
    """Files were to go back to what they were before some turns; logged before it is done."""

    messages: tuple[str, ...]
    """The turns, newest first."""
    changes: str
    files: int
    kind: Literal["files_undone"] = "files_undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRedone(_Entry):
    """An undoing was to be taken back; logged before it is done."""

    undone: str
    """The entry that is taken back."""
    changes: str
    files: int
    kind: Literal["files_redone"] = "files_redone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(_Entry):
    """Something worth keeping that the model does not see."""

    text: str
    kind: Literal["note"] = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(_Entry):
    """A run came to its end; another may follow."""

    reason: str
    """The run's result: `success`, `error`, `max_turns`, `max_tokens`, `max_cost`, `timeout`, `interrupted`."""
    kind: Literal["ended"] = "ended"


Entry = (
    SessionStarted
    | MessageLogged
    | PromptPart
    | Offloaded
    | Shortened
    | Dropped
    | Restored
    | Compacted
    | CompactionUndone
    | Rewound
    | Pinned
    | Unpinned
    | TodosWritten
    | ModelChanged
    | UsageReported
    | FilesChanged
    | FilesUndone
    | FilesRedone
    | Note
    | Ended
)
KINDS = frozenset(
    {
        "session_started",
        "message",
        "prompt_part",
        "offloaded",
        "shortened",
        "dropped",
        "restored",
        "compacted",
        "compaction_undone",
        "rewound",
        "pinned",
        "unpinned",
        "todos",
        "model_changed",
        "usage",
        "files_changed",
        "files_undone",
        "files_redone",
        "note",
        "ended",
    }
)
"""Kinds that this version understands; a test compares them with `Entry`."""

ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])
MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
