"""Puts a model's reasoning together: its text, and the opaque fields that its provider wants back unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue

from ...context.messages import Reasoning, clean
from .types import ReasoningDelta

Piece = Mapping[str, Any]
"""A `delta` of a chunk, or a whole `message`."""

_GROWING = ("text", "summary", "thinking", "data", "signature")
_TWICE = frozenset({"thinking_blocks", "reasoning_content", "reasoning_details"})
"""What litellm says a second time within `provider_specific_fields`."""


class ReasoningAssembler:
    """Collects `reasoning_content`, `reasoning`, `reasoning_details`, `thinking_blocks` and what goes with them."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._details: list[dict[str, JsonValue]] = []
        self._blocks: list[dict[str, JsonValue]] = []
        self._fields: dict[str, JsonValue] = {}
        self._own: dict[str, JsonValue] = {}

    def feed(self, piece: Piece) -> Iterator[ReasoningDelta]:
        """Takes what a piece says of reasoning; the same text in several fields counts once."""
        details, blocks = _objects(piece.get("reasoning_details")), _objects(piece.get("thinking_blocks"))
        for detail in details:
            _grow(self._details, detail, ("type", "index", "id"))
        for block in blocks:
            self._add_block(block)
        if items := piece.get("reasoning_items"):
            self._fields["reasoning_items"] = items
        if isinstance(fields := piece.get("provider_specific_fields"), Mapping):
            named = cast(Mapping[str, JsonValue], fields)
            self._own.update({key: value for key, value in named.items() if value and key not in _TWICE})
        text = _text(piece.get("reasoning_content")) or _text(piece.get("reasoning"))
        yield from self.think(text or _joined(blocks, "thinking") or _joined(details, "text", "summary"))

    def think(self, text: str) -> Iterator[ReasoningDelta]:
        """Takes a piece of the text alone."""
        if text:
            self._text.append(text)
            yield ReasoningDelta(text=text)

    def _add_block(self, block: dict[str, JsonValue]) -> None:
        """A block grows until its signature has come."""
        if self._blocks and self._blocks[-1].get("signature"):
            self._blocks.append({})
        _grow(self._blocks, block, ("type",))
        self._blocks = [kept for kept in self._blocks if kept]

    def finish(self, calls: Mapping[str, JsonValue]) -> Reasoning | None:
        """The whole; `calls` are the fields that belong to tool calls, by call id. None where there is nothing."""
        data: dict[str, JsonValue] = dict(self._fields)
        if self._own:
            data["provider_specific_fields"] = dict(self._own)
        if self._details:
            data["reasoning_details"] = [*self._details]
        if self._blocks:
            data["thinking_blocks"] = [*self._blocks]
        if calls:
            data["calls"] = dict(calls)
        text = clean("".join(self._text))
        return Reasoning(text=text, data=data) if text.strip() or data else None


def _grow(kept: list[dict[str, JsonValue]], piece: dict[str, JsonValue], marks: tuple[str, ...]) -> None:
    """Adds `piece` to the last of `kept` where both have the same marks, else after it."""
    last = kept[-1] if kept else None
    if last is None or any(last.get(mark) != piece.get(mark) for mark in marks if piece.get(mark) is not None):
        kept.append(dict(piece))
        return
    for key, value in piece.items():
        if key in _GROWING and isinstance(value, str) and isinstance(old := last.get(key), str):
            last[key] = old + value
        elif value is not None:
            last[key] = value


def _objects(value: object) -> list[dict[str, JsonValue]]:
    if not isinstance(value, list):
        return []
    return [cast(dict[str, JsonValue], item) for item in cast(list[object], value) if isinstance(item, dict)]


def _joined(items: list[dict[str, JsonValue]], *keys: str) -> str:
    return "".join(value for item in items for key in keys if isinstance(value := item.get(key), str))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
