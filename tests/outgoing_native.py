"""What Anthropic, Gemini and Ollama refuse, each in its own form of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from outgoing_schemas import a_list, an_object, function_problems, gemini_schema_problems

Form = Mapping[str, Any]


def anthropic_problems(body: Form) -> Iterator[str]:
    """Why Anthropic would refuse the body of a request for a message."""
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "no max_tokens"
    if json.dumps(body).count('"cache_control"') > 4:
        yield "too many cache marks"
    for block in _blocks(body.get("system") or []):
        if block.get("type") != "text" or not str(block.get("text")).strip():
            yield "a blank system prompt"
    if "tools" in body:
        yield from function_problems(body["tools"], "input_schema")
    messages = a_list(body.get("messages"))
    roles = [message["role"] for message in messages]
    if not roles or roles[0] != "user" or roles[-1] != "user":
        yield f"the user is not the first and the last to speak: {roles}"
    if any(one == next_one for one, next_one in pairwise(roles)) or set(roles) - {"user", "assistant"}:
        yield f"user and assistant do not take turns: {roles}"
    if body.get("thinking", {}).get("type") == "enabled" and _is_thoughtless(messages):
        yield "a model that thinks is not given the thoughts of the turn that it is in"
    waiting: list[str] = []
    for at, message in enumerate(messages):
        blocks = _blocks(message.get("content"))
        yield from (f"message {at}: {problem}" for problem in _anthropic_blocks(blocks, message["role"]))
        answered = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if sorted(map(str, answered)) != sorted(waiting):
            yield f"message {at}: calls {waiting} are answered as {answered}"
        if any(block.get("type") != "tool_result" for block in blocks[: len(answered)]):
            yield f"message {at}: the results do not come first"
        waiting = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def _is_thoughtless(messages: Sequence[Form]) -> bool:
    """Whether results are the last that is said, and their calls came without reasoning."""
    if len(messages) < 2 or not any(b.get("type") == "tool_result" for b in _blocks(messages[-1].get("content"))):
        return False
    return _blocks(messages[-2].get("content"))[0].get("type") not in _THOUGHTS


def _blocks(content: Any) -> Sequence[Form]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else a_list(content)


def _anthropic_blocks(blocks: Sequence[Form], role: str) -> Iterator[str]:
    if not blocks:
        yield "no content"
    kinds = [block.get("type") in _THOUGHTS for block in blocks]
    if kinds != sorted(kinds, reverse=True):
        yield "reasoning behind other content"
    for block in blocks:
        yield from _anthropic_block(block, role)


def _anthropic_block(block: Form, role: str) -> Iterator[str]:
    if block.get("type") in _THOUGHTS and "cache_control" in block:
        yield "a cache mark on reasoning"
    match block, role:
        case {"type": "text", "text": str(text)}, _:
            if not text.strip():
                yield "a blank text"
        case {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str()}}, "user" if data:
            pass
        case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict()}, "assistant":
            if not re.fullmatch(r"[a-zA-Z0-9_-]+", call) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
                yield f"a call with the id {call!r} and the name {name!r}"
        case {"type": "tool_result", "tool_use_id": str()}, "user":
            yield from _anthropic_result(block)
        case {"type": "thinking", "thinking": str(), "signature": str(signature)}, "assistant" if signature:
            pass
        case {"type": "redacted_thinking", "data": str(data)}, "assistant" if data:
            pass
        case _:
            yield f"a block that may not stand here: {dict(block)}"


_THOUGHTS = ("thinking", "redacted_thinking")


def _anthropic_result(block: Form) -> Iterator[str]:
    for part in _blocks(block.get("content")):
        if part.get("type") == "text" and not str(part.get("text")).strip():
            yield "a result with a blank text"


def gemini_problems(body: Form) -> Iterator[str]:
    """Why Gemini would refuse the body of a request for content."""
    system = an_object(_camel(body).get("systemInstruction"))
    if not all(str(part.get("text")).strip() for part in a_list(system.get("parts"))):
        yield "a blank system prompt"
    for tool in body.get("tools", ()):
        for function in a_list(_camel(tool).get("functionDeclarations")):
            if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", function["name"]):
                yield f"a tool of the name {function['name']!r}"
            if parameters := function.get("parameters"):
                yield from gemini_schema_problems(parameters, function["name"])
    contents = a_list(body.get("contents"))
    roles = [content.get("role") for content in contents]
    if not roles or roles[0] != "user" or roles[-1] != "user" or set(roles) - {"user", "model"}:
        yield f"the user is not the first and the last to speak: {roles}"
    if ("model", "model") in pairwise(roles):
        yield f"two turns of the model: {roles}"
    waiting: list[str] = []
    for at, content in enumerate(contents):
        parts = a_list(content.get("parts"))
        yield from (f"content {at}: {problem}" for problem in _gemini_parts(parts, content.get("role")))
        answered = [str(part["functionResponse"]["name"]) for part in map(_camel, parts) if "functionResponse" in part]
        if sorted(answered) != sorted(waiting):
            yield f"content {at}: calls {waiting} are answered as {answered}"
        waiting = [str(part["functionCall"]["name"]) for part in map(_camel, parts) if "functionCall" in part]


def _camel(form: Form) -> Form:
    """The names of fields as they are documented; Google takes them in both spellings."""
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), key): value for key, value in form.items()}


def _gemini_parts(parts: Sequence[Form], role: Any) -> Iterator[str]:
    if not parts:
        yield "no parts"
    for part in map(_camel, parts):
        match part, role:
            case {"text": str(text)}, _ if text:
                pass
            case {"functionCall": {"name": str(name), "args": dict()}}, "model" if name:
                pass
            case {"functionResponse": {"name": str(name), "response": dict()}}, "user" if name:
                pass
            case {"inlineData": data}, "user" if all(_camel(an_object(data)).get(key) for key in ("mimeType", "data")):
                pass
            case _:
                yield f"a part that may not stand here: {part}"


def ollama_problems(body: Form) -> Iterator[str]:
    """Why Ollama, or the template of the model behind it, would refuse the body of a chat."""
    messages = a_list(body.get("messages"))
    if not messages or messages[-1]["role"] not in ("user", "tool"):
        yield "nothing to answer at the end"
    if any(message["role"] == "system" for message in messages[1:]):
        yield "a system message that is not the first"
    waiting = 0
    for at, message in enumerate(messages):
        calls = a_list(message.get("tool_calls"))
        if not isinstance(message.get("content") or "", str):
            yield f"message {at}: content that is no text"
        if not str(message.get("content") or "").strip() and not calls and not message.get("images"):
            yield f"message {at} is empty"
        if any(not isinstance(call["function"].get("arguments"), dict) for call in calls):
            yield f"message {at}: arguments that are no object"
        if message["role"] == "tool":
            waiting -= 1
        if (message["role"] != "tool" and waiting) or waiting < 0:
            yield f"message {at}: calls and results are no pairs"
        if message["role"] == "user" and at and messages[at - 1]["role"] in ("tool", "user"):
            yield f"message {at}: the user speaks after {messages[at - 1]['role']}"
        waiting = len(calls) if message["role"] == "assistant" else waiting
    if waiting:
        yield "calls are not answered at the end"
