"""The text that stands at the head of the view after a compaction.

It repeats the user's requests word for word, then gives open todos, the summary, facts from the log, and where the
whole lies. It is written once and stored with the compaction, so the view stays the same byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .budget import Budget
from .entries import Pinned, Todo
from .facts import Facts
from .messages import UserMessage, text_of
from .tokens import Counter

_PREVIEW = 300
"""Characters shown of a request that is too long to be repeated."""
_FILES = 40
"""Files named of each kind at most; the newest are kept."""
_LINE_FILES = 8
_SHARE = 20
"""Facts, todos and pins take at most a twentieth of the budget each."""
_REQUEST_OVERHEAD = 20
"""Tokens around a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The text, and the ids of the requests that it holds word for word."""

    text: str
    requests: tuple[str, ...]


def compose_head(
    *,
    requests: Sequence[UserMessage],
    summary: str,
    facts: Facts,
    todos: Sequence[Todo],
    pins: Sequence[Pinned] = (),
    reattached: Sequence[str] = (),
    archive: str,
    evicted: int,
    budget: Budget,
    counter: Counter,
) -> Head:
    """The head. `requests` are all that left the view, oldest first; `evicted` counts the messages that did;
    `reattached` are lines of the earlier record that the new one lacks.
    """
    limit = budget.tokens // _SHARE
    pinned = _pins_text(pins, limit, counter)
    room = budget.head_limit - limit - counter.text(pinned)
    whole = _whole_requests(requests, budget, room, counter)
    parts = [
        f"The older part of this conversation, {evicted} messages, has left your view. It stands word for word in "
        f"{archive}: look there when you need a detail. What follows is a record of it, not a new request: go on from "
        "where the messages after it stand.",
        _requests_text(requests, whole, archive, room, counter),
        pinned,
        _fit("# Open todos", [f"- [{t.status}] {t.text}" for t in todos if t.status != "completed"], limit, counter),
        f"# Record\n{summary}",
        "\n".join(("# Kept from the earlier record", *(f"- {line}" for line in reattached))) if reattached else "",
        _fit("# Facts from the log", _facts_lines(facts), limit, counter),
    ]
    return Head(
        text="\n\n".join(part for part in parts if part), requests=tuple(r.id for r in requests if r.id in whole)
    )


def _by_weight(requests: Sequence[UserMessage]) -> list[UserMessage]:
    """The newest and the first before all others, then from the newest back."""
    return list({r.id: r for r in (*requests[-1:], *requests[:1], *reversed(requests))}.values())


def _pins_text(pins: Sequence[Pinned], limit: int, counter: Counter) -> str:
    """The pins, oldest first, each whole, or its beginning where not all have room: the window became smaller."""
    if not pins:
        return ""
    fits = sum(counter.text(pin.text) for pin in pins) <= limit
    texts = [pin.text if fits or counter.text(pin.text) <= limit // len(pins) else _beginning(pin) for pin in pins]
    return "\n".join(("# Pinned by the user, word for word", *(f"<pin>\n{text}\n</pin>" for text in texts)))


def _beginning(pin: Pinned) -> str:
    more = max(0, len(pin.text) - _PREVIEW)
    return f"{pin.text[:_PREVIEW]}… ({more:,} more characters in the log, entry {pin.id})" if more else pin.text


def _whole_requests(requests: Sequence[UserMessage], budget: Budget, room: int, counter: Counter) -> set[str]:
    """Which requests are repeated whole: the newest and the first if at all possible, others within their limit."""
    whole: set[str] = set()
    used = 0
    for position, request in enumerate(_by_weight(requests)):
        tokens = counter.text(text_of(request)) + _REQUEST_OVERHEAD
        limit = min(room, budget.requests_limit) if position > 1 else room
        if used + tokens <= limit:
            whole.add(request.id)
            used += tokens
    return whole


def _requests_text(requests: Sequence[UserMessage], whole: set[str], archive: str, limit: int, counter: Counter) -> str:
    """The requests, oldest first: whole, or their beginnings where all together have no more than `limit` tokens."""
    if not requests:
        return ""
    texts: dict[str, str] = {}
    used = sum(counter.text(text_of(r)) + _REQUEST_OVERHEAD for r in requests if r.id in whole)
    for position, request in enumerate(_by_weight(requests)):
        text = text_of(request)
        if request.id not in whole:
            more = max(0, len(text) - _PREVIEW)
            text = f"{text[:_PREVIEW]}… ({more:,} more characters in {archive}, message {request.id})"
            used += counter.text(text) + _REQUEST_OVERHEAD
            if used > limit and position > 1:
                continue
        texts[request.id] = text
    lines = ["# What the user asked for, oldest first"]
    for number, request in enumerate(requests, start=1):
        if request.id in texts:
            lines.append(f'<request number="{number}" time="{request.time}">\n{texts[request.id]}\n</request>')
    if len(texts) < len(requests):
        lines.append(f"({len(requests) - len(texts)} more requests are in {archive})")
    return "\n".join(lines)


def _facts_lines(facts: Facts) -> list[str]:
    lines: list[str] = []
    if facts.check is not None:
        code = (
            "ended by a signal or the time limit" if facts.check.exit_code is None else f"exit {facts.check.exit_code}"
        )
        first = f": {facts.check.first_error}" if facts.check.first_error else ""
        lines.append(f"- last check: `{facts.check.command}`, {code}{first}")
    lines += [f"- changed {c.path} (+{c.added} −{c.removed} lines)" for c in facts.changed[-_FILES:]]
    read = facts.read[-_FILES:]
    lines += [f"- read {', '.join(read[at : at + _LINE_FILES])}" for at in range(0, len(read), _LINE_FILES)]
    return lines


def _one_line(text: str) -> str:
    """A line stays one, whatever name of a file stands in it: it cannot begin a heading of ours."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _fit(title: str, lines: Sequence[str], limit: int, counter: Counter) -> str:
    """The lines below their title, as many as fit into `limit` tokens; what is left out is said."""
    if not lines:
        return ""
    kept: list[str] = []
    used = counter.text(title)
    for number, line in enumerate(map(_one_line, lines)):
        used += counter.text(line) + 1
        if used > limit:
            kept.append(f"- … and {len(lines) - number} more")
            break
        kept.append(line)
    return "\n".join((title, *kept))
