"""The built-in tools on a real backend."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, cast

import pytest
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.middleware.base import RunState
from deepagent.agent.middleware.masking import Masking
from deepagent.agent.result_file import ResultFile
from deepagent.agent.runtime import RecallAsk, ToolRuntime
from deepagent.agent.secrets import Masker
from deepagent.agent.storage import DiskStorage
from deepagent.agent.tool import ToolResult
from deepagent.agent.tools import builtin_tools
from deepagent.context.entries import Todo
from deepagent.context.messages import Image, ToolCall
from deepagent.context.offload import Offloader
from deepagent.context.recall_text import Answer
from deepagent.context.tokens import Counter
from pydantic import JsonValue

TOOLS = {tool.name: tool for tool in builtin_tools()}


def _no_tables() -> NoReturn:
    raise LookupError("estimates are enough here")


@dataclass(slots=True)
class Session:
    """Remembers what tools asked of the session."""

    folder: Path
    """Where long results go."""
    todos: tuple[Todo, ...] = ()
    focus: list[str | None] = field(default_factory=list[str | None])

    def write_todos(self, items: tuple[Todo, ...]) -> None:
        self.todos = items

    async def recall(self, ask: RecallAsk, tokens: int) -> Answer:
        return Answer(text=f"{ask.query} in {tokens} tokens", summary="no hits")

    sees: bool = False

    def keep_image(self, data: bytes, shown: str) -> Image:
        raise AssertionError("this model sees none")

    def open_result(self, tool: str) -> ResultFile:
        storage = DiskStorage(self.folder / "project", self.folder / "twins", prefix="kept")
        counter = Counter(_no_tables)
        path, file = Offloader(storage=storage, session="s", counter=counter, can_read=lambda: True).begin(tool)
        return ResultFile(path, file, Masker({"KEY": "sk-very-secret"}), self.folder)

    async def compact(self, focus: str | None) -> str:
        self.focus.append(focus)
        return "Compacted 40 messages. The archive has them."


@dataclass(slots=True)
class Bench:
    """Calls tools by name."""

    backend: LocalBackend
    session: Session
    result_limit: int = 20_000
    shown: bytearray = field(default_factory=bytearray)

    async def call(self, tool: str, /, **arguments: JsonValue) -> ToolResult:
        """Calls a tool as the agent does."""
        runtime: ToolRuntime[None] = ToolRuntime(
            context=None,
            backend=self.backend,
            session=self.session,
            call_id="call-1",
            result_limit=self.result_limit,
            on_output=self.shown.extend,
        )
        run, chosen = cast(RunState, None), TOOLS[tool]  # what follows looks at the call and the tool alone
        call = ToolCall(id="call-1", name=tool, arguments=arguments)
        return await Masking(Masker({})).wrap_tool(run, call, chosen, lambda call: chosen.run(call.arguments, runtime))


@pytest.fixture
async def bench(workspace: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    """Tools on the test's working directory."""
    backend = LocalBackend(
        workspace, workspace, extra=(Path("/dev"),), data=workspace / ".deepagents", environ=os.environ
    )
    (tmp_path / "data").mkdir()
    yield Bench(backend, Session(tmp_path / "data"))
    await backend.aclose()


Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def call(bench: Bench) -> Call:
    """Calls a tool by name."""
    return bench.call
