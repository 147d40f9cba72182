"""What providers refuse, checked on the JSON that leaves us. Knows nothing of how the product makes that JSON.

`problems_in` looks at the body of an HTTP request by its path; `chat_problems` at a body in OpenAI's form, which many
speak and each bends: the `Dialect` says how. A `Checker` does so for the many requests of a conversation. The forms of
Anthropic, Gemini and Ollama are in `outgoing_native`, the tools' schemas in `outgoing_schemas`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from outgoing_native import anthropic_problems, gemini_problems, ollama_problems
from outgoing_schemas import a_list, tool_problems

Body = Mapping[str, Any]

_TOP = frozenset({"model", "messages", "stream", "stream_options", "tools", "max_tokens", "reasoning_effort"})
_SAYS = frozenset({"role", "content", "tool_calls"})
_CALLS = frozenset({"id", "type", "function"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one provider bends OpenAI's form."""

    top: frozenset[str] = _TOP
    """Fields of the body; any other is refused."""
    answer: frozenset[str] = _SAYS
    """Fields of an assistant's message."""
    call: frozenset[str] = _CALLS
    """Fields of a call."""
    part: frozenset[str] = frozenset({"type", "text", "image_url"})
    """Fields of a part of content."""
    ids: str = r"\S.*"
    """What the id of a call matches."""
    alternate: bool = False
    """User and assistant take turns, answers with calls and results left out; and no user speaks after a tool."""
    wants_thought: bool = False
    """An answer with calls carries `reasoning_content`."""
    marks: int = 0
    """How many `cache_control` marks are taken."""


OPENAI = Dialect(
    top=_TOP - {"max_tokens"} | {"max_completion_tokens", "prompt_cache_key"},
    ids=r"[a-zA-Z0-9_-]{1,40}",
)
OLDER_OPENAI = Dialect(top=_TOP | {"prompt_cache_key"}, ids=OPENAI.ids)
MISTRAL = Dialect(top=_TOP - {"stream_options"} | {"prompt_cache_key"}, ids=r"[a-zA-Z0-9]{9}", alternate=True)
PLAIN = Dialect()
"""Groq, xAI and whoever keeps to the form."""
TEMPLATE = Dialect(answer=_SAYS | {"reasoning_content"}, alternate=True)
"""llama.cpp, vLLM and their like: the model's own template has the say, and the strictest ones refuse a lot."""
MISTRAL_TEMPLATE = Dialect(ids=MISTRAL.ids, alternate=True)
THINKING_TEMPLATE = Dialect(answer=TEMPLATE.answer, alternate=True, wants_thought=True)
DEEPSEEK = Dialect(answer=TEMPLATE.answer, wants_thought=True)
OPENROUTER = Dialect(
    top=_TOP - {"reasoning_effort"} | {"reasoning"},
    answer=_SAYS | {"reasoning_details"},
    part=PLAIN.part | {"cache_control"},
    ids=r"[a-zA-Z0-9_-]{1,64}",
    marks=4,
)
LITELLM = Dialect(
    top=OPENAI.top | {"max_tokens"},
    answer=_SAYS
    | {"reasoning_content", "thinking_blocks", "reasoning_items", "provider_specific_fields", "cache_control"},
    call=_CALLS | {"provider_specific_fields", "extra_content", "caller", "cache_control", "index"},
    part=OPENROUTER.part,
    marks=4,
)
"""What litellm is handed, before it makes another form of it."""


ANY_SERVER = Dialect(top=OPENAI.top | {"max_tokens"}, answer=TEMPLATE.answer)
"""What every server of OpenAI's form refuses."""
_MISTRALS = re.compile(r"mistral|mixtral|codestral|devstral|magistral|ministral|pixtral", re.IGNORECASE)
_THINKERS = re.compile(r"kimi|deepseek|glm-|minimax|mimo", re.IGNORECASE)


def template_of(model: str) -> Dialect:
    """What the strictest template of a model's family refuses."""
    if _MISTRALS.search(model):
        return MISTRAL_TEMPLATE
    return THINKING_TEMPLATE if _THINKERS.search(model) else TEMPLATE


def problems_in(path: str, body: Any, dialect: Dialect = ANY_SERVER) -> list[str]:
    """Why the provider at `path` would refuse `body`; nothing for paths that answer no chat."""
    path = path.partition("?")[0]
    if path.endswith("/chat/completions"):
        return chat_problems(body, dialect)
    if path.endswith("/v1/messages"):
        return list(anthropic_problems(body))
    if path.endswith(("GenerateContent", "generateContent")):
        return list(gemini_problems(body))
    return list(ollama_problems(body)) if path.endswith("/api/chat") else []


def chat_problems(body: Body, dialect: Dialect) -> list[str]:
    """Why `body` would be refused where this dialect of OpenAI's form is spoken."""
    return Checker(dialect).problems(body)


class Checker:
    """Looks at the requests of long conversations: a message that stands in several of them is looked at once."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._seen: dict[int, tuple[Body, list[str], int]] = {}
        """By identity: messages, what is wrong with each, and how many cache marks it has."""

    def problems(self, body: Body) -> list[str]:
        """Why `body` would be refused."""
        messages, tools = a_list(body.get("messages")), body.get("tools")
        if not messages:
            return ["no messages"]
        found = [*_head(body, self._dialect), *_tools(json.dumps(tools))]
        marks = json.dumps(tools).count(_MARK)
        for at, message in enumerate(messages):
            wrong, marked = self._look_at(message)
            found += [f"message {at} ({message.get('role')}): {problem}" for problem in wrong]
            marks += marked
        if marks > self._dialect.marks:
            found.append(f"{marks} cache marks")
        return [*found, *_order(messages, self._dialect)]

    def _look_at(self, message: Body) -> tuple[list[str], int]:
        if len(self._seen) > _KEPT:
            self._seen.clear()
        seen = self._seen.get(id(message))
        if seen is None:
            text = json.dumps(message, allow_nan=False)
            wrong = list(_message(json.loads(text.encode()), self._dialect))
            seen = self._seen[id(message)] = (message, wrong, text.count(_MARK))
        return seen[1], seen[2]


_MARK = '"cache_control"'
_KEPT = 3_000


@cache
def _tools(tools: str) -> tuple[str, ...]:
    return tuple(tool_problems(json.loads(tools)))


def _head(body: Body, dialect: Dialect) -> Iterator[str]:
    if unknown := body.keys() - dialect.top:
        yield f"unknown fields: {sorted(unknown)}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "no model"
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "two output limits"
    if any(not isinstance(n, int) or n < 1 for key, n in body.items() if key.startswith("max_")):
        yield "an output limit that is no number"


def _message(message: Body, dialect: Dialect) -> Iterator[str]:
    match message.get("role"):
        case "system" | "user" as role:
            yield from _fields(message, frozenset({"role", "content"}) | _marks(dialect))
            yield from _content(message.get("content"), dialect, images=role == "user")
        case "tool":
            yield from _fields(message, frozenset({"role", "content", "tool_call_id"}) | _marks(dialect))
            yield from _content(message.get("content"), dialect, images=False)
        case "assistant":
            yield from _fields(message, dialect.answer)
            yield from _answer(message, dialect)
        case _:
            yield "an unknown role"


def _marks(dialect: Dialect) -> frozenset[str]:
    return frozenset({"cache_control"}) if dialect.marks else frozenset()


def _fields(form: Body, known: frozenset[str]) -> Iterator[str]:
    if unknown := form.keys() - known:
        yield f"unknown fields: {sorted(unknown)}"


def _answer(message: Body, dialect: Dialect) -> Iterator[str]:
    calls = a_list(message.get("tool_calls"))
    if message.get("content") is not None:
        yield from _content(message["content"], dialect, images=False)
    elif not calls:
        yield "an empty answer"
    if "tool_calls" in message and not calls:
        yield "an empty list of calls"
    if dialect.wants_thought and calls and not message.get("reasoning_content"):
        yield "calls without the reasoning before them"
    for call in calls:
        yield from _call(call, dialect)


def _call(call: Body, dialect: Dialect) -> Iterator[str]:
    yield from _fields(call, dialect.call)
    if call.get("type") != "function" or call.get("function", {}).keys() != {"name", "arguments"}:
        yield "a call that is no function"
        return
    if not re.fullmatch(dialect.ids, str(call.get("id", ""))):
        yield f"a call with the id {call.get('id')!r}"
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]):
        yield f"a call with the name {call['function']['name']!r}"
    try:
        is_object = isinstance(json.loads(call["function"]["arguments"], parse_constant=_refused), dict)
    except (TypeError, ValueError):
        is_object = False
    if not is_object:
        yield f"arguments that are no object: {call['function']['arguments']!r}"


def _refused(constant: str) -> object:
    raise ValueError(constant)


def _content(content: Any, dialect: Dialect, *, images: bool) -> Iterator[str]:
    if isinstance(content, str):
        if not content.strip():
            yield "blank content"
        return
    if not a_list(content):
        yield "no content"
    for part in a_list(content):
        yield from _fields(part, dialect.part)
        match part:
            case {"type": "text", "text": str(text)}:
                if not text.strip():
                    yield "a blank part"
            case {"type": "image_url", "image_url": {"url": str(url)}} if images:
                yield from _image(url)
            case _:
                yield f"a part that may not stand here: {part.get('type')}"


def _image(url: str) -> Iterator[str]:
    found = re.fullmatch(r"data:image/(?:png|jpeg|gif|webp);base64,(.+)", url, re.DOTALL)
    try:
        data = base64.b64decode(found[1], validate=True) if found else b""
    except binascii.Error:
        data = b""
    if not data:
        yield f"an image that cannot be read: {url[:40]}"


def _order(messages: Sequence[Body], dialect: Dialect) -> Iterator[str]:
    roles = [message.get("role") for message in messages]
    if "system" in roles[1:]:
        yield "a system message that is not the first"
    said = [(role, message) for role, message in zip(roles, messages, strict=True) if role != "system"]
    if not said or said[0][0] != "user":
        yield "the user does not speak first"
    if roles[-1] not in ("user", "tool"):
        yield "nothing to answer at the end"
    yield from _pairs(messages)
    if not dialect.alternate:
        return
    if any(pair == ("tool", "user") for pair in pairwise(roles)):
        yield "a user speaks directly after a tool"
    turns = [role for role, message in said if role == "user" or (role == "assistant" and "tool_calls" not in message)]
    if any(one == next_one for one, next_one in pairwise(turns)):
        yield f"user and assistant do not take turns: {turns}"


def _pairs(messages: Sequence[Body]) -> Iterator[str]:
    """Each call is answered once, directly below its answer; no id is used twice."""
    waiting: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"message {at} answers no call that waits: {message.get('tool_call_id')!r}"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"before message {at} calls are not answered: {waiting}"
        waiting = [str(call.get("id")) for call in message.get("tool_calls") or ()]
        if len({*seen, *waiting}) != len(seen) + len(waiting):
            yield f"message {at} uses the id of another call: {waiting}"
        seen.update(waiting)
    if waiting:
        yield f"calls are not answered at the end: {waiting}"
