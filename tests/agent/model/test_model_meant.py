"""Answers as they were meant: names, arguments, and calls that were written as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from deepagent.agent.model.meant import as_meant, meaning
from deepagent.agent.model.types import Completed, Delta, ModelRequest, TextDelta, TextReplaced, ToolSchema
from deepagent.context.messages import Message, Part, Reasoning, StopReason, Text, ToolCall, ToolMessage, UserMessage
from hypothesis import given
from hypothesis import strategies as st


def tool(name: str, *required: str, **properties: str) -> ToolSchema:
    kinds: dict[str, Any] = {key: {"type": kind} for key, kind in properties.items()}
    parameters: dict[str, Any] = {"type": "object", "properties": kinds, "required": list(required)}
    return ToolSchema(name=name, description="", parameters=parameters)


TOOLS = (
    tool("read_file", "path", path="string", limit="integer"),
    tool("write_file", "path", "content", path="string", content="string"),
    tool("ls", path="string"),
    tool("mcp__web__get-page", "url", url="string"),
)
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>\n'
MEANT = ("read_file", {"path": "a.txt"})


def answer(*content: Part | str, stop: StopReason = "end") -> Completed:
    parts = tuple(Text(text=part) if isinstance(part, str) else part for part in content)
    return Completed(content=parts, stop=stop, usage=None)


def request(*messages: Message, tools: tuple[ToolSchema, ...] = TOOLS) -> ModelRequest:
    return ModelRequest(system="", messages=messages, tools=tools)


def calls(meant: Completed) -> list[tuple[str, dict[str, Any]]]:
    return [(part.name, dict(part.arguments)) for part in meant.content if isinstance(part, ToolCall)]


def said(meant: Completed) -> str:
    return "".join(part.text for part in meant.content if isinstance(part, Text))


NAMES = {
    "read_file": "read_file",
    "Read_File": "read_file",
    "ReadFile": "read_file",
    "read-file": "read_file",
    "functions.read_file": "read_file",
    "function.read_file": "read_file",
    "default_api.read_file": "read_file",
    "default_api:ls": "ls",
    "tools.LS": "ls",
    "tool:ls": "ls",
    "functions.read_file:3": "read_file",
    "read_file<|channel|>commentary": "read_file",
    "mcp__web__get_page": "mcp__web__get-page",
    "read": "read",
    "read_files": "read_files",
    "other.read_file": "other.read_file",
    "cat": "cat",
    "": "",
    "_": "_",
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    call = ToolCall(id="x", name=name, arguments={"path": "a"})
    (meant,) = meaning(answer(call), request()).content
    assert isinstance(meant, ToolCall)
    assert meant.name == NAMES[name]
    assert meant.written == (None if meant.name == name else name)
    assert (meant.id, meant.arguments) == ("x", {"path": "a"})


def test_a_name_that_two_tools_could_mean_is_left_alone() -> None:
    twins = (tool("read_file"), tool("ReadFile"))
    for name, expected in (("readfile", "readfile"), ("ReadFile", "ReadFile")):
        call = ToolCall(id="x", name=name, arguments={})
        assert calls(meaning(answer(call), request(tools=twins))) == [(expected, {})]


def test_arguments() -> None:
    call = ToolCall(id="x", name="read_file", arguments={"path": 7, "limit": "20", "extra": 1})
    assert calls(meaning(answer(call), request())) == [("read_file", {"path": "7", "limit": 20, "extra": 1})]
    call = ToolCall(id="x", name="read_file", arguments={"path": "a", "limit": "some"})
    assert meaning(answer(call), request()) == answer(call)


def test_calls_that_could_not_be_read_stay_so() -> None:
    call = ToolCall(id="x", name="Ls", arguments={}, error="no JSON")
    assert meaning(answer(call), request()) == answer(call)


def test_a_text_becomes_calls_and_nothing_of_it_is_lost() -> None:
    thought = Reasoning(text="hm", data={"signature": "s"})
    meant = meaning(answer(thought, f"I look.\n{CALL}{CALL}"), request())
    assert calls(meant) == [MEANT, MEANT]
    assert meant.stop == "tool_calls"
    assert meant.content[:2] == (thought, Text(text="I look.\n"))
    assert [part.written for part in meant.content if isinstance(part, ToolCall)] == [CALL, CALL]
    assert len({part.id for part in meant.content if isinstance(part, ToolCall)}) == 2


def test_arguments_in_tags_get_their_types() -> None:
    text = "<function=read_file>\n<parameter=path>\n12\n</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>"
    assert calls(meaning(answer(text), request())) == [("read_file", {"path": "12", "limit": 5})]


REFUSED = {
    "an unknown tool": '{"name": "fly", "arguments": {}}',
    "one of two tools unknown": '[{"name": "ls", "arguments": {}}, {"name": "fly", "arguments": {}}]',
    "a missing argument": '{"name": "read_file", "arguments": {}}',
    "an unknown argument": '{"name": "ls", "arguments": {"folder": "."}}',
    "a wrong type": '{"name": "read_file", "arguments": {"path": ["a"]}}',
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_tool_takes_stays_text(case: str) -> None:
    assert meaning(answer(REFUSED[case]), request()) == answer(REFUSED[case])


def test_only_whole_answers_without_calls_of_their_own_to_requests_with_tools() -> None:
    own = ToolCall(id="x", name="ls", arguments={})
    for one in (
        answer(CALL, own),
        answer(CALL, stop="length"),
        answer(CALL, stop="filter"),
        answer(Reasoning(text=CALL)),
    ):
        assert meaning(one, request()) == one
    assert meaning(answer(CALL), request(tools=())) == answer(CALL)


def user(text: str) -> UserMessage:
    return UserMessage(id="u", time="", content=(Text(text=text),))


def result(text: str) -> ToolMessage:
    return ToolMessage(id="t", time="", call_id="c", tool="read_file", content=(Text(text=text),))


SHOWN: list[Message] = [
    user(f"What does this do?\n{CALL}"),
    user('Say {"name":"read_file","arguments":{"path":"a.txt"}}'),
    result(CALL),
    result('1→<tool_call>\n2→{"name": "read_file",\n3→ "arguments": {"path": "a.txt"}}\n4→</tool_call>'),
    result('[{"tool": "read_file", "args": {"path": "a.txt"}}]'),
]


@pytest.mark.parametrize("shown", SHOWN)
def test_what_a_file_or_the_user_said_is_not_run_because_the_model_repeats_it(shown: Message) -> None:
    assert meaning(answer(CALL), request(shown)) == answer(CALL)
    assert calls(meaning(answer(CALL), request(user("Read a.txt"), result("a.txt")))) == [MEANT]


def test_a_call_without_arguments_is_no_quotation_of_two_braces() -> None:
    assert calls(meaning(answer('{"name": "ls", "arguments": {}}'), request(result("f() {}")))) == [("ls", {})]


async def stream(*deltas: Delta) -> AsyncIterator[Delta]:
    for delta in deltas:
        yield delta


async def test_text_that_was_a_call_is_taken_back_before_the_answer_ends() -> None:
    text = f"I look.\n{CALL}"
    pieces = [TextDelta(text=text[:9]), TextDelta(text=text[9:])]
    deltas = [delta async for delta in as_meant(stream(*pieces, answer(text)), request())]
    assert deltas[:3] == [*pieces, TextReplaced(text="I look.\n")]
    assert isinstance(deltas[3], Completed)
    assert len(deltas) == 4
    plain: list[Delta] = [TextDelta(text="Hello."), answer("Hello.")]
    assert [delta async for delta in as_meant(stream(*plain), request())] == plain


PIECES = st.lists(
    st.sampled_from(
        [CALL, '{"name": "ls", "arguments": {}}', "```", "\n", "<think>", "</think>", " ", "words", "[", "]"]
    ),
    max_size=6,
).map("".join)


@given(PIECES)
def test_the_text_is_what_was_said_and_what_was_written(text: str) -> None:
    meant = meaning(answer(text), request())
    written = [part.written or "" for part in meant.content if isinstance(part, ToolCall)]
    assert said(meant) + "".join(written) == text
