"""The summary: the request for it, what counts as one, and the one that needs no model.

There are two forms of the request. One extends the conversation by an instruction: a provider that caches takes a
tenth of the price for all but that. The other is plain text in one user message, so it can go to any model; a
conversation longer than the summarizer's window is folded: each part is merged into the record of the parts before it,
so nothing is left out. When no summary can be had, one is made from the log's facts.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .entries import Todo
from .facts import Facts
from .messages import AssistantMessage, Message, Reasoning, Text, ToolCall, ToolMessage, clean, text_of
from .tokens import Counter

HEADINGS = ("SESSION INTENT", "SUMMARY", "ARTIFACTS", "NEXT STEPS")
PROMPT = Path(__file__).with_name("summary.md")
"""What a record holds. A text of the user's own may take its place."""
_OF_TEXT, _OF_TALK = PROMPT.with_name("summary-of-text.md"), PROMPT.with_name("summary-of-talk.md")
_ATTEMPTS = 2
_SHARE = 0.6
"""Share of the summarizer's window that the material of one request takes at most: counts are not exact."""
_RESULT_CHARACTERS = 4_000
"""Characters of one result or argument that the summarizer sees; the whole stands in the archive."""
TOLD = 1_200
"""About the tokens that one message has at most in a request of plain text."""
_OVERHEAD = 150
"""Tokens of a request around the record's description and the material."""
_CUT_TOKENS = 12
"""Tokens of the words that say that a text was cut."""
_FOCUS_CHARACTERS = 1_000
_BEGINNING = 200
"""Characters by which the first message that stays is named."""
EARLIER = "\n\n## EARLIER RECORD\n"
"""Leads the last summary of a model in a summary without one."""

_PLACE = re.compile(r"\{(limit|focus)\}")

Ask = Callable[[str, int], Awaitable[str]]
"""Sends one prompt to a model and returns its answer; the second argument is the most tokens it may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarizer:
    """A model that can be asked for summaries."""

    ask: Ask
    window: int
    """Tokens of its window."""
    extend: Ask | None = None
    """The same for a prompt that follows the conversation as the model knows it; None where that cannot be had."""
    prompt: str = ""
    """What a record holds, in the user's words; ours where empty.

    `{limit}` stands for the number of words, `{focus}` for what the user wants attention to.
    """


class NoSummary(Exception):
    """The model gave no summary that counts as one; the text says why."""


async def summarize(
    messages: Sequence[Message],
    *,
    previous: str | None,
    focus: str | None,
    limit: int,
    by: Summarizer,
    counter: Counter,
) -> str:
    """A summary of `messages` of about `limit` tokens at most, with `previous` merged in. Raises `NoSummary`."""
    limit = min(limit, by.window // 8)
    room = max(
        500, int(by.window * _SHARE) - 2 * limit - counter.text(by.prompt or PROMPT.read_text("utf-8")) - _OVERHEAD
    )
    record = previous and cut_text(previous, 2 * limit, counter)
    texts = [transcript(message) for message in messages]
    for part in await asyncio.to_thread(lambda: list(_parts(texts, room, counter))):
        record = cut_text(await _one(part, record, focus, limit, by), limit, counter)
    if record is None:
        raise NoSummary("there is nothing to summarize")
    return record


async def summarize_by_extending(
    first_kept: Message, *, focus: str | None, limit: int, by: Summarizer, counter: Counter
) -> str:
    """A summary of all before `first_kept` by the model that knows the conversation. Raises `NoSummary`."""
    if by.extend is None:
        raise NoSummary("the conversation cannot be extended")
    prompt = extending_prompt(first_kept, wanted=_wanted(by, focus, limit))
    answer = clean(await by.extend(prompt, 2 * limit)).strip()
    if not is_summary(answer):
        raise NoSummary("the model gave no summary")
    return cut_text(answer, limit, counter)


def extending_prompt(first_kept: Message, *, wanted: str) -> str:
    """The instruction that follows the conversation."""
    before, _, after = _OF_TALK.read_text("utf-8").partition("{first_kept}")
    return f"{before}{transcript(first_kept)[:_BEGINNING].strip()}{after}\n{wanted}"


def _wanted(by: Summarizer, focus: str | None, limit: int) -> str:
    """What the record is to hold, with the places filled."""
    attention = f" The user wants attention to: {focus[:_FOCUS_CHARACTERS]}" if focus else ""
    text = by.prompt or PROMPT.read_text("utf-8")
    if "{focus}" not in text:
        text += "{focus}"
    filled = {"limit": str(int(limit * 0.7)), "focus": attention}
    return _PLACE.sub(lambda found: filled[found[1]], text)


async def _one(part: str, record: str | None, focus: str | None, limit: int, by: Summarizer) -> str:
    prompt = summary_prompt(part, previous=record, wanted=_wanted(by, focus, limit))
    for _ in range(_ATTEMPTS):
        answer = clean(await by.ask(prompt, 2 * limit)).strip()
        if is_summary(answer):
            return answer
    raise NoSummary("the model gave no summary")


def summary_prompt(material: str, *, previous: str | None, wanted: str) -> str:
    """The whole text of a summary request. Braces in the material are never read as places to fill."""
    text = f"{_OF_TEXT.read_text('utf-8')}\n{wanted}"
    earlier = f"\n# Record of the earlier part\n\n{previous}\n" if previous else ""
    return f"{text}\n---\n{earlier}\n# Conversation\n\n{material}\n"


def is_summary(answer: str) -> bool:
    """Whether an answer says anything besides headings."""
    words = "\n".join(line for line in answer.split("\n") if not line.lstrip().startswith("#"))
    return len(re.sub(r"\W", "", words)) >= 20


def transcript(message: Message) -> str:
    """A message as plain text for the summarizer."""
    if isinstance(message, AssistantMessage):
        return "\n".join(line for part in message.content if (line := _part(part)))
    who = f"[result of {message.tool}]" if isinstance(message, ToolMessage) else "[user]"
    text = text_of(message)
    return f"{who} {_short(text) if isinstance(message, ToolMessage) else text}"


def _part(part: Text | Reasoning | ToolCall) -> str:
    match part:
        case Text(text=text):
            return f"[assistant] {text}" if text.strip() else ""
        case Reasoning():
            return ""
        case ToolCall():
            arguments = {key: _short(v) if isinstance(v, str) else v for key, v in part.arguments.items()}
            return f"[assistant calls {part.name}] {json.dumps(arguments, ensure_ascii=False)}"


def _short(text: str) -> str:
    if len(text) <= _RESULT_CHARACTERS:
        return text
    half = _RESULT_CHARACTERS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters in the archive …\n{text[-half:]}"


def _parts(texts: Sequence[str], room: int, counter: Counter) -> Iterator[str]:
    """The texts joined into parts of at most `room` tokens; a text that is longer alone is split."""
    part: list[str] = []
    used = 0
    for text in (piece for whole in texts for piece in _pieces(whole, room, counter)):
        tokens = counter.text(text)
        if part and used + tokens > room:
            yield "\n\n".join(part)
            part, used = [], 0
        part.append(text)
        used += tokens
    if part:
        yield "\n\n".join(part)


def _pieces(text: str, room: int, counter: Counter) -> Iterator[str]:
    if counter.text(text) <= room:
        yield text
        return
    middle = len(text) // 2
    yield from _pieces(text[:middle], room, counter)
    yield from _pieces(text[middle:], room, counter)


def cut_text(text: str, limit: int, counter: Counter) -> str:
    """The beginning of `text` that has at most about `limit` tokens, at the end of a line where that loses little."""
    if counter.text(text) <= limit:
        return text
    end = min(len(text), 8 * max(0, limit))
    while end > 0 and counter.text(text[:end]) > limit - _CUT_TOKENS:
        end = end * 9 // 10
    line = text.rfind("\n", end // 2, end)
    return f"{text[: line if line > 0 else end]}\n… (the summary was longer than its limit)"


def summary_without_model(
    messages: Sequence[Message],
    *,
    previous: str | None,
    facts: Facts,
    todos: Sequence[Todo],
    limit: int,
    counter: Counter,
) -> str:
    """The four sections from the log alone: the same log gives the same text. `previous` is the last one of a model."""
    calls = [call for message in messages if isinstance(message, AssistantMessage) for call in message.calls]
    said = [
        message.text.strip() for message in messages if isinstance(message, AssistantMessage) and message.text.strip()
    ]
    names = sorted({call.name for call in calls})
    counts = ", ".join(f"{name} {sum(call.name == name for call in calls)}x" for name in names)
    todo = [f"- [{item.status}] {item.text}" for item in todos if item.status != "completed"]
    summary = [
        "No model wrote this record; the archive has the conversation itself.",
        f"{len(messages)} messages left the view. Tools run: {counts or 'none'}.",
        *([f"Last words of the agent: {_line(said[-1])}"] if said else []),
    ]
    sections = (
        ["See the requests above, word for word."],
        summary,
        [f"- {item.path} (+{item.added} −{item.removed})" for item in facts.changed] or ["No file was changed."],
        todo or ["See the newest request."],
    )
    text = "\n\n".join(f"## {name}\n" + "\n".join(lines) for name, lines in zip(HEADINGS, sections, strict=True))
    if not previous:
        return cut_text(text, limit, counter)
    text = cut_text(text, limit // 2, counter)
    return text + EARLIER + cut_text(previous, limit - counter.text(text) - _CUT_TOKENS, counter)


def _line(text: str) -> str:
    return " ".join(text.split())[:400]
