"""Headless output: one printer a format, each a `match` over the agent's events.

Standard output holds what DESIGN promises and nothing else; everything for people goes to standard error. The JSON
objects are described in `docs/headless.md`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from pydantic import JsonValue

from ..agent.events import (
    Answered,
    AnswerWithdrawn,
    ApprovalAsked,
    CompactionDone,
    Denied,
    Event,
    Gauge,
    GaugeChanged,
    Noticed,
    RunEnded,
    RunStarted,
    ToolFinished,
)
from ..context.entries import Compacted
from ..context.messages import AssistantMessage, Reasoning, Text, ToolCall, ToolMessage, text_of
from .streams import OutputLost
from .terminal import plain

Json = dict[str, JsonValue]


class Printer(Protocol):
    """Takes events, and the result at the end. Both raise `OutputLost`."""

    def event(self, event: Event) -> None:
        """Prints what the format says of an event."""
        ...

    def result(self, result: Json) -> None:
        """Prints the end."""
        ...


def say(text: str) -> None:
    """A line for people, on standard error. That nobody can read it is no reason to stop."""
    with suppress(OSError):
        print(f"deepagent: {plain(text)}", file=sys.stderr, flush=True)


def _write(out: TextIO, text: str) -> None:
    """Writes a text and a newline. Raises `OutputLost`."""
    try:
        out.write(text + "\n")
        out.flush()
    except OSError as error:
        raise OutputLost(f"standard output takes nothing more: {error.strerror}") from error


class TextPrinter:
    """The final answer and one newline."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def event(self, event: Event) -> None:
        """Notices and denials go to standard error."""
        tell(event)

    def result(self, result: Json) -> None:
        text = str(result["result"])
        if text or not result["is_error"]:
            _write(self._out, plain(text) if self._out.isatty() else text)


class JsonPrinter:
    """One object."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def event(self, event: Event) -> None:
        """Only standard error, as in text mode."""
        tell(event)

    def result(self, result: Json) -> None:
        _write(self._out, json.dumps(result))


class StreamPrinter:
    """A line an event."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def event(self, event: Event) -> None:
        tell(event)
        for line in stream_objects(event):
            _write(self._out, json.dumps(line))

    def result(self, result: Json) -> None:
        _write(self._out, json.dumps(result))


def tell(event: Event) -> None:
    """What people should read while a run goes on."""
    match event:
        case Noticed(text=text):
            say(text)
        case Denied(call=call, rules=rules, reason=reason):
            flags = " ".join(f"--allow {quoted(rule)}" for rule in rules)
            say(f"denied {call.name}: {reason}." + (f" To allow it: {flags}" if flags else ""))
        case AnswerWithdrawn(reason=reason, wait=wait):
            say(f"{reason}; trying again" + (f" in {wait:.1f} s" if wait else ""))
        case _:
            pass


def quoted(rule: str) -> str:
    """`rule` on one line, as a shell takes it; what a terminal would act on stands there as an escape."""
    if "\n" not in rule and rule == plain(rule):
        return "'" + rule.replace("'", "'\\''") + "'"
    return "$'" + "".join(map(_escaped, rule)) + "'"


def _escaped(c: str) -> str:
    if c in "'\\":
        return f"\\{c}"
    return c if c != "\n" and c == plain(c) else f"\\u{ord(c):04x}"


def stream_objects(event: Event) -> list[Json]:
    """The objects of `stream-json` for one event."""
    match event:
        case RunStarted(session=session):
            return [{"type": "system", "subtype": "init", "session_id": session}]
        case Answered(message=message):
            return [_assistant(message), *(_tool_use(call) for call in message.calls)]
        case ToolFinished(call=call, message=message):
            return [_tool_result(call, message)]
        case CompactionDone(entry=entry, archive=archive):
            return [_boundary(entry, archive)]
        case GaugeChanged(gauge=gauge):
            return [{"type": "context", **context_object(gauge)}]
        case _:
            return []


def _assistant(message: AssistantMessage) -> Json:
    thinking = "".join(part.text for part in message.content if isinstance(part, Reasoning))
    text = "".join(part.text for part in message.content if isinstance(part, Text))
    return {"type": "assistant", "id": message.id, "model": message.model, "text": text, "thinking": thinking}


def _tool_use(call: ToolCall) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}


def _tool_result(call: ToolCall, message: ToolMessage) -> Json:
    return {
        "type": "tool_result",
        "tool_use_id": call.id,
        "name": call.name,
        "is_error": message.is_error,
        "content": text_of(message),
    }


def _boundary(entry: Compacted, archive: str) -> Json:
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "tokens_before": entry.tokens_before,
        "tokens_after": entry.tokens_after,
        "messages": entry.messages,
        "reason": entry.reason,
        "by": entry.by,
        "archive": archive,
    }


def context_object(gauge: Gauge) -> Json:
    """The `context` object of results and events."""
    return {
        "used": gauge.used,
        "source": gauge.source,
        "window": gauge.window,
        "window_source": gauge.window_source,
        "budget": gauge.budget,
        "trigger": gauge.trigger,
    }


@dataclass(slots=True, kw_only=True)
class Ending:
    """What is remembered of a run for its result object."""

    denials: list[Json] = field(default_factory=list[Json])
    ended: RunEnded | None = None
    gauge: Gauge | None = None

    def event(self, event: Event) -> None:
        """Remembers what the result needs."""
        match event:
            case Denied(call=call, rules=rules, reason=reason):
                denial: Json = {"tool": call.name, "input": dict(call.arguments), "rules": list(rules)}
                self.denials.append({**denial, "reason": reason})
            case GaugeChanged(gauge=gauge):
                self.gauge = gauge
            case ApprovalAsked(answer=answer):
                answer.cancel()
            case RunEnded():
                self.ended = event
            case _:
                pass


def result_object(
    ending: Ending,
    *,
    session: str | None,
    seconds: float,
    archive: str | None,
    trusted: bool,
    error: Mapping[str, str] | None,
) -> Json:
    """The `result` object. `error` is what went wrong outside the run, if anything did."""
    ended = ending.ended
    subtype = ended.outcome if ended and not error else "error"
    problem: JsonValue = dict(error) if error else (dict(ended.error) if ended and ended.error else None)
    usage = ended.usage if ended else None
    return {
        "type": "result",
        "subtype": subtype,
        "is_error": subtype != "success",
        "result": ended.text if ended else "",
        "session_id": session,
        "num_turns": ended.turns if ended else 0,
        "duration_ms": int(seconds * 1000),
        "usage": {
            "input_tokens": usage.input if usage else 0,
            "output_tokens": usage.output if usage else 0,
            "cache_read_tokens": usage.cache_read if usage else 0,
            "cache_write_tokens": usage.cache_write if usage else 0,
        },
        "total_cost_usd": ended.cost if ended else None,
        "context": context_object(ending.gauge) if ending.gauge else None,
        "compactions": ended.compactions if ended else 0,
        "archive": archive,
        "denials": list(ending.denials),
        "trusted": trusted,
        "error": problem,
    }
