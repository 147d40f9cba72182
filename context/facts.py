"""Facts of a session that the harness reads from the log: what was read, what was changed, what the last check said.

A model's summary may be wrong; these are not. Tools leave them in `ToolMessage.log` under the names below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from .messages import Message, ToolMessage, text_of

PATH, ADDED, REMOVED, COMMAND, EXIT_CODE = "path", "added", "removed", "command", "exit_code"
"""What tools write into `ToolMessage.log`: a path; lines added and removed in it; a command and its exit code."""
FIRST_LINE, LAST_LINE = "first_line", "last_line"
"""The first and the last line that a read shows, counted from 1."""
SUMMARY, SECONDS = "summary", "seconds"
"""What is noted there of every call: a line for people, and how long the tool ran."""

_CHECK = re.compile(
    r"\b(py\.?test|unittest|tox|nox|make|ninja|cmake|ctest|cargo|npm|pnpm|yarn|jest|vitest|go (test|build|vet)"
    r"|gradle\w*|mvn|tsc|eslint|ruff|mypy|(based)?pyright|flake8|rspec|phpunit|dotnet|bazel|test|check|lint|build)\b"
)
_ERROR = re.compile(r"^E\s|\b\w*(error|exception|failed|failure|panic|assert\w*)\b", re.IGNORECASE)
_LINE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What happened to a file, in lines."""

    path: str
    added: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The last test or build command."""

    command: str
    exit_code: int | None
    first_error: str
    """One line of its output, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the log says of the work."""

    read: tuple[str, ...]
    changed: tuple[Changed, ...]
    check: Check | None


def gather(messages: Iterable[Message]) -> Facts:
    """The facts of the messages, in the order in which they first appear."""
    read: dict[str, None] = {}
    changed: dict[str, Changed] = {}
    check: Check | None = None
    for message in messages:
        if not isinstance(message, ToolMessage):
            continue
        path = message.log.get(PATH)
        if isinstance(message.log.get(COMMAND), str):
            check = _check(message) or check  # a check that failed matters most
        elif message.is_error:
            continue
        elif isinstance(path, str) and ADDED in message.log:
            changed[path] = _sum(changed.get(path), path, message.log)
        elif isinstance(path, str):
            read[path] = None
    return Facts(read=tuple(read), changed=tuple(changed.values()), check=check)


def _sum(before: Changed | None, path: str, log: Mapping[str, JsonValue]) -> Changed:
    added, removed = _number(log.get(ADDED)), _number(log.get(REMOVED))
    if before is None:
        return Changed(path=path, added=added, removed=removed)
    return Changed(path=path, added=before.added + added, removed=before.removed + removed)


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _check(message: ToolMessage) -> Check | None:
    command = str(message.log[COMMAND])
    if not _CHECK.search(command):
        return None
    code = message.log.get(EXIT_CODE)
    lines = text_of(message).split("\n") if code != 0 else []
    error = next((line.strip()[:_LINE] for line in lines if _ERROR.search(line[:_LINE])), "")
    return Check(command=command[:_LINE], exit_code=code if isinstance(code, int) else None, first_error=error)
