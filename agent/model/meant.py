"""Makes of an answer what the model evidently meant, after it is complete: once for every model, however it is reached.

Names of tools in another spelling or with a prefix, arguments as text where a number is wanted, and calls that a model
without calls of its own wrote as text. Only where there is exactly one reading; all else stays as it came, and the
model is told what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace

from ...context.messages import AssistantMessage, Part, Text, ToolCall, new_id, text_of
from .fit import Unfit, coerced, fitted
from .types import Completed, Delta, ModelRequest, TextReplaced, ToolSchema
from .written_calls import WrittenCall, written_calls

Tools = Mapping[str, ToolSchema]

_PREFIX = re.compile(r"^(?:functions?|tools?|default_api)[.:/]+", re.IGNORECASE)
_COUNTED = re.compile(r":\d+$|<\|.*$", re.DOTALL)
"""What some models put behind a name: the call's number, or a token."""
_ALIKE = re.compile(r"[^a-z0-9]")
_BLANK = re.compile(r"^\s*\d+→|\s+", re.MULTILINE)
"""Blanks, and the line numbers of `read_file`."""


async def as_meant(deltas: AsyncIterator[Delta], request: ModelRequest) -> AsyncIterator[Delta]:
    """`deltas` with the whole answer as it was meant; text that turned out to be calls is taken back before it."""
    async for delta in deltas:
        if not isinstance(delta, Completed):
            yield delta
            continue
        meant = meaning(delta, request)
        if (text := _text(meant)) != _text(delta):
            yield TextReplaced(text=text)
        yield meant


def meaning(answer: Completed, request: ModelRequest) -> Completed:
    """`answer` as it was meant."""
    tools = {tool.name: tool for tool in request.tools}
    if any(isinstance(part, ToolCall) for part in answer.content):
        content = tuple(_call_meant(part, tools) if isinstance(part, ToolCall) else part for part in answer.content)
        return replace(answer, content=content)
    if answer.stop != "end" or not tools:
        return answer
    text = _text(answer)
    written = written_calls(text)
    calls = _recovered(text, written, tools)
    if not calls or any(_quoted(call, request) for call in calls):
        return answer
    said = text[: written[0].start]
    parts: list[Part] = [part for part in answer.content if not isinstance(part, Text)]
    if said.strip():
        parts.append(Text(text=said))
    else:
        calls = [replace(calls[0], written=f"{said}{calls[0].written}"), *calls[1:]]
    return replace(answer, content=(*parts, *calls), stop="tool_calls")


def _text(answer: Completed) -> str:
    return "".join(part.text for part in answer.content if isinstance(part, Text))


def _call_meant(call: ToolCall, tools: Tools) -> ToolCall:
    """A call in the provider's own form."""
    tool = _tool(call.name, tools)
    if tool is None or call.error is not None:
        return call
    written = None if tool.name == call.name else call.name
    return replace(call, name=tool.name, arguments=coerced(call.arguments, tool.parameters), written=written)


def _tool(name: str, tools: Tools) -> ToolSchema | None:
    """The one tool that is meant by `name`, or None."""
    if name in tools:
        return tools[name]
    for given in (name, _PREFIX.sub("", _COUNTED.sub("", name))):
        alike = [tool for tool in tools.values() if _folded(tool.name) == _folded(given)]
        if len(alike) == 1:
            return alike[0]
    return None


def _folded(name: str) -> str:
    return _ALIKE.sub("", name.lower())


def _recovered(text: str, written: Sequence[WrittenCall], tools: Tools) -> list[ToolCall]:
    """The calls in a text, all of them or none: each names a tool, and its arguments are what that takes."""
    calls: list[ToolCall] = []
    for call, raw in zip(written, _pieces(text, written), strict=True):
        tool = _tool(call.name, tools)
        if tool is None:
            return []
        try:
            arguments = fitted(call.arguments, tool.parameters)
        except Unfit:
            return []
        calls.append(ToolCall(id=f"call_{new_id()}", name=tool.name, arguments=arguments, written=raw))
    return calls


def _pieces(text: str, written: Sequence[WrittenCall]) -> Iterator[str]:
    """What of the text each call is; of several in one list, the first is all of it."""
    for number, call in enumerate(written):
        first = number == 0 or written[number - 1].start != call.start
        later = (other.start for other in written[number + 1 :] if other.start != call.start)
        yield text[call.start : next(later, len(text))] if first else ""


def _quoted(call: ToolCall, request: ModelRequest) -> bool:
    """Whether the call stands in what the user said or a tool found: then the model may only be showing it."""
    written = _BLANK.sub("", call.written or "")
    arguments = _BLANK.sub("", json.dumps(dict(call.arguments), ensure_ascii=False)) if call.arguments else ""
    for message in request.messages:
        if not isinstance(message, AssistantMessage):
            text = _BLANK.sub("", text_of(message))
            if any(words and words in text for words in (written, arguments)):
                return True
    return False
