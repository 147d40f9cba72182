"""A model that plays a script: for tests, demos and recordings. It stands at the same seam as every other model.

Its place in the script comes from the request alone (`ModelRequest.position`), so it survives resuming, compaction
and a new process. The format is `agent.model.script`'s.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from ...context.entries import Usage
from ...context.images import image_tokens
from ...context.messages import AssistantMessage, Image, Message, Part, Reasoning, Text, ToolCall, text_of
from ..errors import (
    AuthError,
    BadRequestError,
    BrokenStreamError,
    ConnectionFailed,
    ContextOverflowError,
    ModelError,
    OutOfCreditError,
    RateLimitError,
    ServerError,
    UnknownModelError,
)
from .arguments import parse_arguments
from .script import Expectation, Failure, Script, ScriptedCall, Step, load_script, script_of, step_at, strings
from .types import CallDelta, Completed, Delta, ModelRequest, ReasoningDelta, TextDelta

Sleep = Callable[[float], Awaitable[None]]

ENDED = Step(text="(the script has ended)")
"""The answer after the last step."""

CANNED_SUMMARY = """\
## SESSION INTENT
The user wants the task described in the first request carried out, as later messages changed it.

## SUMMARY
The work so far followed the request step by step; the facts below this summary say what was changed and checked.

## ARTIFACTS
The files named in the facts below.

## NEXT STEPS
Go on with the newest request."""

_TEMPLATE = re.compile(r"\{\{(?:(match|first|number):(.*?)|(position))\}\}(?!\})", re.DOTALL)
_PIECE = re.compile(r"\s*\S{1,24}\s?|\s+")
_LONG = 4_000
"""Characters from which on a text is no longer streamed word by word."""
_FLAGS = re.MULTILINE | re.DOTALL
_BYTES_PER_TOKEN = 4


class ScriptError(ModelError):
    """The request is not what the script expects, or the script asks for something that the request does not hold."""

    kind = "script"


class ScriptedModel:
    """Plays a script. `record` keeps every request in `requests`."""

    lane = "scripted"
    endpoint = ""

    def __init__(
        self,
        source: Path | str | Mapping[str, object],
        *,
        name: str | None = None,
        record: bool = False,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`source` is a file, or the script itself as a mapping. Raises `ConfigError` where it is no script."""
        self.script = script_of(source) if isinstance(source, Mapping) else load_script(Path(source))
        self.name = name or ("scripted" if isinstance(source, Mapping) else f"scripted:{source}")
        self.requests: list[ModelRequest] = []
        self._record = record
        self._sleep = sleep
        self._failed: dict[tuple[str, int, int], int] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Plays the step that the request stands at."""
        if self._record:
            self.requests.append(request)
        branch, step = _pick(self.script, request)
        where = f"step {request.position} ({request.purpose})"
        check(step.expect, request, where)
        answer = _answer(step, request, self.script, where)
        failure = self._failure(step.error, (request.purpose, branch, request.position))
        await self._sleep(step.delay)
        for sent, delta in enumerate(_deltas(answer)):
            if failure and sent >= failure.after:
                break
            if sent:
                await self._sleep(step.pace)
            yield delta
        if failure:
            raise _error(failure)
        yield answer

    async def aclose(self) -> None:
        """There is nothing to give back."""

    def _failure(self, failure: Failure | None, key: tuple[str, int, int]) -> Failure | None:
        """The failure that is due at this attempt, or None."""
        if failure is None:
            return None
        count = self._failed[key] = self._failed.get(key, 0) + 1
        return failure if failure.times is None or count <= failure.times else None


def _pick(script: Script, request: ModelRequest) -> tuple[int, Step]:
    """The branch (-1: none) and the step for `request`."""
    if request.purpose == "summary":
        if request.position >= len(script.summaries):
            return -1, Step(text=CANNED_SUMMARY)
        summary = script.summaries[request.position]
        return -1, Step(text=summary) if isinstance(summary, str) else summary
    for number, branch in enumerate(script.branches):
        if not any(unmet(expectation, request) for expectation in branch.when):
            return number, step_at(branch.steps, request.position) or ENDED
    return -1, step_at(script.steps, request.position) or ENDED


def _answer(step: Step, request: ModelRequest, script: Script, where: str) -> Completed:
    def fill(text: str) -> JsonValue:
        return fill_in(text, request, where)

    parts: list[Part] = []
    if step.thinking:
        parts.append(Reasoning(text=str(fill(step.thinking))))
    if step.text:
        parts.append(Text(text=str(fill(step.text))))
    parts.extend(_call(call, f"call_{request.position}_{n}", fill) for n, call in enumerate(step.calls))
    stop = step.stop or ("tool_calls" if step.calls else "end")
    usage = step.usage or script.usage
    if usage == "estimate":
        usage = Usage(input=tokens(request), output=_tokens("".join(map(_part_text, parts))))
    return Completed(content=tuple(parts), stop=stop, usage=usage)


def _call(call: ScriptedCall, call_id: str, fill: Callable[[str], JsonValue]) -> ToolCall:
    given = fill(call.arguments) if isinstance(call.arguments, str) else _filled(call.arguments, fill)
    arguments, error = parse_arguments(call.name, given)
    return ToolCall(id=call.id or call_id, name=call.name, arguments=arguments, error=error)


def _filled(value: JsonValue, fill: Callable[[str], JsonValue]) -> JsonValue:
    match value:
        case str():
            return fill(value)
        case list():
            return [_filled(item, fill) for item in value]
        case dict():
            return {key: _filled(item, fill) for key, item in value.items()}
        case _:
            return value


def _deltas(answer: Completed) -> Iterator[Delta]:
    index = 0
    for part in answer.content:
        match part:
            case Reasoning():
                yield from (ReasoningDelta(text=piece) for piece in _pieces(part.text))
            case Text():
                yield from (TextDelta(text=piece) for piece in _pieces(part.text))
            case ToolCall():
                yield CallDelta(index=index, name=part.name, arguments="")
                written = json.dumps(dict(part.arguments), ensure_ascii=False)
                yield from (CallDelta(index=index, name=part.name, arguments=p) for p in _pieces(written))
                index += 1


def _pieces(text: str) -> list[str]:
    """`text` in words; a long text in some hundred larger pieces, so that playing it stays quick."""
    if len(text) <= _LONG:
        return _PIECE.findall(text)
    size = len(text) // 200
    return [text[start : start + size] for start in range(0, len(text), size)]


def _error(failure: Failure) -> ModelError:
    message = failure.message or f"scripted failure: {failure.kind}"
    status, after = failure.status, failure.retry_after
    match failure.kind:
        case "auth":
            return AuthError(message, status=status or 401)
        case "unknown_model":
            return UnknownModelError(message, status=status or 404)
        case "out_of_credit":
            return OutOfCreditError(message, status=status or 402)
        case "bad_request":
            return BadRequestError(message, status=status or 400)
        case "overflow":
            return ContextOverflowError(message, status=status or 400, window=failure.window)
        case "rate_limit":
            return RateLimitError(message, status=status or 429, retry_after=after)
        case "server":
            return ServerError(message, status=status or 503, retry_after=after)
        case "connection":
            return ConnectionFailed(message, status=status, retry_after=after)
        case "broken_stream":
            return BrokenStreamError(message, status=status, retry_after=after)


def fill_in(text: str, request: ModelRequest, where: str = "the script") -> JsonValue:
    """`text` with its templates filled from the request; a text that is one `{{number:…}}` becomes a number.

    Raises `ScriptError` where a pattern is not found.
    """
    if "{{" not in text:
        return text
    if (whole := _TEMPLATE.fullmatch(text)) and whole[1] == "number":
        found = _found(whole, request, where)
        return float(found) if "." in found else int(found)
    return _TEMPLATE.sub(lambda template: _found(template, request, where), text)


def _found(template: re.Match[str], request: ModelRequest, where: str) -> str:
    """What the pattern of `template` finds in the request: its first group, or all of it."""
    if template[3]:
        return str(request.position)
    matches = list(re.finditer(template[2], text_at("request", request), _FLAGS))
    if not matches:
        raise ScriptError(f"{where}: {template[0]} finds nothing in the request")
    match = matches[0 if template[1] == "first" else -1]
    return (match[1] if match.re.groups else match[0]) or ""


def check(expectations: tuple[Expectation, ...], request: ModelRequest, where: str) -> None:
    """Raises `ScriptError`, naming `where` and the first expectation that `request` does not meet."""
    for expectation in expectations:
        if problem := unmet(expectation, request):
            raise ScriptError(f"{where}: {problem}")


def unmet(expectation: Expectation, request: ModelRequest) -> str:
    """Which condition does not hold, in a sentence; empty where all do."""
    text, place = text_at(expectation.where, request), expectation.where
    for wanted in strings(expectation.contains):
        if wanted not in text:
            return f"{place} does not contain {wanted!r}"
    for unwanted in strings(expectation.not_contains):
        if unwanted in text:
            return f"{place} contains {unwanted!r}"
    for pattern in strings(expectation.matches):
        if not re.search(pattern, text, _FLAGS):
            return f"{place} does not match {pattern!r}"
    return _unmet_size(expectation, request)


def _unmet_size(expectation: Expectation, request: ModelRequest) -> str:
    if expectation.tokens_below is None and expectation.tokens_above is None:
        return ""
    size = tokens(request)
    if expectation.tokens_below is not None and size >= expectation.tokens_below:
        return f"the request has about {size} tokens, expected below {expectation.tokens_below}"
    if expectation.tokens_above is not None and size <= expectation.tokens_above:
        return f"the request has about {size} tokens, expected above {expectation.tokens_above}"
    return ""


def text_at(place: str, request: ModelRequest) -> str:
    """The text of the request that a script looks at, by `Place`."""
    match place:
        case "system":
            return request.system
        case "tools":
            return "\n".join(tool.name for tool in request.tools)
        case "messages":
            return "\n".join(map(_message_text, request.messages))
        case "first":
            return "\n".join(map(_message_text, request.messages[:1]))
        case "last":
            return "\n".join(map(_message_text, request.messages[-1:]))
        case _:
            described = (f"{t.name}\n{t.description}\n{json.dumps(dict(t.parameters))}" for t in request.tools)
            return "\n".join((request.system, *described, *map(_message_text, request.messages)))


def tokens(request: ModelRequest) -> int:
    """The size of the request, one token for each four bytes of its text: scripts need no tokenizer."""
    blocks = (block for m in request.messages if not isinstance(m, AssistantMessage) for block in m.content)
    pictures = sum(image_tokens(block.width, block.height) for block in blocks if isinstance(block, Image))
    return _tokens(text_at("request", request)) + (pictures if request.image else 0)


def _tokens(text: str) -> int:
    return (len(text.encode("utf-8", "replace")) + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN


def _message_text(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        return "\n".join(map(_part_text, message.content))
    return text_of(message)


def _part_text(part: Part) -> str:
    if isinstance(part, ToolCall):
        return f"{part.name} {json.dumps(dict(part.arguments), ensure_ascii=False)}"
    return part.text
