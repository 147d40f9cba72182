"""What a tool may ask for while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ..context.entries import Todo
from ..context.messages import Image
from ..context.recall_query import Mode
from ..context.recall_text import Answer
from .backends.output import Sink
from .backends.protocol import Backend
from .sandbox.bounds import USUAL, Grant

Context = TypeVar("Context")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallAsk:
    """What is to be recalled: something to search for, or an id to read. Empty filters let everything through."""

    query: str = ""
    id: str = ""
    lines: str = ""
    mode: Mode = "words"
    role: str = ""
    tool: str = ""
    file: str = ""
    everywhere: bool = False
    """In all sessions of the project."""


class SessionServices(Protocol):
    """What the session does for the tools that are about the session itself."""

    def write_todos(self, items: tuple[Todo, ...]) -> None:
        """Makes `items` the plan."""
        ...

    async def compact(self, focus: str | None) -> str:
        """Compacts if the gate allows it; the text says what came of it."""
        ...

    @property
    def sees(self) -> bool:
        """The model is shown images."""
        ...

    def keep_image(self, data: bytes, shown: str) -> Image:
        """Puts an image beside the log; `shown` stands for it in words. Raises `StorageError`, or `ValueError` if
        it is none that models take."""
        ...

    def open_result(self, tool: str) -> Sink:
        """A file for a long result of `tool` that comes piece by piece. From any thread. Raises `StorageError`."""
        ...

    async def recall(self, ask: RecallAsk, tokens: int) -> Answer:
        """Searches or reads back what was said, in at most `tokens`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRuntime(Generic[Context]):
    """Handed to each tool that names a parameter of this type; the model never sees it."""

    context: Context
    """The caller's own per-run data (user id, keys); never written to disk, inherited by sub-agents."""
    backend: Backend
    session: SessionServices
    call_id: str
    result_limit: int
    """Tokens that a result may have before it is offloaded: tools that page keep below it."""
    on_output: Callable[[bytes], None]
    """Takes output while it comes, for display."""
    grant: Grant = USUAL
    """How this call is confined, where not as usual."""
