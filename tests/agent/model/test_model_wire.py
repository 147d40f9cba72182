"""Requests that every provider takes: order, pairing, content, and bytes that stay."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from deepagent.agent.model.quirks import Lane, Profile, profile_of, vendor_of
from deepagent.agent.model.types import ModelRequest, ToolSchema
from deepagent.agent.model.wire import BRIDGE, INTERRUPTED, Encoder, Wire
from deepagent.context.messages import (
    AssistantMessage,
    Message,
    Part,
    Pointer,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    clean,
    text_of,
)
from hard_inputs import hard_input
from hypothesis import given
from hypothesis import strategies as st
from outgoing import (
    DEEPSEEK,
    LITELLM,
    MISTRAL,
    MISTRAL_TEMPLATE,
    OPENAI,
    OPENROUTER,
    PLAIN,
    TEMPLATE,
    THINKING_TEMPLATE,
    Dialect,
    chat_problems,
)
from pydantic import JsonValue

TOOLS = tuple(
    ToolSchema(name=name, description=f"Does {name}.", parameters={"type": "object", "properties": {}})
    for name in ("read_file", "execute")
)
PROFILES: list[tuple[str, str, Lane, Dialect]] = [
    ("openai", "gpt-5", "lean", OPENAI),
    ("openrouter", "anthropic/claude-sonnet-4.5", "lean", OPENROUTER),
    ("deepseek", "deepseek-reasoner", "lean", DEEPSEEK),
    ("mistral", "devstral-medium-latest", "lean", MISTRAL),
    ("groq", "openai/gpt-oss-120b", "lean", PLAIN),
    ("", "qwen3-coder", "lean", TEMPLATE),
    ("", "kimi-k2.5", "lean", THINKING_TEMPLATE),
    ("", "ministral-8b", "lean", MISTRAL_TEMPLATE),
    ("anthropic", "claude-sonnet-4-5", "litellm", LITELLM),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "litellm", LITELLM),
    ("gemini", "gemini-2.5-pro", "litellm", LITELLM),
    ("moonshot", "kimi-k2.5", "litellm", LITELLM),
    ("ollama_chat", "qwen3:8b", "litellm", LITELLM),
]


def user(text: str, id: str = "u") -> UserMessage:
    return UserMessage(id=id, time="", content=(Text(text=text),))


def answer(*content: Part, model: str = "openai/gpt-5", stop: StopReason = "end") -> AssistantMessage:
    return AssistantMessage(id="a", time="", content=content, model=model, stop=stop)


def call(id: str, name: str = "read_file", **arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def result(call_id: str, text: str = "done") -> ToolMessage:
    return ToolMessage(id="t", time="", call_id=call_id, tool="read_file", content=(Text(text=text),))


def request(*messages: Message, **fields: Any) -> ModelRequest:
    base: dict[str, Any] = {"system": "Be brief.", "messages": messages, "tools": TOOLS}
    return ModelRequest(**base | fields)


def body(profile: Profile, *messages: Message, **fields: Any) -> dict[str, Any]:
    return json.loads(Encoder().encode(Wire("m", profile).body(request(*messages, **fields))))


def conversation(profile: Profile, *messages: Message) -> list[dict[str, Any]]:
    """The messages below the system prompt."""
    return body(profile, *messages)["messages"][1:]


def texts(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n\n".join(part["text"] for part in content)


TEXTS = st.sampled_from(["", "  \n", "hello", "über 🦊", "x\ud800y", "a\nb"])
CALL_IDS = ("call_1", "functions.read_file:0", "abcdefghi", "toolu_" + "x" * 80, "toolu_" + "x" * 40, "c|d", "e", "f")


@st.composite
def messages(draw: st.DrawFn) -> tuple[Message, ...]:
    """Any sequence of messages, also ones that no run should leave behind."""
    made: list[Message] = []
    free = draw(st.permutations(CALL_IDS))
    for _ in range(draw(st.integers(1, 12))):
        match draw(st.sampled_from(["user", "answer", "results", "stray"])):
            case "user":
                made.append(user(draw(TEXTS)))
            case "answer":
                calls = [
                    call(i, draw(st.sampled_from(["read_file", "a b/c", ""])), path=draw(TEXTS))
                    for i in [free.pop() for _ in range(min(draw(st.integers(0, 3)), len(free)))]
                ]
                thought = [Reasoning(text="hm")] if draw(st.booleans()) else []
                made.append(answer(*thought, Text(text=draw(TEXTS)), *calls))
            case "results":
                last = next((m for m in reversed(made) if isinstance(m, AssistantMessage)), None)
                made.extend(result(c.id, draw(TEXTS)) for c in (last.calls if last else ()) if draw(st.booleans()))
            case _:
                made.append(result(draw(st.sampled_from(CALL_IDS)), draw(TEXTS)))
    return tuple(made)


@hard_input(
    "Tool calls",
    "any order of messages, calls and results, blank texts, ids of 86 characters",
    "one request that the provider takes: pairs whole, roles in turn, ids in its form, nothing empty",
)
@pytest.mark.parametrize(("provider", "model", "lane", "dialect"), PROFILES)
@given(made=messages())
def test_any_history_is_sent_in_an_order_that_is_taken(
    made: tuple[Message, ...], provider: str, model: str, lane: Lane, dialect: Dialect
) -> None:
    """As far as it is one: each begins and ends with the user."""
    whole = body(profile_of(provider, model, lane), user("first"), *made, user("last"))
    assert chat_problems(whole, dialect) == []
    sent = whole["messages"][1:]
    told = "\n".join([*map(texts, sent), *(c["function"]["arguments"] for m in sent for c in m.get("tool_calls", ()))])
    for message in made:
        if isinstance(message, UserMessage):
            assert clean(text_of(message)).strip() in told


@pytest.mark.parametrize(("provider", "model", "lane"), [row[:3] for row in PROFILES])
def test_each_request_begins_with_the_one_before(provider: str, model: str, lane: Lane) -> None:
    profile = profile_of(provider, model, lane)
    wire = Wire("m", profile)
    history: list[Message] = [user("Fix it.")]
    before: list[str] = []
    for turn in range(4):
        sent = wire.body(request(*history))["messages"]
        plain = [re.sub(r', "cache_control": \{"type": "ephemeral"\}', "", json.dumps(m)) for m in sent]
        assert plain[: len(before)] == before
        before = plain
        history += [answer(Text(text=f"step {turn}"), call(f"call_{turn}", path="a")), result(f"call_{turn}")]


def test_forms_are_made_once() -> None:
    wire = Wire("m", Profile())
    history = (user("hi"), answer(call("c1")), result("c1"))
    first = wire.body(request(*history))["messages"]
    second = wire.body(request(*history, answer(Text(text="ok")), user("more")))["messages"]
    assert [a is b for a, b in zip(first[2:], second[2:], strict=False)] == [True, True]


def test_old_forms_are_forgotten() -> None:
    wire = Wire("m", Profile())
    for n in range(5_000):
        wire.body(request(user(f"question {n}")))
    assert len(wire._messages._kept) < 2_000


def test_the_encoder_writes_what_json_would() -> None:
    encoder = Encoder()
    made = Wire("m", Profile()).body(request(user('ü "x" \u2028'), answer(call("c1", path="ß")), result("c1")))
    for _ in range(2):
        assert json.loads(encoder.encode(made)) == made


def test_the_bytes_of_a_longer_conversation_begin_with_those_of_the_shorter() -> None:
    wire, encoder = Wire("m", profile_of("openai", "gpt-5", "lean")), Encoder()
    first = encoder.encode(wire.body(request(user("hi"), session="s1")))
    second = encoder.encode(wire.body(request(user("hi"), answer(call("c1")), result("c1"), session="s1")))
    assert second.startswith(first.removesuffix(b"]}"))


def test_marks_stand_at_prompt_tools_and_both_ends() -> None:
    profile = profile_of("anthropic", "claude-sonnet-4-5", "litellm")
    history = (user("one"), answer(call("c1")), result("c1"), answer(call("c2")), result("c2"))
    sent = body(profile, *history)
    assert [i for i, m in enumerate(sent["messages"]) if "cache_control" in json.dumps(m)] == [0, 3, 5]
    assert ["cache_control" in tool for tool in sent["tools"]] == [False, True]
    assert json.dumps(sent).count("cache_control") == 4


def test_marks_at_openrouter_stand_on_text_parts_alone() -> None:
    sent = body(
        profile_of("openrouter", "anthropic/claude-sonnet-4.5", "lean"), user("a"), answer(call("c1")), result("c1")
    )
    assert "cache_control" not in json.dumps(sent["tools"])
    contents: list[Any] = [m["content"] for m in sent["messages"] if isinstance(m.get("content"), list)]
    marked = ["cache_control" in part for content in contents for part in content]
    assert sum(marked) == json.dumps(sent).count("cache_control") == 3


def test_no_marks_elsewhere() -> None:
    assert "cache_control" not in json.dumps(body(profile_of("openrouter", "openai/gpt-5", "lean"), user("a")))
    assert "cache_control" not in json.dumps(body(profile_of("openai", "gpt-5", "lean"), user("a")))


@pytest.mark.parametrize(
    ("model", "field"),
    [
        *(("gpt-5", "max_completion_tokens"), ("o3-mini", "max_completion_tokens")),
        *(("gpt-4o", "max_tokens"), ("gpt-4.1", "max_tokens")),
    ],
)
def test_the_field_for_the_output_limit(model: str, field: str) -> None:
    sent = body(profile_of("openai", model, "lean"), user("a"), max_output=77)
    assert sent[field] == 77
    assert len([key for key in sent if key.startswith("max_")]) == 1


def test_no_output_limit_unless_the_provider_needs_one() -> None:
    assert not [key for key in body(Profile(), user("a")) if key.startswith("max_")]
    assert body(Profile(default_output=9_000), user("a"))["max_tokens"] == 9_000
    assert body(Profile(default_output=9_000), user("a"), max_output=5)["max_tokens"] == 5


def test_effort_and_cache_key() -> None:
    sent = body(profile_of("openai", "gpt-5", "lean"), user("a"), effort="high", session="20260101-s")
    assert sent["reasoning_effort"] == "high"
    assert sent["prompt_cache_key"] == "20260101-s"
    sent = body(profile_of("openrouter", "openai/gpt-5", "lean"), user("a"), effort="high", session="x")
    assert sent["reasoning"] == {"effort": "high"}
    assert "prompt_cache_key" not in sent
    assert "reasoning" not in json.dumps(body(Profile(effort="none"), user("a"), effort="high"))


def test_mistral_knows_no_stream_options() -> None:
    assert "stream_options" not in body(profile_of("mistral", "devstral-latest", "lean"), user("a"))
    assert body(Profile(), user("a"))["stream_options"] == {"include_usage": True}


THINKING = Reasoning(text="hm", data={"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "S"}]})


def test_signatures_go_back_to_their_vendor_alone() -> None:
    profile = profile_of("anthropic", "claude-sonnet-4-5", "litellm")
    own = answer(THINKING, call("c1"), model="anthropic/claude-opus-4-5")
    foreign = replace(own, model="openai/gpt-5")
    assert conversation(profile, user("a"), own, result("c1"))[1]["thinking_blocks"] == THINKING.data["thinking_blocks"]
    assert "thinking_blocks" not in conversation(profile, user("a"), foreign, result("c1"))[1]
    assert "thinking_blocks" not in conversation(Profile(vendor="anthropic"), user("a"), own, result("c1"))[1]


def test_fields_of_a_call_go_back_with_it() -> None:
    extra: dict[str, JsonValue] = {"provider_specific_fields": {"thought_signature": "S"}}
    own = answer(
        Reasoning(text="", data={"calls": {"c1": extra}}),
        call("c1"),
        call("c2", path="b"),
        model="gemini/gemini-2.5-pro",
    )
    profile = profile_of("gemini", "gemini-2.5-pro", "litellm")
    calls = conversation(profile, user("a"), own, result("c1"), result("c2"))[1]["tool_calls"]
    assert calls[0]["provider_specific_fields"] == {"thought_signature": "S"}
    assert "provider_specific_fields" not in calls[1]


def test_reasoning_is_returned_on_turns_with_calls() -> None:
    profile = profile_of("deepseek", "deepseek-reasoner", "lean")
    own = answer(Reasoning(text="I see."), call("c1"), model="deepseek/deepseek-reasoner")
    bare = answer(call("c2"), model="openai/gpt-5")
    plain = answer(Reasoning(text="I see."), Text(text="Done."), model="deepseek/deepseek-reasoner")
    sent = conversation(profile, user("a"), own, result("c1"), bare, result("c2"), plain)
    assert sent[1]["reasoning_content"] == "I see."
    assert sent[3]["reasoning_content"] == " ", "a missing one is refused"
    assert "reasoning_content" not in sent[5]
    assert "reasoning_content" not in json.dumps(
        conversation(profile_of("groq", "x", "lean"), user("a"), own, result("c1"))
    )


def test_interrupted_calls_are_answered_and_users_follow() -> None:
    profile = profile_of("mistral", "devstral-latest", "lean")
    sent = conversation(
        profile, user("a"), answer(call("c1"), call("c2")), result("c1", "yes"), user("stop"), user("go on")
    )
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert sent[3]["content"] == INTERRUPTED
    assert sent[4]["content"] == BRIDGE
    assert sent[5]["content"] == "stop\n\ngo on"


def test_the_same_call_twice_is_one_where_the_second_would_get_lost() -> None:
    history = (user("a"), answer(call("c1"), call("c2"), call("c3", path="b")), *map(result, ("c1", "c2", "c3"), "123"))
    sent = conversation(profile_of("gemini", "gemini-2.5-pro", "litellm"), *history)
    assert [c["id"] for c in sent[1]["tool_calls"]] == ["c1", "c3"]
    told = "".join(map(texts, sent))
    assert all(number in told for number in "123")
    assert len(conversation(Profile(), *history)[1]["tool_calls"]) == 3


def test_a_model_that_must_see_its_thoughts_is_not_asked_to_think_where_they_are_missing() -> None:
    profile = profile_of("anthropic", "claude-sonnet-4-5", "litellm")
    own = answer(THINKING, call("c1"), model="anthropic/claude-opus-4-5")
    foreign = replace(own, model="openai/gpt-5")
    for history, effort in (
        ((own, result("c1")), "high"),
        ((foreign, result("c1")), None),
        ((foreign, result("c1"), answer(Text(text="ok")), user("more")), "high"),
    ):
        assert body(profile, user("a"), *history, effort="high").get("reasoning_effort") == effort


def test_a_pointer_is_sent_as_it_is_shown() -> None:
    pointer = Pointer(path="/f", sha256="", bytes=1, lines=1, tokens=1, shown="see /f")
    message = ToolMessage(id="t", time="", call_id="c1", tool="read_file", content=(pointer, Text(text="end")))
    assert conversation(Profile(), user("a"), answer(call("c1")), message)[2]["content"] == "see /f\nend"


def test_arguments_that_could_not_be_read_are_sent_as_an_object() -> None:
    broken = ToolCall(id="c1", name="execute", arguments={}, error="no JSON")
    sent = conversation(Profile(), user("a"), answer(broken), result("c1", "no JSON"))
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic"),
        ("openrouter/anthropic/claude-opus-4.5", "anthropic"),
        *(("openai/gpt-5", "openai"), ("o3-mini", "openai"), ("azure/my-gpt-4", "openai")),
        *(("gemini/gemini-2.5-pro", "google"), ("moonshot/kimi-k2.5", "moonshot"), ("zai/glm-4.6", "zai")),
        *(("deepseek/deepseek-chat", "deepseek"), ("mistral/devstral-latest", "mistral")),
        *(("lm_studio/own-model", "own-model"), ("own-model", "own-model"), ("foo3", "foo3")),
    ],
)
def test_vendors(name: str, vendor: str) -> None:
    assert vendor_of(name) == vendor
