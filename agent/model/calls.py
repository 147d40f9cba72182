"""Puts tool calls together from the pieces in which providers stream them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from secrets import token_hex
from typing import Any, cast

from pydantic import JsonValue

from ...context.messages import ToolCall
from .arguments import parse_arguments
from .types import CallDelta

Piece = Mapping[str, Any]
"""One item of `delta.tool_calls`."""

UNNAMED = "unnamed_tool"
_NOTHING: Piece = {}
_STANDARD = frozenset({"index", "id", "type", "function"})
_COUNTED = re.compile(r"(?:call|tool)?[_-]?\d{1,4}")
"""Ids that a server counts anew for each answer: they are not unique within a session."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Call:
    """A call that is arriving."""

    index: int | None
    id: str = ""
    name: str = ""
    written: list[str] = field(default_factory=list[str])
    given: object = None
    """Arguments that came as an object."""
    fields: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the provider wants back with the call, such as a signature."""

    @property
    def raw(self) -> object:
        """The arguments as they came so far."""
        if self.given is not None:
            return self.given
        text, last = "".join(self.written), self.written[-1] if self.written else ""
        return last if not _is_whole(text) and _is_whole(last) and self._is_repeated else text

    @property
    def _is_repeated(self) -> bool:
        """Whether the last piece says everything again, as some servers do at the end or with each piece."""
        *before, last = self.written
        return "".join(before) == last or all(now.startswith(then) for then, now in pairwise(self.written))

    @property
    def whole(self) -> bool:
        """Whether the arguments are complete: nothing more can belong to them."""
        if self.given is not None:
            return True
        return _is_whole("".join(self.written))


class CallAssembler:
    """Tells from ids, indices and names which call a piece belongs to; each of the three may be missing or wrong."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    def feed(self, piece: Piece) -> Iterator[CallDelta]:
        """Takes a piece."""
        function = cast(Piece, piece["function"]) if isinstance(piece.get("function"), Mapping) else _NOTHING
        name, arguments = str(function.get("name") or ""), function.get("arguments")
        call = self._find(_index(piece), str(piece.get("id") or ""), name, empty=not arguments)
        call.name = call.name or name
        call.fields.update({k: v for k, v in piece.items() if k not in _STANDARD and v})
        if isinstance(arguments, str):
            call.written.append(arguments)
        elif arguments is not None:
            call.given, arguments = arguments, json.dumps(arguments, ensure_ascii=False)
        if call.name:
            yield CallDelta(index=self._calls.index(call), name=call.name, arguments=arguments or "")

    def _find(self, index: int | None, call_id: str, name: str, *, empty: bool) -> _Call:
        """The call that a piece with these marks continues, or a new one."""
        call = self._open(index, call_id)
        if call is None or _is_another(call, call_id, name, empty=empty):
            call = _Call(index=index)
            self._calls.append(call)
        call.id = call.id or call_id
        return call

    def _open(self, index: int | None, call_id: str) -> _Call | None:
        """The newest call that could be meant: with this id where there is one, else at this index, else the last."""
        newest = [call for call in reversed(self._calls) if None in {index, call.index} or index == call.index]
        same = (call for call in newest if call_id and call.id == call_id)
        return next(same, newest[0] if newest else None)

    def finish(self, taken: frozenset[str]) -> tuple[tuple[ToolCall, ...], dict[str, JsonValue]]:
        """The calls, and by call id the provider's own fields. No id is in `taken` or used twice."""
        used = set(taken)
        calls: list[ToolCall] = []
        fields: dict[str, JsonValue] = {}
        for call in self._calls:
            kept = call.id and call.id not in used and not _COUNTED.fullmatch(call.id)
            call_id = call.id if kept else f"call_{token_hex(8)}"
            used.add(call_id)
            calls.append(_finished(call, call_id))
            if call.fields:
                fields[call_id] = call.fields
        return tuple(calls), fields


def _is_whole(text: str) -> bool:
    """Whether a text is a JSON object."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _index(piece: Piece) -> int | None:
    index = piece.get("index")
    return int(index) if isinstance(index, (int, float, str)) and str(index).isdigit() else None


def _is_another(call: _Call, call_id: str, name: str, *, empty: bool) -> bool:
    """Whether a piece with this id and name begins another call, though it carries the index of `call`."""
    if call_id and call.id and call_id != call.id:
        return bool(name) or call.whole
    if call_id and call_id == call.id:
        return False
    if not name or not call.name:
        return False
    return name != call.name or (call.whole and not empty)  # some servers repeat the name with every piece


def _finished(call: _Call, call_id: str) -> ToolCall:
    arguments, error = parse_arguments(call.name, call.raw)
    if not call.name:
        return ToolCall(
            id=call_id, name=UNNAMED, arguments={}, error="The call names no tool; name one and call again."
        )
    return ToolCall(id=call_id, name=call.name, arguments=arguments, error=error)
