"""Scripts are checked, played by position, expect, fail and quote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.errors import (
    AuthError,
    BadRequestError,
    BrokenStreamError,
    ConfigError,
    ConnectionFailed,
    ContextOverflowError,
    OutOfCreditError,
    RateLimitError,
    ServerError,
    UnknownModelError,
)
from deepagent.agent.model.scripted import CANNED_SUMMARY, ScriptedModel, ScriptError, fill_in, tokens
from deepagent.agent.model.types import CallDelta, Completed, Delta, ModelRequest, ReasoningDelta, TextDelta
from deepagent.context.entries import Usage
from deepagent.context.messages import AssistantMessage, Reasoning, Text, ToolCall, ToolMessage, UserMessage


async def play(model: ScriptedModel, request: ModelRequest) -> tuple[list[Delta], Completed]:
    deltas = [delta async for delta in model.stream(request)]
    assert isinstance(deltas[-1], Completed)
    return deltas, deltas[-1]


async def said(model: ScriptedModel, request: ModelRequest) -> str:
    _, whole = await play(model, request)
    return "".join(part.text for part in whole.content if isinstance(part, Text))


def scripted(*steps: dict[str, Any], **more: Any) -> ScriptedModel:
    return ScriptedModel({"steps": list(steps), **more}, record=True)


FULL = """
usage: estimate
steps:
  - thinking: Let me think.
    text: I read it.
    calls:
      - {name: read_file, arguments: {path: a.txt, lines: [1, 2]}}
      - {name: execute, arguments: {command: ls}, id: own-id}
  - text: Done.
    usage: {input: 10, output: 2, cache_read: 4}
"""


@pytest.mark.parametrize("suffix", ["yaml", "json"])
async def test_a_file(suffix: str, tmp_path: Path, ask: Any) -> None:
    import yaml

    path = tmp_path / f"script.{suffix}"
    path.write_text(FULL if suffix == "yaml" else json.dumps(yaml.safe_load(FULL)))
    model = ScriptedModel(path)
    assert model.name == f"scripted:{path}"
    deltas, whole = await play(model, ask("hi"))
    assert whole.content == (
        Reasoning(text="Let me think."),
        Text(text="I read it."),
        ToolCall(id="call_0_0", name="read_file", arguments={"path": "a.txt", "lines": [1, 2]}),
        ToolCall(id="own-id", name="execute", arguments={"command": "ls"}),
    )
    assert whole.stop == "tool_calls"
    assert whole.usage is not None
    assert whole.usage.input == tokens(ask("hi")) > 0
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == "I read it."
    assert "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)) == "Let me think."
    pieces = [d for d in deltas if isinstance(d, CallDelta) and d.index == 0]
    assert json.loads("".join(d.arguments for d in pieces)) == {"path": "a.txt", "lines": [1, 2]}
    _, whole = await play(model, ask("hi", position=1))
    assert whole.usage == Usage(input=10, output=2, cache_read=4)
    assert whole.stop == "end"


async def test_position_alone_decides(ask: Any) -> None:
    steps = [{"text": "one"}, {"text": "two", "repeat": 2}, {"text": "three"}]
    for _ in range(2):  # a new process starts anywhere
        model = scripted(*steps)
        answers = [await said(model, ask("x", position=n)) for n in (3, 0, 2, 1, 4, 99)]
        assert answers == ["three", "one", "two", "two", "(the script has ended)", "(the script has ended)"]


async def test_no_usage_unless_it_is_said(ask: Any) -> None:
    _, whole = await play(scripted({"text": "a"}), ask("hi"))
    assert whole.usage is None


async def test_summaries(ask: Any) -> None:
    model = scripted({"text": "turn"}, summaries=["first", {"text": "second", "stop": "length"}])
    assert await said(model, ask("x", purpose="summary")) == "first"
    _, whole = await play(model, ask("x", purpose="summary", position=1))
    assert whole.stop == "length"
    assert await said(model, ask("x", purpose="summary", position=2)) == CANNED_SUMMARY
    for heading in ("SESSION INTENT", "SUMMARY", "ARTIFACTS", "NEXT STEPS"):
        assert f"## {heading}\n" in CANNED_SUMMARY


async def test_branches(ask: Any) -> None:
    branch = {"when": [{"where": "first", "contains": "look at the tests"}], "steps": [{"text": "sub"}]}
    model = scripted({"text": "main"}, branches=[branch])
    assert await said(model, ask("please look at the tests")) == "sub"
    assert await said(model, ask("fix it", "look at the tests")) == "main"
    assert await said(model, ask("look at the tests", position=1)) == "(the script has ended)"


MET: list[dict[str, Any]] = [
    {"contains": "Be brief"},
    {"contains": ["Be brief", "hello"], "not_contains": "goodbye"},
    {"where": "system", "contains": "brief", "not_contains": "hello"},
    {"where": "last", "contains": "result"},
    {"where": "first", "contains": "hello"},
    {"where": "messages", "contains": ['execute {"command": "ls"}', "thought"], "not_contains": "Be brief"},
    {"where": "tools", "contains": "read_file", "not_contains": "execute"},
    {"where": "request", "contains": "Reads a file."},
    {"matches": r"^hel+o$"},
    {"matches": [r"hello.*result", r"\d+ lines"]},
    {"tokens_below": 1_000, "tokens_above": 10},
]
UNMET: list[dict[str, Any]] = [
    {"contains": "goodbye"},
    {"contains": ["hello", "goodbye"]},
    {"not_contains": "hello"},
    {"where": "system", "contains": "hello"},
    {"where": "last", "contains": "hello"},
    {"where": "tools", "contains": "execute"},
    {"matches": "goodbye"},
    {"tokens_below": 10},
    {"tokens_above": 1_000},
]


def history(ask: Any) -> ModelRequest:
    call = ToolCall(id="c", name="execute", arguments={"command": "ls"})
    content = (Reasoning(text="thought"), Text(text="I look."), call)
    answer = AssistantMessage(id="a", time="", content=content, model="m", stop="tool_calls")
    result = ToolMessage(id="t", time="", call_id="c", tool="execute", content=(Text(text="result: 12 lines"),))
    return ask("hello", answer, result)


@pytest.mark.parametrize("expectation", MET)
async def test_met_expectations(expectation: dict[str, Any], ask: Any) -> None:
    assert await said(scripted({"text": "ok", "expect": [expectation]}), history(ask)) == "ok"


@pytest.mark.parametrize("expectation", UNMET)
async def test_unmet_expectations(expectation: dict[str, Any], ask: Any) -> None:
    with pytest.raises(ScriptError, match=r"step 0 \(turn\): ") as caught:
        await play(scripted({"text": "ok", "expect": [expectation]}), history(ask))
    assert caught.value.kind == "script"


ERRORS: dict[str, type[Exception]] = {
    "auth": AuthError,
    "unknown_model": UnknownModelError,
    "out_of_credit": OutOfCreditError,
    "bad_request": BadRequestError,
    "overflow": ContextOverflowError,
    "rate_limit": RateLimitError,
    "server": ServerError,
    "connection": ConnectionFailed,
    "broken_stream": BrokenStreamError,
}


@pytest.mark.parametrize("kind", ERRORS)
async def test_errors(kind: str, ask: Any) -> None:
    model = scripted({"text": "never", "error": {"kind": kind, "message": "told so"}})
    for _ in range(3):
        with pytest.raises(ERRORS[kind], match="told so") as caught:
            await play(model, ask("hi"))
        assert type(caught.value) is ERRORS[kind]


async def test_fields_of_errors(ask: Any) -> None:
    with pytest.raises(RateLimitError) as limited:
        await play(scripted({"error": {"kind": "rate_limit", "retry_after": 7}}), ask("hi"))
    assert limited.value.retry_after == 7
    assert limited.value.status == 429
    with pytest.raises(ContextOverflowError) as over:
        await play(scripted({"error": {"kind": "overflow", "window": 4_096}}), ask("hi"))
    assert over.value.window == 4_096


async def test_an_error_after_some_deltas_and_only_some_times(ask: Any) -> None:
    model = scripted({"text": "one two three", "error": {"kind": "server", "times": 2, "after": 2}})
    for _ in range(2):
        seen: list[Delta] = []
        with pytest.raises(ServerError):
            async for delta in model.stream(ask("hi")):
                seen.append(delta)  # noqa: PERF401  # what came before the error is wanted
        assert seen == [TextDelta(text="one "), TextDelta(text="two ")]
    assert await said(model, ask("hi")) == "one two three"


async def test_attempts_are_counted_for_each_position(ask: Any) -> None:
    error = {"kind": "server", "times": 1}
    model = scripted({"text": "a", "error": error}, {"text": "b", "error": error})
    for position in (0, 1):
        with pytest.raises(ServerError):
            await play(model, ask("hi", position=position))
    assert await said(model, ask("hi", position=0)) == "a"


TEMPLATES: list[tuple[str, Any]] = [
    ("plain", "plain"),
    (r"{{match:see (\S+\.md)}}", "/second.md"),
    (r"{{first:see (\S+\.md)}}", "/first.md"),
    (r"{{match:/f\w+}}", "/first"),
    (r"the file {{match:see (\S+)}} has {{number:(\d+) lines}}", "the file /second.md has 44"),
    (r"{{number:(\d+) lines}}", 44),
    (r"{{number:(\d+\.\d)%}}", 12.5),
    (r"{{match:\d{2}}}", "12"),
    ("step {{position}}", "step 3"),
    ("{{unknown}}", "{{unknown}}"),
]


@pytest.mark.parametrize(("template", "filled"), TEMPLATES)
def test_templates(template: str, filled: Any, ask: Any) -> None:
    request = ask("see /first.md with 44 lines", "then see /second.md at 12.5%", position=3)
    assert fill_in(template, request) == filled


async def test_templates_in_calls_and_summaries(ask: Any) -> None:
    call = {"name": "read_file", "arguments": {"path": "{{match:see (\\S+)}}", "all": ["{{match:see (\\S+)}}", 1]}}
    model = scripted({"text": "I see {{match:see (\\S+)}}", "calls": [call]}, summaries=["sum {{position}}"])
    _, whole = await play(model, ask("see /a.md"))
    assert whole.content[0] == Text(text="I see /a.md")
    assert isinstance(whole.content[1], ToolCall)
    assert whole.content[1].arguments == {"path": "/a.md", "all": ["/a.md", 1]}
    assert await said(model, ask("x", purpose="summary")) == "sum 0"


async def test_a_pattern_that_finds_nothing(ask: Any) -> None:
    with pytest.raises(ScriptError, match="finds nothing"):
        await play(scripted({"text": "{{match:nowhere}}"}), ask("hi"))


async def test_arguments_as_a_model_writes_them(ask: Any) -> None:
    model = scripted({"calls": [{"name": "execute", "arguments": '{"command": "l'}], "stop": "length"})
    _, whole = await play(model, ask("hi"))
    assert whole.stop == "length"
    assert isinstance(whole.content[0], ToolCall)
    assert whole.content[0].arguments == {}
    assert "no valid JSON" in str(whole.content[0].error)


async def test_long_texts_come_in_larger_pieces(ask: Any) -> None:
    text = "word " * 20_000
    deltas, whole = await play(scripted({"text": text}), ask("hi"))
    assert whole.content == (Text(text=text),)
    assert len(deltas) < 500


async def test_delays(ask: Any) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    model = ScriptedModel({"steps": [{"text": "one two three", "delay": 2, "pace": 0.5}]}, sleep=sleep)
    await play(model, ask("hi"))
    assert waits == [2, 0.5, 0.5]


async def test_requests_are_recorded_where_asked_for(ask: Any) -> None:
    model = scripted({"text": "a"})
    await play(model, ask("hi"))
    assert model.requests[0].messages[0] == UserMessage(id="0", time="", content=(Text(text="hi"),))
    quiet = ScriptedModel({"steps": []})
    await play(quiet, ask("hi"))
    assert quiet.requests == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps: [{txt: hi}]", "steps.0.txt"),
        ("steps: [{error: {kind: nonsense}}]", "kind"),
        ("steps: [{expect: [{where: nowhere}]}]", "where"),
        ("stepz: []", "stepz"),
        ("- a list", "mapping"),
        ("steps: [", "neither YAML nor JSON"),
        ("steps: [{text: 3}]", "steps.0.text"),
    ],
)
def test_scripts_that_are_none(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        ScriptedModel(path)
    assert "bad.yaml" in str(caught.value)


def test_the_example_of_the_docs_is_a_script(tmp_path: Path) -> None:
    docs = (Path(__file__).parents[3] / "docs" / "scripted-model.md").read_text("utf-8")
    path = tmp_path / "docs.yaml"
    path.write_text(docs.split("```yaml\n")[1].split("```")[0])
    assert len(ScriptedModel(path).script.steps) == 3
