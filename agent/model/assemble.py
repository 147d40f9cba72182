"""Reads the chunks of an answer, OpenAI-shaped and however a provider bends that shape, into deltas and one whole.

Both lanes use it. Where chunks come from is the lanes' business; what errors mean, `agent.model.translate`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ...context.messages import AssistantMessage, Part, StopReason, Text, ToolCall, clean
from ..errors import BrokenStreamError, ServerError
from .calls import CallAssembler
from .fit import missing
from .reasoning import ReasoningAssembler
from .translate import Origin, stream_error
from .types import Completed, Delta, ModelRequest, TextDelta
from .usage import cost_of, merged, usage_of

Chunk = Mapping[str, Any]

_NOTHING: Chunk = {}
_STOPS: Mapping[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "filter",
    "safety": "filter",
    "refusal": "filter",
}
_FAILED = frozenset({"error", "insufficient_system_resource", "abort", "malformed_function_call"})
"""Finish reasons by which a provider says that it broke off; another attempt may succeed."""


class StreamAssembler:
    """Takes the chunks of one answer, gives back deltas, and at the end the whole answer."""

    def __init__(self, request: ModelRequest, origin: Origin, *, limit: int | None = None) -> None:
        """`origin` is for the texts of errors; `limit` (tokens) cuts the answer."""
        self._request = request
        self._origin = origin
        self._limit = limit
        self._text: list[str] = []
        self._reasoning = ReasoningAssembler()
        self._calls = CallAssembler()
        self._usage: dict[str, Any] = {}
        self._finish = ""
        self._begun = False
        self._model = ""

    @property
    def begun(self) -> bool:
        """Whether anything of the answer has come."""
        return self._begun

    @property
    def ended(self) -> bool:
        """Whether the provider said that the answer is over; usage may still follow."""
        return bool(self._finish)

    def feed(self, chunk: Chunk) -> Iterator[Delta]:
        """The deltas of a chunk (or of a whole answer that was not streamed). Raises what the chunk says went wrong."""
        if error := chunk.get("error"):
            raise stream_error(error, self._origin)
        self._model = chunk.get("model") or self._model
        self._count(chunk.get("usage"))
        choices = chunk.get("choices")
        choice = cast(list[Chunk], choices)[0] if isinstance(choices, list) and choices else _NOTHING
        self._count(choice.get("usage"))
        if error := choice.get("error"):
            raise stream_error(error, self._origin)
        for delta in self._feed_delta(choice.get("delta") or choice.get("message") or _NOTHING):
            self._begun = True
            yield delta
        self._finish = str(choice.get("finish_reason") or self._finish)

    def _count(self, usage: object) -> None:
        if isinstance(usage, Mapping):
            self._usage = merged(self._usage, cast(Chunk, usage))

    def _feed_delta(self, delta: Chunk) -> Iterator[Delta]:
        yield from self._reasoning.feed(delta)
        content = delta.get("content")
        if isinstance(content, list):
            for part in cast(list[object], content):
                yield from self._feed_part(part)
        elif isinstance(content, str):
            yield from self._say(content)
        if isinstance(refusal := delta.get("refusal"), str):
            yield from self._say(refusal)
        for piece in delta.get("tool_calls") or ():
            yield from self._calls.feed(piece)
        if isinstance(function := delta.get("function_call"), Mapping):
            yield from self._calls.feed({"index": 0, "function": function})

    def _feed_part(self, part: object) -> Iterator[Delta]:
        """A part of content that comes as a list: text, or (Mistral) thinking, itself a list of texts."""
        match part:
            case str(text) | {"type": "text", "text": str(text)}:
                yield from self._say(text)
            case {"type": "thinking", "thinking": str(text)}:
                yield from self._reasoning.think(text)
            case {"type": "thinking", "thinking": list()}:
                pieces = cast(list[object], cast(Chunk, part)["thinking"])
                texts = (cast(Chunk, piece).get("text") for piece in pieces if isinstance(piece, Mapping))
                yield from self._reasoning.think("".join(text for text in texts if isinstance(text, str)))
            case _:
                pass

    def _say(self, text: str) -> Iterator[Delta]:
        if text:
            self._text.append(text)
            yield TextDelta(text=text)

    def finish(self) -> Completed:
        """The whole answer. Raises `BrokenStreamError` where the stream ended before it."""
        reason = self._finish.lower()
        if not reason:
            raise BrokenStreamError(f"The connection to {self._origin.name} ended before the answer did")
        if reason in _FAILED:
            raise ServerError(f"{self._origin.name} broke off its answer ({self._finish})")
        calls, fields = self._calls.finish(_ids(self._request))
        usage = usage_of(self._usage)
        parts: list[Part] = []
        if reasoning := self._reasoning.finish(fields):
            parts.append(reasoning)
        if (text := clean("".join(self._text))).strip():
            parts.append(Text(text=text))
        stop = _STOPS.get(reason) or ("tool_calls" if calls else "end")
        if usage and self._is_cut(usage.output, calls):
            stop = "length"  # some providers hide that the limit cut a call
        return Completed(content=(*parts, *calls), stop=stop, usage=usage, cost=cost_of(self._usage), model=self._model)

    def _is_cut(self, output: int, calls: Sequence[ToolCall]) -> bool:
        """Whether the limit cut the calls: it was just reached, or it was passed and a call is not whole."""
        if not self._limit or output < self._limit or not calls:
            return False
        takes = {tool.name: tool.parameters for tool in self._request.tools}
        return output == self._limit or any(c.error or missing(c.arguments, takes.get(c.name, {})) for c in calls)


def _ids(request: ModelRequest) -> frozenset[str]:
    return frozenset(c.id for m in request.messages if isinstance(m, AssistantMessage) for c in m.calls)
