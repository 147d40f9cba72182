"""The messages of a conversation: values that the log stores and the view hands to the model.

The provider's wire form belongs to `agent.model`, rendering to the screen, and the shortening of old content to the
entries of the log (`context.entries`): a message itself never changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from typing import Annotated, Literal

from pydantic import Field, JsonValue

Clock = Callable[[], datetime]

_SURROGATE = re.compile("[\ud800-\udfff]")


def utc_now() -> datetime:
    """The clock used where none is handed in."""
    return datetime.now(UTC)


def timestamp(clock: Clock = utc_now) -> str:
    """The time of `clock` as ISO 8601 in UTC with milliseconds: `2026-11-30T21:15:11.042Z`."""
    return clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id() -> str:
    """Twelve random hex digits: the id of an entry, unique within a session."""
    return token_hex(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text, written by a person, a model or a tool."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """What a model thought aloud; some providers want it back unchanged."""

    text: str
    data: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The provider's opaque fields (signatures, encrypted blocks), returned as they came."""
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that the model wants to run. `id` is unique within the session."""

    id: str
    name: str
    arguments: Mapping[str, JsonValue]
    error: str | None = None
    """Why the arguments could not be read, or None; such a call is answered with this text and never run."""
    written: str | None = None
    """What the model wrote where that was another name, or text instead of a call; only people and the log see it."""
    kind: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """Stands where a text stood that now lies in a file."""

    path: str
    """Where the text lies, as `read_file` takes it."""
    sha256: str
    bytes: int
    lines: int
    tokens: int
    """Tokens of the whole text."""
    shown: str
    """What the model sees in its place: path, size, preview, how to read on."""
    kind: Literal["pointer"] = "pointer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image; it lies beside the log, under its hash."""

    name: str
    """The storage's name of its file."""
    sha256: str
    media: str
    """`image/png` and so on."""
    bytes: int
    width: int
    """Pixels."""
    height: int
    shown: str
    """What stands for it in words: all that a model gets which sees no images."""
    kind: Literal["image"] = "image"


Content = Annotated[Text | Pointer | Image, Field(discriminator="kind")]
Part = Annotated[Text | Reasoning | ToolCall, Field(discriminator="kind")]
StopReason = Literal["end", "tool_calls", "length", "filter", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What a person wrote, or (`synthetic`) what the harness says in the user's role."""

    id: str
    time: str
    content: tuple[Content, ...]
    synthetic: bool = False
    part: str | None = None
    """The part of the prompt that this note brings up to date; None for all other messages."""
    shell: str | None = None
    """The command that the user ran beside the talk, and what came of it is told here; None for all other messages."""
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """One whole answer of a model."""

    id: str
    time: str
    content: tuple[Part, ...]
    model: str
    stop: StopReason
    role: Literal["assistant"] = "assistant"

    @property
    def text(self) -> str:
        """The answer's text without reasoning and calls."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools that the answer wants to run, in order."""
        return tuple(part for part in self.content if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The result of one tool call."""

    id: str
    time: str
    call_id: str
    tool: str
    content: tuple[Content, ...]
    is_error: bool = False
    log: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Facts for the log alone (exit code, path, lines changed); the model never sees them."""
    role: Literal["tool"] = "tool"


Message = Annotated[UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


def shown(content: Content) -> str:
    """The text of a block as the model sees it."""
    return content.text if isinstance(content, Text) else content.shown


def text_of(message: UserMessage | ToolMessage) -> str:
    """A message's blocks as the model sees them, one below the other."""
    return "\n".join(shown(content) for content in message.content)


def clean(text: str) -> str:
    """`text` without lone surrogates, which no encoder and no provider takes; they become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text
