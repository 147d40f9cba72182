"""Offloading: a text too long for the window goes to a file as it is, and a pointer takes its place.

The file is on the disk before the message that names it joins the log. When the file cannot be written the text is
cut to its preview in the view only if the caller can live with that; here the error is raised.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .budget import Budget
from .messages import Content, Pointer, Text, ToolMessage, UserMessage
from .preview import preview
from .storage import Storage
from .stubs import pointer_text
from .tokens import Counter

_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_LENGTH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloader:
    """Writes long texts of one session to files."""

    storage: Storage
    session: str
    counter: Counter
    can_read: Callable[[], bool]
    """Whether the model has a tool to read files with; the hint names only tools that are there."""

    def results(self, messages: Sequence[ToolMessage], budget: Budget) -> tuple[ToolMessage, ...]:
        """The results of one step, each and all together within the budget's limits; the largest go first."""
        kept = [self._limited(message, budget.result_limit) for message in messages]
        while self.counter.messages(kept) > budget.step_limit:
            largest = max(range(len(kept)), key=lambda at: _loose(kept[at], self.counter))
            if _loose(kept[largest], self.counter) <= self.counter.text(preview_of(kept[largest])):
                break
            kept[largest] = self._limited(kept[largest], 0)
        return tuple(kept)

    def user(self, message: UserMessage, budget: Budget) -> UserMessage:
        """The message, its text in a file if it is over the limit."""
        content = tuple(
            self._user_text(block) if _over(block, budget.user_limit, self.counter) else block
            for block in message.content
        )
        return replace(message, content=content)

    def _limited(self, message: ToolMessage, limit: int) -> ToolMessage:
        content = tuple(
            self.pointer(block.text, message.tool)
            if isinstance(block, Text) and _over(block, limit, self.counter)
            else block
            for block in message.content
        )
        return replace(message, content=content)

    def pointer(self, text: str, tool: str) -> Pointer:
        """Writes a tool's result to `large_tool_results/` and returns what stands for it. Raises `StorageError`."""
        name = _UNFIT.sub("_", tool)[:_NAME_LENGTH] or "tool"
        return self._write(text, f"large_tool_results/{self.session}", f"{name}.txt", f"The result of {name}")

    def _user_text(self, block: Content) -> Content:
        if not isinstance(block, Text):
            return block
        return self._write(block.text, f"conversation_history/{self.session}", "", "The user's message")

    def _write(self, text: str, folder: str, name: str, what: str) -> Pointer:
        data = text.encode("utf-8", "replace")
        path = self.storage.shown(self._create(folder, name, data))
        lines = text.count("\n") + (not text.endswith("\n"))
        tokens = self.counter.text(text)
        return Pointer(
            path=path,
            sha256=hashlib.sha256(data).hexdigest(),
            bytes=len(data),
            lines=lines,
            tokens=tokens,
            shown=pointer_text(
                what=what,
                path=path,
                size=len(data),
                lines=lines,
                tokens=tokens,
                preview=preview(text),
                hint=self._hint(),
            ),
        )

    def _create(self, folder: str, name: str, data: bytes) -> str:
        """The name of a new file: `<n>-<tool>.txt` or `user-<n>.md`, where n is the next number that is free."""
        number = len(self.storage.names(folder)) + 1
        while True:
            full = f"{folder}/{number}-{name}" if name else f"{folder}/user-{number}.md"
            try:
                self.storage.create(full, data)
            except FileExistsError:
                number += 1
                continue
            return full

    def _hint(self) -> str:
        if not self.can_read():
            return "What is worth knowing of it:"
        return "Read on with read_file (offset, limit), or search it with grep on this path. Its edges and errors:"


def preview_of(message: ToolMessage) -> str:
    """The preview of a result's text blocks."""
    return preview("\n".join(block.text for block in message.content if isinstance(block, Text)))


def _over(block: Content, limit: int, counter: Counter) -> bool:
    return isinstance(block, Text) and counter.text(block.text) > limit


def _loose(message: ToolMessage, counter: Counter) -> int:
    """Tokens of the result's blocks that are still whole."""
    return sum(counter.text(block.text) for block in message.content if isinstance(block, Text))
