"""A session's log as the events that a screen needs to show what was said and done.

Only what people saw is told: not what the harness says in the user's role, no prompt parts, no usage on its own. What
the log does not hold (progress, withdrawn attempts, questions) is not made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast, get_args

from ..context.entries import (
    Compacted,
    CompactionUndone,
    Dropped,
    Ended,
    Entry,
    FilesRedone,
    FilesUndone,
    MessageLogged,
    ModelChanged,
    Note,
    Offloaded,
    OffloadedBlock,
    Pinned,
    Restored,
    Rewound,
    SessionStarted,
    Shortened,
    TodosWritten,
    Usage,
    UsageReported,
)
from ..context.facts import ADDED, EXIT_CODE, REMOVED, SECONDS, SUMMARY
from ..context.messages import AssistantMessage, Message, Pointer, ToolCall, ToolMessage, UserMessage, text_of
from ..context.tokens import estimate
from .by_user import shown_as_call
from .events import (
    Answered,
    CompactionDone,
    CompactionTakenBack,
    Denied,
    Event,
    Noticed,
    Offloading,
    Outcome,
    ResultRestored,
    RunEnded,
    RunStarted,
    Steered,
    TodosChanged,
    ToolFinished,
    Trimmed,
)

_NOTHING = Usage(input=0, output=0)
_DENIED = re.compile(r"Not allowed: (.*?)\. (?:Do not try this call again|Go on without it, or say)", re.DOTALL)
_INTERRUPTED = "Interrupted: "
_SENTENCE = re.compile(r"\.\s|\n")
_LONGEST = 100
"""Characters of a summary that is made from a result's first sentence."""


def events_of(entries: Iterable[Entry]) -> Iterator[Event]:
    """The events that show what `entries` hold, oldest first; a run that never ended is ended as interrupted."""
    replay = _Replay()
    for entry in _not_rewound(entries):
        yield from replay.events(entry)
    if replay.running:
        yield replay.end("interrupted")


def _not_rewound(entries: Iterable[Entry]) -> list[Entry]:
    """The entries without those from which the user went back."""
    kept: list[Entry] = []
    for entry in entries:
        if isinstance(entry, Rewound):
            at = next((at for at, one in enumerate(kept) if one.id == entry.to), len(kept) - 1)
            del kept[at + 1 :]
        kept.append(entry)
    return kept


@dataclass(slots=True)
class _Replay:
    """What must be remembered from entry to entry."""

    session: str = ""
    running: bool = False
    calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    """Calls that wait for their result."""
    reports: dict[str, UsageReported] = field(default_factory=dict[str, UsageReported])
    """What answers used, by message; the report stands before the answer."""

    def events(self, entry: Entry) -> Iterator[Event]:
        """What one entry says."""
        match entry:
            case SessionStarted(session=session):
                self.session = session
            case MessageLogged(message=message):
                yield from self._message(message)
            case UsageReported(message=str(message)):
                self.reports[message] = entry
            case TodosWritten(items=items):
                yield TodosChanged(items=items)
            case ModelChanged(model=model):
                yield Noticed(text=f"model: {model}")
            case Note(text=text):
                yield Noticed(text=text)
            case Ended(reason=reason):
                yield self.end(reason)
            case _:
                yield from _step(entry)

    def _message(self, message: Message) -> Iterator[Event]:
        match message:
            case UserMessage(shell=str()):
                call, result = shown_as_call(message)
                yield ToolFinished(call=call, message=result, summary=_summary(result), seconds=0)
            case UserMessage(synthetic=True):
                pass
            case UserMessage():
                yield from self._request(message)
            case AssistantMessage():
                self.calls.update((call.id, call) for call in message.calls)
                report = self.reports.pop(message.id, None)
                yield Answered(
                    message=message,
                    usage=report.usage if report else None,
                    cost=report.cost if report else None,
                )
            case ToolMessage():
                yield from self._result(message)

    def _request(self, message: UserMessage) -> Iterator[Event]:
        if self.running and self.calls:
            yield self.end("interrupted")  # the process died in the middle of it
        if self.running:
            yield Steered(message=message)
        else:
            self.running = True
            yield RunStarted(session=self.session, message=message)

    def _result(self, message: ToolMessage) -> Iterator[Event]:
        call = self.calls.pop(message.call_id, None)
        if call is None:
            call = ToolCall(id=message.call_id, name=message.tool, arguments={})
        if message.is_error and (denied := _DENIED.match(text_of(message))):
            yield Denied(call=call, rules=(), reason=denied[1])
        yield from (_offloading(block, message.id) for block in message.content if isinstance(block, Pointer))
        seconds = message.log.get(SECONDS)
        yield ToolFinished(
            call=call,
            message=message,
            summary=_summary(message),
            seconds=float(seconds) if isinstance(seconds, int | float) else 0,
        )

    def end(self, reason: str) -> RunEnded:
        """The end of a run, of which the log has no more than the reason."""
        self.running = False
        self.calls.clear()
        outcome = cast(Outcome, reason if reason in get_args(Outcome) else "error")
        return RunEnded(outcome=outcome, text="", turns=0, usage=_NOTHING, cost=None, compactions=0)


def _step(entry: Entry) -> Iterator[Event]:
    """What the ladder did, or the user by hand."""
    match entry:
        case Offloaded(blocks=blocks):
            yield from (_offloading(block.pointer, block.message) for block in blocks)
        case Shortened(stubs=stubs, results=results, tokens_saved=saved):
            yield Trimmed(stubs=len(stubs), results=tuple(block.message for block in results), tokens_saved=saved)
        case Dropped(blocks=blocks):
            yield Trimmed(stubs=0, results=tuple(block.message for block in blocks), tokens_saved=freed(blocks))
        case Restored(messages=messages):
            yield from (ResultRestored(message=message) for message in messages)
        case Pinned(text=text):
            yield Noticed(text=f"pinned: {text}")
        case Compacted(archive=archive, seconds=seconds):
            yield CompactionDone(entry=entry, archive=archive, seconds=seconds)
        case FilesUndone(files=files):
            yield Noticed(text=f"undone: {files:,} file{'' if files == 1 else 's'}")
        case FilesRedone(files=files):
            yield Noticed(text=f"redone: {files:,} file{'' if files == 1 else 's'}")
        case CompactionUndone(compaction=compaction):
            yield CompactionTakenBack(compaction=compaction)
        case _:
            pass


def freed(blocks: Iterable[OffloadedBlock]) -> int:
    """About the tokens that pointers save."""
    return sum(max(0, block.pointer.tokens - estimate(block.pointer.shown)) for block in blocks)


def _offloading(pointer: Pointer, message: str) -> Offloading:
    return Offloading(path=pointer.path, tokens=pointer.tokens, shown_tokens=len(pointer.shown) // 4, message=message)


def _summary(message: ToolMessage) -> str:
    """A line for people about a result; older logs do not have it, and the nearest that they allow is made."""
    text, log = text_of(message), message.log
    if isinstance(summary := log.get(SUMMARY), str):
        return summary
    if message.is_error:
        return "interrupted" if text.startswith(_INTERRUPTED) else _SENTENCE.split(text, maxsplit=1)[0][:_LONGEST]
    match log.get(EXIT_CODE), log.get("signal"), log.get(ADDED), log.get(REMOVED):
        case int(code), _, _, _:
            return f"exit {code}"
        case _, int(signal), _, _:
            return f"ended by signal {signal}"
        case _, _, int(added), int(removed):
            return f"+{added:,} −{removed:,}"
        case _:
            lines = text.count("\n") + 1
            return f"{lines:,} line" if lines == 1 else f"{lines:,} lines"
