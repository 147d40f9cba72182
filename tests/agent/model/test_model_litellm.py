"""What only litellm's lane does: providers that speak otherwise, and its silence."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.errors import BrokenStreamError, ContextOverflowError, ServerError
from deepagent.agent.model.choose import open_model
from deepagent.agent.model.litellm_lane import LitellmModel
from deepagent.agent.model.quirks import profile_of
from deepagent.agent.model.translate import Origin
from deepagent.agent.model.types import Model
from deepagent.context.entries import Usage
from deepagent.context.messages import AssistantMessage, Reasoning, Text, ToolCall, ToolMessage
from server import ModelServer

pytestmark = [
    pytest.mark.usefixtures("litellm_loaded"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
Server = Callable[..., "ModelServer"]


def event(**data: Any) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[str]:
    return [
        event(type="content_block_start", index=index, content_block=start),
        *(event(type="content_block_delta", index=index, delta=delta) for delta in deltas),
        event(type="content_block_stop", index=index),
    ]


USAGE: dict[str, int] = {
    "input_tokens": 5,
    "cache_creation_input_tokens": 10,
    "cache_read_input_tokens": 20,
    "output_tokens": 1,
}
MESSAGE: dict[str, Any] = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "content": [],
    "model": "claude-sonnet-4-5",
}
START = event(type="message_start", message={**MESSAGE, "stop_reason": None, "stop_sequence": None, "usage": USAGE})
CLAUDE = [
    START,
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Let me "},
        {"type": "thinking_delta", "thinking": "see."},
        {"type": "signature_delta", "signature": "SIG=="},
    ),
    *block(1, {"type": "redacted_thinking", "data": "RED"}),
    *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I read it."}),
    *block(
        3,
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"path": '},
        {"type": "input_json_delta", "partial_json": '"a"}'},
    ),
    event(type="message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 42}),
    event(type="message_stop"),
]


def claude(server: ModelServer) -> Model:
    environ = {"ANTHROPIC_API_BASE": server.url.removesuffix("/v1")}
    return open_model("anthropic/claude-sonnet-4-5", keys={"ANTHROPIC_API_KEY": "k"}.get, environ=environ)


async def test_claude_thinks_and_gets_its_thoughts_back(model_server: Server, ask: Any, run: Any) -> None:
    server = model_server({"chunks": CLAUDE}, {"chunks": CLAUDE})
    model = claude(server)
    _, whole = await run(model, ask("hi"))
    thought, text, call = whole.content
    assert isinstance(thought, Reasoning)
    assert thought.text == "Let me see."
    assert text == Text(text="I read it.")
    assert call == ToolCall(id="toolu_1", name="read_file", arguments={"path": "a"})
    assert whole.stop == "tool_calls"
    assert whole.usage == Usage(input=35, output=42, cache_read=20, cache_write=10)
    answer = AssistantMessage(id="a", time="", content=whole.content, model=model.name, stop=whole.stop)
    result = ToolMessage(id="t", time="", call_id="toolu_1", tool="read_file", content=(Text(text="A"),))
    await run(model, ask("hi", answer, result))
    await model.aclose()
    assert server.requests[0].path == "/v1/messages"
    sent = server.requests[1].body["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"][:2] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "SIG=="},
        {"type": "redacted_thinking", "data": "RED"},
    ]


async def test_claude_is_told_what_to_cache(model_server: Server, ask: Any, run: Any) -> None:
    server = model_server({"chunks": CLAUDE})
    model = claude(server)
    call = ToolCall(id="toolu_0", name="read_file", arguments={"path": "a"})
    answer = AssistantMessage(id="a", time="", content=(call,), model="x", stop="tool_calls")
    result = ToolMessage(id="t", time="", call_id="toolu_0", tool="read_file", content=(Text(text="A"),))
    await run(model, ask("hi", answer, result))
    await model.aclose()
    body = server.requests[0].body
    mark = {"type": "ephemeral"}
    assert body["system"][-1]["cache_control"] == mark
    assert body["tools"][-1]["cache_control"] == mark
    assert body["messages"][0]["content"][-1]["cache_control"] == mark
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark
    assert json.dumps(body).count("cache_control") == 4
    assert body["max_tokens"] == 26_000


def test_each_event_loop_has_connections_of_its_own(model_server: Server, ask: Any, run: Any) -> None:
    """As in a program that runs an agent, closes it, and later runs another one."""
    server = model_server({"chunks": CLAUDE}, {"chunks": CLAUDE}, {"chunks": CLAUDE})

    async def talk() -> None:
        model = claude(server)
        await run(model, ask("hi"))
        await model.aclose()

    for _ in range(3):
        asyncio.run(talk())
    assert len(server.requests) == 3


GEMINI_SAYS = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 120,
    },
}


async def test_gemini_counts_thoughts_and_what_was_cached(model_server: Server, ask: Any, run: Any) -> None:
    server = model_server({"chunks": [GEMINI_SAYS]})
    origin = Origin(provider="gemini", model="gemini/gemini-2.5-pro", endpoint=server.url.replace("/v1", "/v1beta"))
    profile = profile_of("gemini", "gemini-2.5-pro", "litellm")
    model = LitellmModel("gemini/gemini-2.5-pro", origin=origin, profile=profile, key="k")
    _, whole = await run(model, ask("hi"))
    await model.aclose()
    assert whole.content == (Text(text="Hi."),)
    assert whole.usage == Usage(input=100, output=20, cache_read=60)


OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}
TOO_LONG = {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"chunks": [START, event(type="error", error=OVERLOADED)]}, ServerError),
        ({"status": 529, "body": {"type": "error", "error": OVERLOADED}}, ServerError),
        ({"chunks": CLAUDE[:5]}, BrokenStreamError),
        ({"status": 400, "body": TOO_LONG}, ContextOverflowError),
    ],
)
async def test_claude_fails(model_server: Server, ask: Any, fails: Any, answer: dict[str, Any], kind: type) -> None:
    model = claude(model_server(answer))
    _, caught = await fails(model, ask("hi"))
    await model.aclose()
    assert type(caught) is kind


async def test_ollama_is_told_the_window_and_calls(model_server: Server, ask: Any, run: Any) -> None:
    def line(message: dict[str, Any], **more: Any) -> str:
        head = {"model": "q", "created_at": "2026-01-01T00:00:00Z", "done": False}
        return json.dumps({**head, "message": {"role": "assistant", "content": "", **message}, **more}) + "\n"

    call = {"function": {"name": "read_file", "arguments": {"path": "a"}}}
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 30, "eval_count": 5}
    lines = [line({"content": "Reading."}), line({"tool_calls": [call]}), line({}, **end)]
    server = model_server({"chunks": lines, "headers": {"content-type": "application/x-ndjson"}})
    environ = {"OLLAMA_API_BASE": server.url.removesuffix("/v1")}
    model = open_model("ollama_chat/qwen3", keys=environ.get, environ=environ, window=16_000)
    _, whole = await run(model, ask("hi"))
    await model.aclose()
    (sent,) = (request.body for request in server.requests if request.path == "/api/chat")
    assert sent["options"]["num_ctx"] == 16_000
    assert whole.content[0] == Text(text="Reading.")
    assert whole.content[1].arguments == {"path": "a"}
    assert whole.stop == "tool_calls"
    assert whole.usage == Usage(input=30, output=5)


QUIET = """
    import asyncio, os, sys
    from deepagent.agent.errors import ModelError
    from deepagent.agent.model.choose import open_model
    from deepagent.agent.model.types import ModelRequest
    from deepagent.context.messages import Text, UserMessage

    async def main(url):
        environ = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}
        message = UserMessage(id="1", time="", content=(Text(text="hi"),))
        for name in ("test-model", "gpt-5", "unknown_provider/x"):
            lane_environ = {} if "/" in name else environ
            model = open_model(name, lane="litellm", keys={}.get, environ=lane_environ)
            for _ in range(5):
                try:
                    async for delta in model.stream(ModelRequest(system="s", messages=(message,))):
                        pass
                except ModelError:
                    pass
            await model.aclose()
        with open(sys.argv[2], "w") as file:
            file.write(os.environ.get("PLANTED", "clean"))
            file.write(str([name for name in os.environ if name.startswith("LITELLM")]))

    asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.long
async def test_it_prints_nothing_and_loads_no_environment(model_server: Server, tmp_path: Path) -> None:
    """Standard output is the command line's, and a `.env` that came with a project changes no endpoint."""
    odd_arguments: dict[str, Any] = {
        "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "a", "arguments": {}}}]}}]
    }
    answers: list[dict[str, Any]] = [
        {"text": "fine", "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
        {"status": 500, "body": {"error": {"message": "no"}}},
        {"status": 401, "body": {"error": {"message": "no"}}},
        {"text": "cut", "cut": 2},
        {"chunks": [odd_arguments, {"choices": [{"delta": {}, "finish_reason": "stop"}]}, "data: [DONE]\n\n"]},
    ]
    server = model_server(*answers, *answers)
    (tmp_path / ".env").write_text("PLANTED=yes\n")
    script, report = tmp_path / "quiet.py", tmp_path / "report"
    script.write_text(textwrap.dedent(QUIET))
    command = [sys.executable, str(script), server.url, str(report)]
    done = await asyncio.to_thread(_run, command, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert report.read_text() == "clean[]"
    assert len(server.bodies) == 10


def _run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environ)
