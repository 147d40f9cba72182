"""Calls that models write as text are found where they can be read in one way, and nowhere else."""

from __future__ import annotations

import time
from typing import Any

import pytest
from deepagent.agent.model.written_calls import written_calls
from hypothesis import given
from hypothesis import strategies as st

READ: tuple[str, dict[str, Any]] = ("read_file", {"path": "a"})
LIST: tuple[str, dict[str, Any]] = ("ls", {})
READ_JSON, LIST_JSON = '{"name": "read_file", "arguments": {"path": "a"}}', '{"name": "ls", "arguments": {}}'
WRITTEN: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "JSON": (READ_JSON, [READ]),
    "JSON, with parameters": ('\n{"name": "read_file", "parameters": {"path": "a"}}\n', [READ]),
    "JSON, by other words": ('{"tool": "read_file", "args": {"path": "a"}}', [READ]),
    "JSON, with an id and a type": ('{"type": "tool_use", "id": "x", "name": "ls", "input": {}}', [LIST]),
    "JSON, arguments as text": ('{"name": "read_file", "arguments": "{\\"path\\": \\"a\\"}"}', [READ]),
    "JSON, as OpenAI wraps it": (f'{{"type": "function", "function": {LIST_JSON}}}', [LIST]),
    "a list": (f"[{READ_JSON}, {LIST_JSON}]", [READ, LIST]),
    "a fence": (f"```json\n{READ_JSON}\n```", [READ]),
    "a fence without a word": (f"```\n[{READ_JSON}]\n```\n", [READ]),
    "behind thoughts": (f"<think>\nA {LIST_JSON}?\n</think>\n\n{READ_JSON}", [READ]),
    "Hermes": (f"I look.\n<tool_call>\n{READ_JSON}\n</tool_call>", [READ]),
    "Hermes, two calls": (f"<tool_call>\n{READ_JSON}\n</tool_call>\n<tool_call>{LIST_JSON}</tool_call>", [READ, LIST]),
    "Hermes, without its end": (f"<tool_call>{READ_JSON}<|im_end|>", [READ]),
    "Hermes, behind a mention in code": (f"`<tool_call>` it is.\n<tool_call>{LIST_JSON}</tool_call>", [LIST]),
    "Granite": (f"<|tool_call|>[{READ_JSON}]", [READ]),
    "Mistral": (f"Sure.[TOOL_CALLS] [{READ_JSON}, {LIST_JSON}]</s>", [READ, LIST]),
    "Mistral, newer": (
        '[TOOL_CALLS]read_file[ARGS]{"path": "a"}[TOOL_CALLS]ls[CALL_ID]a1b2c3d4e[ARGS]{}',
        [READ, LIST],
    ),
    "Llama": ('<|python_tag|>{"name": "read_file", "parameters": {"path": "a"}}<|eom_id|>', [READ]),
    "Llama, two calls": (f"<|python_tag|>{READ_JSON}; {LIST_JSON}", [READ, LIST]),
    "Llama, by name": ('<function=read_file>{"path": "a"}</function>', [READ]),
    "Llama, as Python": ('[read_file(path="a"), ls()]', [READ, LIST]),
    "Qwen Coder": (
        "I read.\n\n<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
        [READ],
    ),
    "Qwen Coder, lines": (
        "<function=write_file>\n<parameter=content>\n\n  a\n</b>\n\n</parameter>\n</function>",
        [("write_file", {"content": "\n  a\n</b>\n"})],
    ),
    "GLM": ("<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", [READ]),
    "DeepSeek V3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n"
        '{"path": "a"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [READ],
    ),
    "DeepSeek V3.1": (
        'So:<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>'
        "<｜tool▁call▁begin｜>ls<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        [READ, LIST],
    ),
    "DeepSeek V3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n<｜DSML｜parameter name="path" string="true">'
        "a</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        [READ],
    ),
    "Kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
        '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>',
        [("functions.read_file:0", {"path": "a"})],
    ),
    "MiniMax": (
        '<minimax:tool_call>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n</invoke>\n'
        '<invoke name="ls">\n</invoke>\n</minimax:tool_call>',
        [READ, LIST],
    ),
    "Claude's tags": (
        '<function_calls>\n<invoke name="read_file"><parameter name="path">a</parameter></invoke>\n</function_calls>',
        [READ],
    ),
    "gpt-oss": (
        '<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path": "a"}<|call|>',
        [("functions.read_file", {"path": "a"})],
    ),
    "Gemma": ('```tool_code\nread_file(path="a")\n```', [READ]),
    "Gemma 4": (
        '<|tool_call>call:read_file{path:<|"|>a, b: c<|"|>,limit:5}<tool_call|>',
        [("read_file", {"path": "a, b: c", "limit": "5"})],
    ),
    "FunctionGemma": ("<start_function_call>call:read_file{path:<escape>a<escape>}<end_function_call>", [READ]),
}
"""What is written, and the calls in it."""

NONE = {
    "nothing": "",
    "words": "I would list the files.",
    "other JSON": '{"name": "package", "version": "1"}',
    "a list of numbers": "[1, 2]",
    "an empty list": "[]",
    "a name alone": '{"name": "ls"}',
    "a name that is no text": '{"name": 3, "arguments": {}}',
    "arguments that are no object": '{"name": "ls", "arguments": [1]}',
    "more than a call": '{"name": "ls", "arguments": {}, "comment": "x"}',
    "a name twice": '{"name": "ls", "name": "rm", "arguments": {}}',
    "an argument twice": '{"name": "execute", "arguments": {"command": "ls", "command": "rm"}}',
    "arguments twice": '{"name": "ls", "arguments": {}, "parameters": {}}',
    "not a number": '{"name": "ls", "arguments": {"a": NaN}}',
    "words before JSON": f"I call {READ_JSON}",
    "words behind JSON": f"{READ_JSON} would read it.",
    "two values": f"{READ_JSON}\n{LIST_JSON}",
    "a fence below words": f"You could call\n```json\n{READ_JSON}\n```",
    "two fences": f"```json\n{READ_JSON}\n```\n```json\n{LIST_JSON}\n```",
    "a fence of another language": f"```javascript\n{READ_JSON}\n```",
    "a fence that does not end": f"```json\n{READ_JSON}",
    "tags in a fence": f"As in\n```\n<tool_call>{READ_JSON}</tool_call>\n```",
    "tags in a fence that does not end": f"As in\n```\n<tool_call>{READ_JSON}</tool_call>",
    "tags in code": f"Write `<tool_call>{READ_JSON}</tool_call>`",
    "tags in indented code": f"Write\n\n    <tool_call>{READ_JSON}</tool_call>",
    "tags in a quotation": f"> <tool_call>{READ_JSON}</tool_call>",
    "tags within a line": f"The call is <tool_call>{READ_JSON}</tool_call>",
    "a mark in code": f"Mistral writes `[TOOL_CALLS] [{READ_JSON}]`",
    "words behind tags": f"<tool_call>{READ_JSON}</tool_call>\nThat reads the file.",
    "a result that the model made up": (
        f"<tool_call>{READ_JSON}</tool_call>\n<tool_response>x</tool_response>\n<tool_call>{LIST_JSON}</tool_call>"
    ),
    "a mention before a call": f"<tool_call> is the tag.\n<tool_call>{READ_JSON}</tool_call>",
    "two forms": f"<tool_call>{READ_JSON}</tool_call>\n[TOOL_CALLS] [{LIST_JSON}]",
    "a call in thoughts": f"<think><tool_call>{READ_JSON}</tool_call></think>",
    "thoughts that do not end": f"<think>\n<tool_call>{READ_JSON}</tool_call>",
    "a call that is cut": '<tool_call>{"name": "read_file", "arguments": {"pa',
    "tags that are cut": "<function=read_file>\n<parameter=path>\na",
    "a parameter twice": "<function=ls><parameter=path>a</parameter><parameter=path>b</parameter></function>",
    "Python alone": 'read_file(path="a")',
    "Python without names": '```tool_code\nread_file("a")\n```',
    "Python that computes": '[read_file(path=open("a").read())]',
    "Python that is no call": "[read_file]",
    "Python with a star": "[ls(**{})]",
    "broken Python": "```tool_code\nread_file(path=\n```",
}


@pytest.mark.parametrize("form", WRITTEN)
def test_forms(form: str) -> None:
    text, expected = WRITTEN[form]
    found = written_calls(text)
    assert [(call.name, dict(call.arguments)) for call in found] == expected
    assert [call.start for call in found] == sorted(call.start for call in found)


@pytest.mark.parametrize("form", [form for form in WRITTEN if not form.startswith(("behind", "Hermes, behind"))])
def test_no_form_is_taken_for_a_call_where_more_follows(form: str) -> None:
    text, _ = WRITTEN[form]
    assert written_calls(f"{text}\nAnd so on.") == ()
    assert written_calls(f"````\n{text}\n````\nThat is how it is written.") == ()
    assert written_calls(f"It is written like this:\n\n````text\n{text}\n````") == ()


@pytest.mark.parametrize("case", NONE)
def test_what_is_no_call(case: str) -> None:
    assert written_calls(NONE[case]) == ()


MARKS = (
    *("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<think>", "</think>", "```", "```json\n"),
    *("<function=ls>", "</function>", "<parameter=a>", "</parameter>", "<｜tool▁calls▁begin｜>"),
    *("<|tool_call>call:ls{", "}<tool_call|>"),
)
PIECES = st.lists(
    st.sampled_from([*MARKS, READ_JSON, LIST_JSON, "ls()", "word", "\ud800", *"[]{}`\n ,;"]), max_size=9
).map("".join)


@given(PIECES)
def test_nothing_raises_and_calls_end_the_text(text: str) -> None:
    found = written_calls(text)
    assert all(0 <= call.start < len(text) for call in found)
    assert not found or written_calls(text + "\nword") == ()


ENDLESS = [
    " " * 200_000 + "x",
    "<tool_call>" * 20_000,
    "`" * 100_000,
    "```\n" * 50_000,
    "[TOOL_CALLS]" + "[" * 100_000,
    "<tool_call>x" + "<arg_key>a</arg_key><arg_value>" * 20_000,
    "<function=x>" + "<parameter=a>" * 20_000,
    "<think>" * 50_000,
    "[a(" * 30_000,
    "<|channel|>commentary to=" * 10_000,
]


def test_long_texts_take_no_time() -> None:
    began = time.process_time()
    assert [written_calls(text) for text in ENDLESS] == [()] * len(ENDLESS)
    assert time.process_time() - began < 5, "it takes a quarter of a second; were it quadratic, minutes"
