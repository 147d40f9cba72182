"""A message as Markdown, and back: `read_messages(write_message(m)) == (m,)` for any message.

Texts stand in fences as they are. Everything else that is needed to read the message back stands in one comment of
ASCII JSON below its heading, in which `--` is escaped, so that no comment ends early.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic import JsonValue

from .entries import MESSAGE
from .messages import AssistantMessage, Message, ToolMessage, UserMessage

Path = tuple[str | int, ...]
"""The way to a text inside a message's content."""

_META = re.compile(r"<!-- deepagent:message (\{.*\}) -->\n")
_FENCE = re.compile(r"[`~]+")
_HEADING_LENGTH = 80


class ArchiveError(ValueError):
    """A section's text is not what this module writes."""


def write_message(message: Message) -> str:
    """The Markdown of a message, beginning and ending with a blank line."""
    raw = cast(dict[str, JsonValue], MESSAGE.dump_python(message, mode="json"))
    texts: list[tuple[Path, str]] = []
    raw["content"] = _take(raw["content"], (), texts)
    meta: JsonValue = {"message": raw, "texts": [list(path) for path, _ in texts]}
    comment = json.dumps(meta, separators=(",", ":")).replace("--", "-\\u002d")
    fences = "".join(f"{_label(path)}\n\n{_fenced(text)}\n\n" for path, text in texts)
    return f"\n### {one_line(_heading(message))}\n\n<!-- deepagent:message {comment} -->\n\n{fences}"


def read_messages(text: str) -> tuple[Message, ...]:
    """The messages of a section's body. Raises `ArchiveError`."""
    messages: list[Message] = []
    position = 0
    while (found := _META.search(text, position)) is not None:
        meta = json.loads(found[1])
        position = found.end()
        for path in meta["texts"]:
            filled, position = _next_fence(text, position)
            _put(meta["message"]["content"], path, filled)
        messages.append(MESSAGE.validate_python(meta["message"]))
    return tuple(messages)


def _heading(message: Message) -> str:
    match message:
        case AssistantMessage():
            words = f"assistant · {message.model} · {message.stop}"
        case ToolMessage():
            words = f"tool {message.tool} · call {message.call_id}" + (" · error" if message.is_error else "")
        case UserMessage():
            words = "user" + (" (harness)" if message.synthetic else "")
    return f"{words} · {message.id} · {message.time}"


def one_line(text: str) -> str:
    """Text that is fit for a heading: printable, without line ends, not too long."""
    plain = "".join(c if c.isprintable() else "·" for c in text.replace("<", "‹").replace(">", "›"))
    return plain if len(plain) <= _HEADING_LENGTH else plain[:_HEADING_LENGTH] + "…"


_KEPT = frozenset({"kind", "id", "name", "path", "sha256", "error", "data"})
"""Fields of content blocks that stay in the comment: short words of ours, ids, and what only the provider reads."""


def _take(value: JsonValue, path: Path, texts: list[tuple[Path, str]]) -> JsonValue:
    """`value` with every text of a block or an argument moved to `texts`, None in its place."""
    match value:
        case str():
            texts.append((path, value))
            return None
        case list():
            return [_take(item, (*path, at), texts) for at, item in enumerate(value)]
        case dict():
            block = len(path) == 1
            return {
                key: item if block and key in _KEPT else _take(item, (*path, key), texts) for key, item in value.items()
            }
        case _:
            return value


def _put(content: Any, path: Sequence[str | int], text: str) -> None:
    """The reverse of `_take` for one text."""
    for step in path[:-1]:
        content = content[step]
    content[path[-1]] = text


def _label(path: Path) -> str:
    """The last name on the way to a text: `text`, `shown`, or the argument's."""
    name = next((step for step in reversed(path) if isinstance(step, str)), "text")
    return f"`{one_line(name).replace('`', '·')}`"


_FENCED = re.compile(r"`[^`\n]*`\n\n(`{3,})text\n")


def _next_fence(text: str, position: int) -> tuple[str, int]:
    opening = _FENCED.search(text, position)
    if opening is None:
        raise ArchiveError("a text is missing")
    end = text.find(f"\n{opening[1]}\n", opening.end())
    if end < 0:
        raise ArchiveError("a fence is not closed")
    return text[opening.end() : end], end + len(opening[1]) + 2


def _fenced(text: str) -> str:
    longest = max((len(run) for run in _runs(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _runs(text: str) -> Iterator[str]:
    return (found[0] for found in _FENCE.finditer(text))


def torn_fence(data: bytes) -> bytes:
    """What closes a fence that a torn section left open, or a newline."""
    fence: bytes | None = None
    *lines, last = data.split(b"\n")
    for line in lines:
        if fence is None and (opening := re.fullmatch(rb"(`{3,})text", line)):
            fence = opening[1]
        elif line == fence:
            fence = None
    if last == fence:
        fence = None
    elif fence is None and (opening := re.fullmatch(rb"(`{3,})t?e?x?t?", last)):
        fence = opening[1]
    return b"\n" + fence + b"\n" if fence else b"\n"
