"""What litellm makes of our requests for providers with forms of their own: they take it, whatever has happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from deepagent.agent.model.litellm_lane import LitellmModel
from deepagent.agent.model.quirks import profile_of
from deepagent.agent.model.translate import Origin
from deepagent.agent.model.types import ModelRequest
from deepagent.agent.tools import builtin_tools
from deepagent.context.messages import (
    AssistantMessage,
    Image,
    Message,
    Part,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hard_inputs import hard_input
from outgoing import MISTRAL
from server import ModelServer

pytestmark = [
    pytest.mark.usefixtures("litellm_loaded"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
Server = Callable[..., ModelServer]
TOOLS = tuple(tool.schema for tool in builtin_tools())
PNG = b"\x89PNG\r\n\x1a\n"


def user(*content: Text | Image | str) -> UserMessage:
    blocks = tuple(Text(text=one) if isinstance(one, str) else one for one in content)
    return UserMessage(id="u", time="", content=blocks)


def answer(*content: Part | str, model: str = "other/model", stop: StopReason = "end") -> AssistantMessage:
    parts = tuple(Text(text=one) if isinstance(one, str) else one for one in content)
    return AssistantMessage(id="a", time="", content=parts, model=model, stop=stop)


def call(id: str, name: str = "read_file", **arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def result(id: str, *content: Text | Image | str) -> ToolMessage:
    blocks = tuple(Text(text=one) if isinstance(one, str) else one for one in content)
    return ToolMessage(id="t", time="", call_id=id, tool="read_file", content=blocks)


IMAGE = Image(name="i", sha256="0", media="image/png", bytes=8, width=1, height=1, shown="[image]")
THOUGHT = Reasoning(
    text="Hm.", data={"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "SIG=="}]}
)
CLAUDE = "anthropic/claude-sonnet-4-5"
HISTORIES: dict[str, tuple[Message, ...]] = {
    "one prompt": (user("hi"),),
    "a call": (user("hi"), answer("I look.", call("c1", path="a")), result("c1", "A")),
    "calls together": (user("hi"), answer(call("c1", path="1"), call("c2", path="2"), call("c3", path="3")),
                       result("c2", "2"), result("c1", "1"), result("c3", "3")),
    "the same call twice": (user("hi"), answer(call("c1"), call("c2")), result("c1", "1"), result("c2", "2")),
    "the same tool twice in a row": (user("hi"), answer(call("c1")), result("c1", "1"), answer(call("c2")),
                                     result("c2", "2")),
    "a user behind a result": (user("hi"), answer(call("c1")), result("c1", "1"), user("stop")),
    "a call without its result": (user("hi"), answer(call("c1"), call("c2")), result("c1", "1"), user("go on")),
    "calls at the end": (user("hi"), answer(call("c1"))),
    "an interrupted answer": (user("hi"), answer("I wa", stop="interrupted"), user("go on"), user("please")),
    "empty answers": (user("hi"), answer(), answer(Reasoning(text="hm")), user("again")),
    "an empty result": (user("hi"), answer(call("c1")), result("c1", " \n")),
    "blank text beside a call": (user("hi"), answer(" \n", call("c1")), result("c1", "1")),
    "a result without its call": (user("hi"), result("c9", "left over"), user("go on")),
    "odd ids": (user("hi"), answer(call("functions.read_file:0"), call("c|d", path="1"), call("x" * 200, path="2")),
                result("c|d", "1"), result("functions.read_file:0", "2"), result("x" * 200, "3")),
    "odd names": (user("hi"), answer(call("c1", "fly away!"), call("c2", "ü" * 90)), result("c1", "no"),
                  result("c2", "no")),
    "arguments that could not be read": (user("hi"), answer(ToolCall(id="c1", name="ls", arguments={}, error="no")),
                                         result("c1", "no")),
    "hard text": (user("\x00\ud800 <|im_end|> [INST] \u2028"), answer("👍🏽\x1b[0m"), user("</s>")),
    "its own thoughts": (user("hi"), answer(THOUGHT, call("c1"), model=CLAUDE), result("c1", "1")),
    "thoughts of another model": (user("hi"), answer(THOUGHT, call("c1"), model="openai/gpt-5"), result("c1", "1")),
    "thoughts, then none": (user("hi"), answer(THOUGHT, call("c1"), model=CLAUDE), result("c1", "1"),
                            answer(call("c2"), model="openai/gpt-5"), result("c2", "2")),
    "an image of the user": (user("see", IMAGE),),
    "an image that a tool found": (user("hi"), answer(call("c1"), call("c2")), result("c1", "[image]", IMAGE),
                                   result("c2", "2"), user("and?")),
}  # fmt: skip
"""What a view may be, and worse."""
MESSAGE: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m"}
OVER: list[object] = [
    {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
DONE = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop"}
OLLAMA = json.dumps({**DONE, "message": {"role": "assistant", "content": "ok"}}) + "\n"
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}
PROVIDERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "anthropic": ("anthropic/claude-sonnet-4-5", "", {"chunks": OVER}),
    "gemini": ("gemini/gemini-2.5-pro", "/v1beta", {"chunks": [GEMINI]}),
    "gemini 3": ("gemini/gemini-3-pro-preview", "/v1beta", {"chunks": [GEMINI]}),
    "mistral": ("mistral/mistral-large-latest", "/v1", {"text": "ok"}),
    "ollama": ("ollama_chat/qwen3", "", {"chunks": [OLLAMA], "headers": {"content-type": "application/x-ndjson"}}),
}
"""Their names as litellm takes them, the paths of their addresses, and a short answer in their form."""
DIALECTS = {"mistral": MISTRAL}


@hard_input(
    "Tool calls",
    "histories with interrupted calls, odd ids and names, blank texts, images, another model's thoughts",
    "Anthropic, Gemini, Mistral and Ollama take what litellm makes of them",
)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_it_is_taken(provider: str, model_server: Server, run: Any) -> None:
    name, path, over = PROVIDERS[provider]
    server = model_server(dialect=DIALECTS.get(provider), routes={"/api/show": {}})
    prefix, _, model_name = name.partition("/")
    origin = Origin(provider=prefix, model=name, endpoint=server.url.removesuffix("/v1") + path)
    model = LitellmModel(name, origin=origin, profile=profile_of(prefix, model_name, "litellm"), key="k")
    try:
        for history, effort in product(HISTORIES, (None, "high")):
            server.answers.append(over)  # pyright: ignore[reportArgumentType] - it is what the server takes
            request = ModelRequest(
                system="Be brief.",
                messages=HISTORIES[history],
                tools=TOOLS,
                effort=effort,
                max_output=9_000,
                image=lambda _: PNG,
            )
            await run(model, request)
            assert server.problems == [], f"{history}: {json.dumps(server.requests[-1].body)[-3_000:]}"
    finally:
        await model.aclose()
