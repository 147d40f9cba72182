"""Offloading: a text too long for the window goes to a file as it is, and a pointer takes its place.

The file is on the disk before the message that names it joins the log. When the file cannot be written the text is
cut to its preview in the view only if the caller can live with that; here the error is raised.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from .budget import Budget
from .messages import Content, Pointer, Text, ToolMessage, UserMessage, clean
from .preview import PREVIEW_TOKENS, preview, preview_ends
from .storage import AppendFile, Storage
from .stored import Stored
from .stubs import old_pointer_text, pointer_text
from .tokens import Counter

_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_LENGTH = 40
_LEAST_PREVIEW = 60
"""Tokens of a preview where many results share a step."""
POINTER_TOKENS = 120
"""Tokens of a pointer around its preview, at most: mark, size, path and hint. A shorter text gains nothing."""


PAGING = frozenset({"read_file"})
"""Tools that keep within the limit by themselves and say how to read on. They judge size without the tokenizer, so
they get twice the room: a page that went to a file would only be read again."""


def _limit(message: ToolMessage, budget: Budget) -> int:
    """Tokens that one result may have."""
    limit = budget.limit_of(message.tool)
    return limit * 2 if message.tool in PAGING else limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloader:
    """Writes long texts of one session to files."""

    storage: Storage
    session: str
    counter: Counter
    can_read: Callable[[], bool]
    """Whether the model has a tool to read files with; the hint names only tools that are there."""
    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    """The next number in each folder, once one was found: looking again takes long where there are many."""

    def results(self, messages: Sequence[ToolMessage], budget: Budget) -> tuple[ToolMessage, ...]:
        """The results of one step, each and all together within the budget's limits; the largest go first.

        Raises `StorageError`. Previews are shorter where there are many results.
        """
        tokens = max(_LEAST_PREVIEW, min(PREVIEW_TOKENS, budget.step_limit // (2 * max(1, len(messages)))))
        kept = [self._result(message, _limit(message, budget), tokens) for message in messages]
        while self._size(kept) > budget.step_limit:
            largest = max(range(len(kept)), key=lambda at: self._whole(kept[at].content))
            if self._whole(kept[largest].content) <= tokens + POINTER_TOKENS:
                break
            kept[largest] = self._result(kept[largest], 0, tokens)
        return tuple(kept)

    def user(self, message: UserMessage, budget: Budget) -> UserMessage:
        """The message, its text in a file if it is over the limit. Raises `StorageError`."""
        content = self._reduced(message.content, budget.user_limit, PREVIEW_TOKENS, self._user_pointer)
        return replace(message, content=content)

    def pointer(self, text: str, tool: str, tokens: int = PREVIEW_TOKENS) -> Pointer:
        """Writes a tool's result to `large_tool_results/` and returns what stands for it. Raises `StorageError`.

        `tokens` is what its preview has at most.
        """
        return self._write(text, self._results, _numbered(tool), f"The result of {_fit(tool)}", tokens)

    def _user_pointer(self, text: str) -> Pointer:
        folder = f"conversation_history/{self.session}"
        return self._write(text, folder, lambda number: f"user-{number}.md", "The user's message", PREVIEW_TOKENS)

    def begin(self, tool: str) -> tuple[str, AppendFile]:
        """A new file for a result that comes piece by piece: its path for a model, and the file. From any thread.

        Raises `StorageError`.
        """
        name = self._create(self._results, _numbered(tool), b"")
        return self.storage.shown(name), self.storage.open(name)

    def stored(self, text: Stored, tool: str) -> Pointer:
        """What stands for a long result that went to its file while it came."""
        about = self.counter.about(text.head) * text.bytes // max(1, len(text.head.encode()))
        pointer = Pointer(
            path=text.path, sha256=text.sha256, bytes=text.bytes, lines=text.lines, tokens=about, shown=""
        )
        seen = preview_ends(text.head, text.tail, text.lines, count=self.counter.text)
        return replace(pointer, shown=self._shown(pointer, f"The result of {_fit(tool)}", seen))

    @property
    def _results(self) -> str:
        return f"large_tool_results/{self.session}"

    def _result(self, message: ToolMessage, limit: int, tokens: int) -> ToolMessage:
        write = partial(self.pointer, tool=message.tool, tokens=tokens)
        return replace(message, content=self._reduced(message.content, limit, tokens, write))

    def _reduced(
        self, content: tuple[Content, ...], limit: int, tokens: int, write: Callable[[str], Pointer]
    ) -> tuple[Content, ...]:
        """Blocks whose texts are together within `limit`, or each too short for a pointer to be shorter."""
        blocks = list(content)
        while self._whole(blocks) > limit:
            at = max(range(len(blocks)), key=lambda at: self._whole(blocks[at : at + 1]))
            block = blocks[at]
            if not isinstance(block, Text) or self.counter.about(block.text) <= tokens + POINTER_TOKENS:
                break
            blocks[at] = write(block.text)
        return tuple(blocks)

    def _whole(self, blocks: Sequence[Content]) -> int:
        """Tokens of the blocks that are no pointers."""
        return sum(self.counter.about(block.text) for block in blocks if isinstance(block, Text))

    def _size(self, messages: Sequence[ToolMessage]) -> int:
        """Tokens of the messages in the view."""
        return sum(self.counter.block(block) for message in messages for block in message.content)

    def _write(self, text: str, folder: str, name: Callable[[int], str], what: str, tokens: int) -> Pointer:
        text = clean(text)
        data = text.encode()
        path = self.storage.shown(self._create(folder, name, data))
        pointer = as_pointer(text, path=path, tokens=self.counter.about(text), shown="")
        return replace(pointer, shown=self._shown(pointer, what, preview(text, tokens=tokens, count=self.counter.text)))

    def _shown(self, pointer: Pointer, what: str, preview: str) -> str:
        return pointer_text(
            what=what,
            path=pointer.path,
            size=pointer.bytes,
            lines=pointer.lines,
            tokens=pointer.tokens,
            preview=preview,
            hint=self._hint(),
        )

    def shorter(self, pointer: Pointer, tool: str) -> Pointer:
        """A pointer without its preview."""
        return replace(pointer, shown=old_pointer_text(tool, pointer.path, pointer.lines, pointer.tokens))

    def _create(self, folder: str, name: Callable[[int], str], data: bytes) -> str:
        """Writes a new file under `name` of the next number that is free, and returns its full name."""
        number = self._numbers.get(folder) or len(self.storage.names(folder)) + 1
        while True:
            full = f"{folder}/{name(number)}"
            try:
                self.storage.create(full, data)
            except FileExistsError:
                number += 1
                continue
            self._numbers[folder] = number + 1
            return full

    def _hint(self) -> str:
        if not self.can_read():
            return "What is worth knowing of it:"
        return "Read on with read_file (offset, limit) at this path. Its edges and errors:"


def _fit(tool: str) -> str:
    """A tool's name that can be part of a file's."""
    return _UNFIT.sub("_", tool)[:_NAME_LENGTH] or "tool"


def _numbered(tool: str) -> Callable[[int], str]:
    return lambda number: f"{number}-{_fit(tool)}.txt"


def as_pointer(text: str, *, path: str, tokens: int, shown: str) -> Pointer:
    """Stands for `text`, which has `tokens` tokens and lies at `path`."""
    data = clean(text).encode()
    return Pointer(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
        lines=text.count("\n") + (not text.endswith("\n")),
        tokens=tokens,
        shown=shown,
    )
