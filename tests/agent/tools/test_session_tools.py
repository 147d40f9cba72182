"""The plan and compaction, and what all schemas cost."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest
from deepagent.agent.tokenizer import load_encoder
from deepagent.agent.tool import ToolResult
from deepagent.agent.tools import builtin_tools
from deepagent.context.entries import Todo
from deepagent.context.facts import ADDED, COMMAND, EXIT_CODE, FIRST_LINE, LAST_LINE, PATH, REMOVED
from pydantic import JsonValue

Call = Callable[..., Awaitable[ToolResult]]


class Session(Protocol):
    """What the bench's session is."""

    todos: tuple[Todo, ...]
    focus: list[str | None]


class Bench(Protocol):
    """What the fixture `bench` is."""

    session: Session

    async def call(self, tool: str, /, **arguments: JsonValue) -> ToolResult: ...


async def test_the_plan(bench: Bench) -> None:
    todos: list[JsonValue] = [
        {"text": "read", "status": "completed"},
        {"text": "write", "status": "in_progress"},
    ]
    result = await bench.call("write_todos", todos=todos)
    assert bench.session.todos == (Todo(text="read", status="completed"), Todo(text="write", status="in_progress"))
    assert (result.summary, result.is_error) == ("1 of 2 done", False)
    await bench.call("write_todos", todos=[])
    assert bench.session.todos == ()


async def test_of_several_plans_the_last_counts(bench: Bench) -> None:
    plans: list[list[JsonValue]] = [[{"text": str(n), "status": "pending"}] for n in range(3)]
    results = [await bench.call("write_todos", todos=plan) for plan in plans]
    assert not any(result.is_error for result in results)
    assert [todo.text for todo in bench.session.todos] == ["2"]


@pytest.mark.parametrize(
    "todos",
    [
        None,
        "x",
        [{"text": "x"}],
        [{"text": "x", "status": "done"}],
        [{"content": "x", "status": "pending"}],
        ["x"],
    ],
)
async def test_a_wrong_plan_is_explained(todos: JsonValue, bench: Bench) -> None:
    result = await bench.call("write_todos", todos=todos)
    assert result.is_error
    assert "write_todos was not run. todos" in result.text
    assert '"in_progress"' in result.text
    assert bench.session.todos == ()


async def test_compaction(bench: Bench) -> None:
    result = await bench.call("compact_conversation", focus=" the parser ")
    assert result.text == "Compacted 40 messages. The archive has them."
    assert result.summary == "Compacted 40 messages"
    await bench.call("compact_conversation")
    await bench.call("compact_conversation", focus=None)
    await bench.call("compact_conversation", focus=" ")
    assert bench.session.focus == ["the parser", None, None, None]


def test_all_schemas_together_are_cheap() -> None:
    encode = load_encoder()
    schemas = [tool.schema for tool in builtin_tools()]
    sent = [{"name": s.name, "description": s.description, "parameters": dict(s.parameters)} for s in schemas]
    text = json.dumps([{"type": "function", "function": function} for function in sent], ensure_ascii=False)
    assert len(schemas) == 11
    assert len(encode(text)) < 1_800
    assert "$ref" not in text


def test_each_tool_says_what_it_touches() -> None:
    assert {tool.name: (tool.access, tool.subject) for tool in builtin_tools()} == {
        "ls": ("read", "path"),
        "read_file": ("read", "path"),
        "write_file": ("write", "path"),
        "edit_file": ("write", "path"),
        "glob": ("read", "path"),
        "grep": ("read", "path"),
        "execute": ("execute", "command"),
        "jobs": ("none", None),
        "write_todos": ("none", None),
        "compact_conversation": ("none", None),
        "recall": ("none", None),
    }


async def test_the_log_has_the_facts_that_summaries_are_checked_with(call: Call, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    written = await call("write_file", path="./sub/../sub/a", content="x\n")
    assert dict(written.log) == {PATH: "sub/a", ADDED: 1, REMOVED: 0}
    assert dict((await call("read_file", path="sub/a")).log) == {PATH: "sub/a", FIRST_LINE: 1, LAST_LINE: 1}
    assert PATH not in (await call("grep", pattern="x", path="sub/a")).log
    ran = await call("execute", command="exit 2")
    assert (ran.log[COMMAND], ran.log[EXIT_CODE]) == ("exit 2", 2)


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    script = (
        "import sys, deepagent.agent.tools as t; before = set(sys.modules); t.builtin_tools()\n"
        "print('pydantic' in before, 'deepagent.agent.tools.edit' in before, 'litellm' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False", "False"]


@pytest.mark.parametrize("tool", [tool.name for tool in builtin_tools()])
@pytest.mark.parametrize(
    "arguments", [{}, {"path": None, "command": None}, {"unknown": 1}, {"path": [], "pattern": {}}]
)
async def test_wrong_arguments_are_always_answered(tool: str, arguments: dict[str, JsonValue], call: Call) -> None:
    result = await asyncio.wait_for(call(tool, **arguments), 5)
    harmless = tool in {"ls", "jobs", "compact_conversation", "recall"} and not arguments
    assert result.is_error != harmless
    if result.is_error:
        assert f"{tool} was not run." in result.text
        assert "It takes: {" in result.text
