"""The agent as a library: tools with a typed context, prompts, calls with and without an event loop, sessions."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deepagent
import pytest
from deepagent import Agent, ToolRuntime, create_deep_agent, tool
from deepagent.agent.config import PermissionSettings, Settings
from deepagent.agent.errors import AuthError, ConfigError, SessionError
from deepagent.agent.events import RunEnded, TodosChanged, ToolFinished, ToolOutput
from deepagent.agent.model.scripted import ScriptedModel
from deepagent.agent.tool import ToolResult
from deepagent.context.budget import ContextSettings
from deepagent.context.entries import Ended, Todo
from deepagent.context.messages import AssistantMessage, text_of
from server import Answer, ModelServer

YOLO = Settings(permissions=PermissionSettings(mode="yolo"))
TOKEN = "t-9a8b7c6d5e"
DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True)
class Customer:
    """A caller's own data."""

    name: str
    token: str


@tool
async def open_orders(runtime: ToolRuntime[Customer], limit: int = 10) -> str:
    """List the customer's open orders.

    Args:
        limit: How many at most.
    """
    assert runtime.context.token == TOKEN
    return f"{runtime.context.name}: {limit} orders"


def scripted(*steps: dict[str, Any]) -> ScriptedModel:
    """A model that keeps its requests."""
    return ScriptedModel({"steps": steps}, record=True)


def written(agent: Agent) -> bytes:
    """All that the agent left on the disk, in the project and in the home."""
    places = (agent.parts.workspace.root, Path(os.environ["HOME"]))
    return b"".join(path.read_bytes() for place in places for path in place.rglob("*") if path.is_file())


@pytest.mark.usefixtures("workspace")
def test_a_tool_gets_the_callers_context_which_neither_model_nor_disk_ever_has() -> None:
    model = scripted({"calls": [{"name": "open_orders", "arguments": {"limit": 3}}]}, {"text": "Three."})
    with closing(create_deep_agent(model, tools=[open_orders], context=Customer(name="ACME", token=TOKEN))) as agent:
        result = agent.invoke("What is open?")
        assert (result.text, result.outcome) == ("Three.", "success")
        assert isinstance(result.events[-1], RunEnded)
        answer = next(event.message for event in result.events if isinstance(event, ToolFinished))
        assert text_of(answer) == "ACME: 3 orders"
        schema = next(schema for schema in model.requests[0].tools if schema.name == "open_orders")
        assert list(schema.parameters["properties"]) == ["limit"]  # pyright: ignore[reportArgumentType]
        assert schema.description == "List the customer's open orders."
        assert TOKEN not in repr(model.requests)
        assert b"ACME: 3 orders" in written(agent)
        assert TOKEN.encode() not in written(agent)


@pytest.mark.usefixtures("workspace")
def test_the_runtime_gives_a_tool_files_session_and_display(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one")

    @tool(access="read")
    async def look(runtime: ToolRuntime[Any]) -> ToolResult:
        """Look."""
        runtime.on_output(b"looking")
        runtime.session.write_todos((Todo(text="look", status="completed"),))
        text = (await runtime.backend.read("a.txt")).decode()
        return ToolResult(text=f"{text} {runtime.call_id} {runtime.result_limit > 0}", summary="looked", log={"n": 1})

    model = scripted({"calls": [{"name": "look"}]}, {"text": "done"})
    with closing(create_deep_agent(model, tools=[look])) as agent:
        events = agent.invoke("look").events
        finished = next(event for event in events if isinstance(event, ToolFinished))
        assert text_of(finished.message) == "one call_0_0 True"
        assert (finished.summary, finished.message.log["n"]) == ("looked", 1)
        assert [event.data for event in events if isinstance(event, ToolOutput)] == [b"looking"]
        assert [event.items[0].text for event in events if isinstance(event, TodosChanged)] == ["look"]


@pytest.mark.usefixtures("workspace")
def test_the_system_prompt_is_a_text_or_a_function_of_the_context() -> None:
    customer = Customer(name="ACME", token=TOKEN)
    model = scripted({"text": "a"})
    with closing(create_deep_agent(model, system_prompt="You sell chairs.")) as agent:
        agent.invoke("hi")
        assert model.requests[0].system.startswith("You sell chairs.\n\n")
    model = scripted({"text": "a"})
    with closing(create_deep_agent(model, system_prompt=lambda c: f"You serve {c.name}.", context=customer)) as agent:
        agent.invoke("hi")
        assert model.requests[0].system.startswith("You serve ACME.\n\n")


def test_only_async_functions_are_tools() -> None:
    def plain() -> str:
        """Plain."""
        return ""

    with pytest.raises(TypeError, match="a tool is an async function; plain is none"):
        tool(plain)  # pyright: ignore[reportArgumentType, reportCallIssue]


@pytest.mark.usefixtures("workspace")
def test_calls_without_an_event_loop_share_one_session() -> None:
    model = scripted({"text": "One."}, {"text": "Two."}, {"text": "Three."})
    with closing(create_deep_agent(model)) as agent:
        assert agent.invoke("first").text == "One."
        assert [type(event).__name__ for event in agent.stream("second")][-1] == "RunEnded"
        assert agent.invoke("third").text == "Three."
        assert [m.role for m in model.requests[2].messages] == ["user", "assistant", "user", "assistant", "user"]


@pytest.mark.usefixtures("workspace")
async def test_calls_with_an_event_loop() -> None:
    agent = create_deep_agent(scripted({"text": "One."}, {"text": "Two."}))
    assert (await agent.ainvoke("first")).text == "One."
    assert [type(event).__name__ async for event in agent.astream("second")][-1] == "RunEnded"
    for blocking in (lambda: agent.invoke("x"), lambda: list(agent.stream("x")), agent.close):
        with pytest.raises(RuntimeError, match="an event loop runs here"):
            blocking()
    await agent.aclose()
    await agent.aclose()


@pytest.mark.usefixtures("workspace")
def test_a_stream_given_up_halfway_leaves_nothing_running(workspace: Path) -> None:
    command = {"name": "execute", "arguments": {"command": "echo $$ > pid; echo begun; sleep 30"}}
    model = scripted({"calls": [command]}, {"text": "later"})
    agent = create_deep_agent(model, settings=YOLO)
    for event in agent.stream("go"):
        if isinstance(event, ToolOutput):
            break
    with pytest.raises(ProcessLookupError):
        os.kill(int((workspace / "pid").read_text()), 0)
    runner = agent._edge._runner
    assert runner is not None
    assert asyncio.all_tasks(runner.get_loop()) == set()
    assert [e.reason for e in agent.session.entries if isinstance(e, Ended)] == ["interrupted"]
    assert agent.invoke("and now?").text == "later"
    agent.close()
    agent.close()


@pytest.mark.usefixtures("workspace")
def test_a_failing_run_raises_nothing() -> None:
    with closing(create_deep_agent(scripted({"error": {"kind": "auth", "message": "no"}}))) as agent:
        result = agent.invoke("hi")
        assert (result.outcome, result.text) == ("error", "")


@pytest.mark.usefixtures("workspace")
def test_an_interrupt_from_another_thread_ends_a_blocking_call() -> None:
    with closing(create_deep_agent(scripted({"text": "late", "delay": 30}))) as agent:
        timer = threading.Timer(0.3, agent.interrupt)
        timer.start()
        began = time.monotonic()
        assert agent.invoke("hi").outcome == "interrupted"
        assert time.monotonic() - began < 10
        timer.join()


def test_a_session_is_continued_by_its_id_its_beginning_or_as_the_newest(workspace: Path) -> None:
    steps = [{"text": "One."}, {"text": "Two."}, {"text": "Three."}, {"text": "Four."}]
    with closing(create_deep_agent(scripted(*steps), cwd=workspace)) as agent:
        agent.invoke("first")
        session = agent.session.id
    for wanted, text in ((session, "Two."), (session[:-2], "Three."), ("", "Four.")):
        with closing(create_deep_agent(scripted(*steps), cwd=workspace, session=wanted)) as agent:
            assert agent.session.id == session
            assert agent.invoke("more").text == text
    with pytest.raises(SessionError, match="no session of this workspace"):
        create_deep_agent(scripted(), cwd=workspace, session="20200101")


@pytest.mark.usefixtures("workspace")
def test_what_cannot_begin_is_raised() -> None:
    with pytest.raises(ConfigError, match="no model is set"):
        create_deep_agent()
    with pytest.raises(AuthError, match="OPENAI_API_KEY"):
        create_deep_agent("openai/gpt-5")
    with pytest.raises(ConfigError):
        create_deep_agent(scripted(), cwd="nowhere")


@pytest.mark.usefixtures("workspace")
def test_without_anybody_to_ask_changes_are_denied_and_rules_allow_them(workspace: Path) -> None:
    step = {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}]}
    with closing(create_deep_agent(scripted(step, {"text": "no"}))) as agent:
        agent.invoke("write")
    assert not (workspace / "a.txt").exists()
    allowed = Settings(permissions=PermissionSettings(allow=("write_file(*.txt)",)))
    with closing(create_deep_agent(scripted(step, {"text": "yes"}), settings=allowed)) as agent:
        agent.invoke("write")
    assert (workspace / "a.txt").read_text() == "x"


PUBLIC = ("Agent", "ToolRuntime", "create_deep_agent", "tool")


@pytest.mark.parametrize("place", ["deepagent", "deepagent.agent"])
@pytest.mark.parametrize("before", ["", "import deepagent.agent.build, deepagent.agent.tool"])
def test_the_public_names_mean_the_same_whatever_was_imported_before(place: str, before: str, tmp_path: Path) -> None:
    code = f"{before}\nfrom {place} import {', '.join(PUBLIC)}\nprint({', '.join(f'{n}.__module__' for n in PUBLIC)})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [f"deepagent.agent.{module}" for module in ("agent", "runtime", "build", "tool")]


def test_the_root_lists_its_names() -> None:
    assert {*deepagent.__all__} == {*PUBLIC, "__version__"}


# Over HTTP


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model server that OpenAI's names lead to."""
    serving = ModelServer()
    monkeypatch.setenv("OPENAI_BASE_URL", serving.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1234567890")
    yield serving
    serving.close()


@pytest.mark.usefixtures("workspace")
def test_blocking_calls_keep_the_connection_between_them(server: ModelServer) -> None:
    server.answers.extend({"text": text} for text in ("One.", "Two.", "Three."))
    settings = Settings(context=ContextSettings(window=64_000))  # so that nothing is asked of the server before
    with closing(create_deep_agent("openai/gpt-5-mini", settings=settings)) as agent:
        assert [agent.invoke("more").text for _ in range(3)] == ["One.", "Two.", "Three."]
        assert isinstance(agent.session.view.messages[-1], AssistantMessage)
    assert server.connections == 1


def test_the_page_about_the_library_runs_as_it_stands(workspace: Path, server: ModelServer) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / "library.md").read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    (workspace / "example.py").write_text("\n".join(blocks))
    answers: list[Answer] = [
        {"calls": [{"name": "open_orders", "arguments": {}}]},
        {"text": "Two chairs."},
        {"calls": [{"name": "write_file", "arguments": {"path": "hello.txt", "content": "hello\n"}}]},
        {"text": "It is written.", "usage": {"prompt_tokens": 1000, "completion_tokens": 5}},
    ]
    server.answers += answers
    done = subprocess.run(
        [sys.executable, "-W", "error", "example.py"], cwd=workspace, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == ["success Two chairs.", "It is written.", "success: 1000 tokens in, 5 out"]
    assert lines[-1] == "RunEnded"
    assert lines.count("ToolFinished") == 2
    assert (workspace / "hello.txt").read_text() == "hello\n"
    first, second = server.bodies[:2]
    assert first["messages"][0]["content"].startswith("You answer questions of ACME.")
    assert second["messages"][-1]["content"] == "ACME waits for order 42: two chairs"
    assert TOKEN not in repr(server.bodies)
