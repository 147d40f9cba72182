"""How tools answer: failures of the backend become results, counts become words."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec

from ..backends.paths import printable
from ..backends.protocol import BackendError
from ..tool import ToolResult

P = ParamSpec("P")
_LIKE_OURS = re.compile(r"\(|\[|\d+(?:@\d+)?[→-]|next: |Nothing found|No file ")
"""How lines of ours begin in lists of names."""
_SENTENCE = re.compile(r"[.:]\s|\n")


def answering(function: Callable[P, Awaitable[ToolResult]]) -> Callable[P, Awaitable[ToolResult]]:
    """A tool's function whose `BackendError` is an answer to the model."""

    @wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> ToolResult:
        try:
            return await function(*args, **kwargs)
        except BackendError as error:
            return failure(str(error))

    return run


def failure(text: str, summary: str = "") -> ToolResult:
    """The answer that nothing was done; `summary` for people is the first sentence unless it is given."""
    return ToolResult(text=text, summary=summary or _SENTENCE.split(text, 1)[0][:100], is_error=True)


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 line`, `2 lines`, `1,200 lines`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def name_line(path: str) -> str:
    """A path as a line of a list, which cannot be taken for a line of ours."""
    text = printable(path)
    return f"./{text}" if _LIKE_OURS.match(text) else text
