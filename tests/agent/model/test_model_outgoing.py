"""The checks of outgoing requests can fail: each finds what it looks for, and lets pass what is taken."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from outgoing import (
    ANY_SERVER,
    DEEPSEEK,
    LITELLM,
    MISTRAL,
    OLDER_OPENAI,
    OPENAI,
    OPENROUTER,
    TEMPLATE,
    THINKING_TEMPLATE,
    Dialect,
    chat_problems,
    problems_in,
    template_of,
)
from server import ModelServer

Body = dict[str, Any]
PARAMETERS: Body = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CALL: Body = {"id": "abcdefghi", "type": "function", "function": {"name": "ls", "arguments": '{"path": "a"}'}}
GOOD: Body = {
    "model": "m",
    "stream": True,
    "tools": [{"type": "function", "function": {"name": "ls", "description": "Lists.", "parameters": PARAMETERS}}],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "a"},
    ],
}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def changed(path: str, value: Any) -> Body:
    """`GOOD` with another value at a place such as `messages.1.content`; ... takes it away."""
    body = copy.deepcopy(GOOD)
    place: Any = body
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in steps:
        place = place[step]
    if value is ...:
        del place[last]
    elif last == len(place):
        place.append(value)
    else:
        place[last] = value
    return body


A_CALL = "messages.2.tool_calls.0"
SCHEMA = "tools.0.function.parameters"
BROKEN: list[tuple[str, Any, str, Dialect]] = [
    ("model", "", "no model", OPENAI),
    ("messages", [], "no messages", OPENAI),
    ("seed", 1, "unknown fields", OPENAI),
    ("max_tokens", 5, "unknown fields", OPENAI),
    ("stream_options", {"include_usage": True}, "unknown fields", MISTRAL),
    ("max_tokens", 0, "an output limit", OLDER_OPENAI),
    ("tools", [], "an empty list of tools", OPENAI),
    ("tools.0.type", "code", "a tool that is no function", OPENAI),
    ("tools.1", GOOD["tools"][0], "two tools of one name", OPENAI),
    ("tools.0.function.name", "a b", "a tool of the name", OPENAI),
    ("tools.0.function.name", "1st", "a tool of the name", OPENAI),
    ("tools.0.function.description", "x" * 1_025, "a description of more than", OPENAI),
    (SCHEMA, {"type": "string"}, "parameters that are no object", OPENAI),
    (f"{SCHEMA}.properties.path", {"type": "text"}, "no JSON schema", OPENAI),
    (f"{SCHEMA}.properties.path", {"type": "array"}, "a list whose items", OPENAI),
    (f"{SCHEMA}.properties.path", {"anyOf": [{"type": "array"}]}, "a list whose items", OPENAI),
    (f"{SCHEMA}.properties.path", {"$ref": "#/$defs/X"}, "a reference to nothing", OPENAI),
    (f"{SCHEMA}.required", ["file"], "required, but not told of", OPENAI),
    (f"{SCHEMA}.anyOf", [{}], "at the top of a schema", OPENAI),
    ("messages.0.role", "developer", "an unknown role", OPENAI),
    ("messages.1.content", " \n", "blank content", OPENAI),
    ("messages.1.content", [], "no content", OPENAI),
    ("messages.1.content", None, "no content", OPENAI),
    ("messages.1.content", [{"type": "text", "text": " "}], "a blank part", OPENAI),
    ("messages.1.content", [{"type": "audio"}], "a part that may not stand here", OPENAI),
    ("messages.1.content", [{**IMAGE, "image_url": {"url": "data:image/png;base64,?"}}], "an image", OPENAI),
    ("messages.3.content", [IMAGE], "a part that may not stand here", OPENAI),
    ("messages.1.content", [{"type": "text", "text": "a", "cache_control": {}}], "cache marks", OPENAI),
    ("messages.1.name", "x", "unknown fields", MISTRAL),
    ("messages.2.content", "", "blank content", OPENAI),
    ("messages.2.reasoning_content", "hm", "unknown fields", MISTRAL),
    ("messages.2.thinking_blocks", [], "unknown fields", OPENAI),
    ("messages.2.tool_calls", [], "an empty list of calls", OPENAI),
    (f"{A_CALL}.index", 0, "unknown fields", MISTRAL),
    (f"{A_CALL}.type", "tool", "a call that is no function", OPENAI),
    (f"{A_CALL}.id", "", "a call with the id", OPENAI),
    (f"{A_CALL}.id", "x" * 41, "a call with the id", OPENAI),
    (f"{A_CALL}.id", "call_1", "a call with the id", MISTRAL),
    (f"{A_CALL}.id", "a.b", "a call with the id", OPENROUTER),
    (f"{A_CALL}.function.name", "a.b", "a call with the name", OPENAI),
    *((f"{A_CALL}.function.arguments", wrong, "arguments that are no object", OPENAI)
      for wrong in ("", "{", "[]", '"ls"', "null", '{"a": NaN}', {"path": "a"})),
    ("messages.3.tool_call_id", "other", "answers no call that waits", OPENAI),
    ("messages.3", ..., "calls are not answered at the end", OPENAI),
    ("messages.3", {"role": "user", "content": "x"}, "calls are not answered", OPENAI),
    ("messages.4", {"role": "tool", "tool_call_id": "abcdefghi", "content": "a"}, "answers no call that waits", OPENAI),
    ("messages.4", {"role": "assistant", "content": "x"}, "nothing to answer at the end", OPENAI),
    ("messages.4", {"role": "system", "content": "x"}, "a system message that is not the first", OPENAI),
    ("messages.1", ..., "the user does not speak first", OPENAI),
    ("messages.4", {"role": "user", "content": "x"}, "a user speaks directly after a tool", TEMPLATE),
    ("messages.2", {"role": "user", "content": "x"}, "do not take turns", MISTRAL),
    ("model", "m", "calls without the reasoning", DEEPSEEK),
    ("model", "m", "calls without the reasoning", THINKING_TEMPLATE),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "words", "dialect"), BROKEN)
def test_what_is_refused(path: str, value: Any, words: str, dialect: Dialect) -> None:
    found = chat_problems(changed(path, value), dialect)
    assert any(words in problem for problem in found)


@pytest.mark.parametrize("dialect", [OPENAI, OLDER_OPENAI, MISTRAL, OPENROUTER, TEMPLATE, LITELLM, ANY_SERVER])
def test_what_is_taken(dialect: Dialect) -> None:
    assert chat_problems(GOOD, dialect) == []
    assert chat_problems(changed("messages.2.content", ...), dialect) == []
    seen = changed("messages.1.content", [{"type": "text", "text": "see"}, IMAGE])
    assert chat_problems(seen, dialect) == []


def test_an_id_is_used_once() -> None:
    again = [*GOOD["messages"], *GOOD["messages"][2:]]
    assert any("uses the id of another call" in one for one in chat_problems({**GOOD, "messages": again}, OPENAI))


def test_templates_by_family() -> None:
    assert template_of("devstral-small-2").ids == MISTRAL.ids
    assert template_of("unsloth/GLM-4.6-GGUF").wants_thought
    assert template_of("qwen3-coder") is TEMPLATE


USE: Body = {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}
RESULT: Body = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}
THOUGHT: Body = {"type": "thinking", "thinking": "hm", "signature": "S"}
CLAUDE: Body = {
    "model": "m",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "Be brief."}],
    "tools": [{"name": "ls", "description": "", "input_schema": PARAMETERS}],
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [THOUGHT, USE]},
        {"role": "user", "content": [RESULT, {"type": "text", "text": "go on"}]},
    ],
}


def said(*contents: Any) -> Body:
    """Claude's body with other messages, the user's and the model's in turn."""
    roles = ("user", "assistant")
    return {**CLAUDE, "messages": [{"role": roles[n % 2], "content": content} for n, content in enumerate(contents)]}


REFUSED_BY_CLAUDE: list[tuple[Body, str]] = [
    ({**CLAUDE, "max_tokens": None}, "no max_tokens"),
    ({**CLAUDE, "system": " "}, "a blank system prompt"),
    ({**CLAUDE, "tools": [{"name": "a b", "input_schema": PARAMETERS}]}, "a tool of the name"),
    ({**CLAUDE, "messages": [*CLAUDE["messages"], CLAUDE["messages"][0]]}, "do not take turns"),
    (said("hi", [USE]), "not the first and the last"),
    (said("hi", [USE], "no"), "are answered as []"),
    (said("hi", "no", [RESULT]), "calls [] are answered"),
    (said("hi", [USE], [{"type": "text", "text": "x"}, RESULT]), "the results do not come first"),
    (said("hi", [{"type": "text", "text": " "}], "x"), "a blank text"),
    (said("hi", [USE, THOUGHT], [RESULT]), "reasoning behind other content"),
    (said("hi", [{**THOUGHT, "signature": ""}, USE], [RESULT]), "may not stand here"),
    (said("hi", [{**THOUGHT, "cache_control": {}}, USE], [RESULT]), "a cache mark on reasoning"),
    (said("hi", [{**USE, "id": "a.b"}], [{**RESULT, "tool_use_id": "a.b"}]), "a call with the id"),
    (said("hi", [USE], [{**RESULT, "content": " "}]), "a result with a blank text"),
    ({**said("hi", [USE], [RESULT]), "thinking": {"type": "enabled"}}, "not given the thoughts"),
]


@pytest.mark.parametrize(("body", "words"), REFUSED_BY_CLAUDE)
def test_what_anthropic_refuses(body: Body, words: str) -> None:
    assert problems_in("/v1/messages?beta=true", CLAUDE) == []
    assert any(words in problem for problem in problems_in("/v1/messages", body))


def gemini(*contents: Any, parameters: Body | None = None) -> Body:
    """Gemini's body: contents as pairs of role and parts."""
    tools = [{"functionDeclarations": [{"name": "ls", "parameters": parameters or PARAMETERS}]}]
    return {"contents": [{"role": role, "parts": parts} for role, parts in contents], "tools": tools}


HI = ("user", [{"text": "hi"}])
LS: tuple[str, Any] = ("model", [{"functionCall": {"name": "ls", "args": {}}}])
LISTED = ("user", [{"function_response": {"name": "ls", "response": {"content": "a"}}}])
REFUSED_BY_GEMINI: list[tuple[Body, str]] = [
    (gemini(HI, LS), "not the first and the last"),
    (gemini(HI, LS, HI), "are answered as []"),
    (gemini(HI, LS, ("user", LISTED[1] * 2)), "are answered as"),
    (gemini(("user", [{"text": ""}])), "may not stand here"),
    (gemini(("user", [])), "no parts"),
    (gemini(HI, LS, LS, LISTED), "two turns of the model"),
    (gemini(HI, parameters={**PARAMETERS, "additionalProperties": False}), "unknown to Gemini"),
    (gemini(HI, parameters={"type": "object", "properties": {"a": {"enum": ["", "b"], "type": "string"}}}), "no words"),
    (gemini(HI, parameters={"type": "object", "properties": {"a": {"enum": [1], "type": "integer"}}}), "no words"),
    (gemini(HI, parameters={"type": "object", "properties": {"a": {"type": ["string", "null"]}}}), "no type"),
    (gemini(HI, parameters={"type": "object", "properties": {"a": {"type": "array"}}}), "items"),
    (gemini(HI, parameters={"type": "object", "properties": {"a-b": {"type": "string"}}}), "a parameter of the name"),
    (gemini(HI, parameters={"type": "object", "required": ["a"]}), "required, but not told of"),
]
GENERATE = "/v1beta/models/m:streamGenerateContent?alt=sse"


@pytest.mark.parametrize(("body", "words"), REFUSED_BY_GEMINI)
def test_what_gemini_refuses(body: Body, words: str) -> None:
    assert problems_in(GENERATE, gemini(HI, LS, LISTED, HI)) == []
    assert any(words in problem for problem in problems_in(GENERATE, body))


OLLAMA_CALL: Body = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "ls", "arguments": {}}}]}
USER, TOOL = {"role": "user", "content": "hi"}, {"role": "tool", "content": "a"}
REFUSED_BY_OLLAMA: list[tuple[list[Body], str]] = [
    ([USER, OLLAMA_CALL], "not answered at the end"),
    ([USER, OLLAMA_CALL, USER], "no pairs"),
    ([USER, TOOL], "no pairs"),
    ([USER, USER], "the user speaks after user"),
    ([USER, OLLAMA_CALL, TOOL, USER], "the user speaks after tool"),
    ([USER, {"role": "system", "content": "x"}, USER], "not the first"),
    ([{"role": "user", "content": " "}], "is empty"),
    ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], "no text"),
    ([USER, {**OLLAMA_CALL, "tool_calls": [{"function": {"arguments": "{}"}}]}, TOOL], "no object"),
    ([USER, {"role": "assistant", "content": "x"}], "nothing to answer"),
]


@pytest.mark.parametrize(("messages", "words"), REFUSED_BY_OLLAMA)
def test_what_ollama_refuses(messages: list[Body], words: str) -> None:
    assert problems_in("/api/chat", {"messages": [USER, OLLAMA_CALL, TOOL]}) == []
    assert any(words in problem for problem in problems_in("/api/chat", {"messages": messages}))


def test_the_server_refuses_and_tells(model_server: Callable[..., ModelServer]) -> None:
    import urllib.error
    import urllib.request

    server = model_server({"text": "hi"})
    data = json.dumps(changed("messages.3", ...)).encode()
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(urllib.request.Request(f"{server.url}/chat/completions", data))
    assert "calls are not answered at the end" in server.problems[-1]
    server.problems.clear()  # else the test would fail in its end
