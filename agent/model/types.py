"""The seam between the loop and any model: a request goes in, deltas come out, the last one is the whole answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from ...context.entries import Usage
from ...context.messages import Image, Message, Part, StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as the model is told of it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Everything that one call sends."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_output: int | None = None
    """Tokens that the answer may have; None leaves it to the provider."""
    effort: str | None = None
    purpose: Literal["turn", "summary"] = "turn"
    position: int = 0
    """How many answers of this purpose the session's log already holds; scripts find their place by it."""
    image: Callable[[Image], bytes | None] | None = None
    """Gives an image's data, or None where its file is gone; None for models that see no images."""
    session: str = ""
    """The session's id: providers that route by a cache key get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReplaced:
    """The text that came so far is void, `text` stands in its place: the rest of it turned out to be calls."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """A call has begun to arrive, or grew; for display only. `index` counts the answer's calls from 0."""

    index: int
    name: str
    arguments: str
    """The piece of the arguments' text that has arrived; empty where only the name has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The whole answer; always the last delta."""

    content: tuple[Part, ...]
    stop: StopReason
    usage: Usage | None
    """None where the provider reported none."""
    cost: float | None = None
    """US dollars as the provider or the lane says it; None leaves the price to `agent.model.catalog`."""
    model: str = ""
    """The model that the provider says answered, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """All deltas since the request began are void: the attempt failed and will be repeated after `wait` seconds."""

    reason: str
    attempt: int
    wait: float


Delta = TextDelta | TextReplaced | ReasoningDelta | CallDelta | Completed | Withdrawn


class Model(Protocol):
    """A model that answers requests."""

    @property
    def name(self) -> str:
        """The name as the user gave it, such as `openai/gpt-5`."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Answers `request`. Ends with exactly one `Completed`, or raises a `ModelError`."""
        ...

    async def aclose(self) -> None:
        """Gives back connections."""
        ...
