"""Passages: the texts of a message, one by one, as recall searches and reads them.

A passage is one block of a message, or one text of a call's arguments; an offloaded text counts as its file has it.
Which files they come from is told in `context.recall_sources`; what is done with them, in `context.recall`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import JsonValue

from .facts import PATH
from .messages import AssistantMessage, Content, Image, Message, Reasoning, Text, ToolCall, ToolMessage, UserMessage

Role = Literal["user", "harness", "assistant", "tool"]
Kind = Literal["text", "reasoning", "argument", "result"]
ROLES: tuple[Role, ...] = ("user", "harness", "assistant", "tool")

RECALL_TOOL = "recall"
"""The tool whose own calls and results no search finds unless it is asked for them."""
_FILE_ARGUMENTS = ("path", "file_path", "file", "filename")
_OFFLOADED = re.compile(r"(?:^|/)((?:large_tool_results|conversation_history)/[^/]+/[^/]+)$")

ReadFile = Callable[[str], str | None]
"""The text of a file of ours by its name in the storage; None where it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One text of a message."""

    message: str
    part: int
    """Its number among the texts of the message, from 1."""
    name: str
    """`text`, `reasoning`, `result`, `error`, or the argument's name: `content`, `todos.0.text`."""
    kind: Kind
    role: Role
    tool: str
    """The tool that was called or that answered; empty for talk."""
    file: str
    """The file that the call is about, as the model named it; empty where there is none."""
    time: str
    text: str


def passages_of(message: Message, read: ReadFile, files: dict[str, str]) -> tuple[Passage, ...]:
    """The texts of a message in order, empty ones included, so that their numbers stay the same for ever.

    `files` has the files that calls are about by the calls' ids; it is added to.
    """
    match message:
        case UserMessage(content=content, synthetic=synthetic):
            found = (_Found("text", "text", _content(one, read)) for one in content)
            role: Role = "harness" if synthetic else "user"
        case AssistantMessage():
            found, role = _answer(message, files), "assistant"
        case ToolMessage():
            named = message.log.get(PATH)
            file = named if isinstance(named, str) else files.get(message.call_id, "")
            about = {"tool": message.tool, "file": file}
            found = (_Found("result", "result", _content(one, read), **about) for one in message.content)
            role = "tool"
    return tuple(
        Passage(
            message=message.id,
            part=number,
            name=one.name,
            kind=one.kind,
            role=role,
            tool=one.tool,
            file=one.file,
            time=message.time,
            text=one.text,
        )
        for number, one in enumerate(found, 1)
    )


@dataclass(frozen=True, slots=True)
class _Found:
    kind: Kind
    name: str
    text: str
    tool: str = ""
    file: str = ""


def _content(content: Content, read: ReadFile) -> str:
    """The whole text of a block; what the view shows of it where its file is gone."""
    if isinstance(content, Text):
        return content.text
    if isinstance(content, Image):
        return content.shown
    name = offload_name(content.path)
    text = read(name) if name else None
    return content.shown if text is None else text


def offload_name(path: str) -> str | None:
    """The storage's name of an offloaded text from its path as a model sees it."""
    found = _OFFLOADED.search(path)
    return found[1] if found else None


def _answer(message: AssistantMessage, files: dict[str, str]) -> Iterator[_Found]:
    for part in message.content:
        match part:
            case Text(text=text):
                yield _Found("text", "text", text)
            case Reasoning(text=text):
                yield _Found("reasoning", "reasoning", text)
            case ToolCall():
                yield from _call(part, files)


def _call(call: ToolCall, files: dict[str, str]) -> Iterator[_Found]:
    paths = (call.arguments.get(name) for name in _FILE_ARGUMENTS)
    file = files[call.id] = next((path for path in paths if isinstance(path, str)), "")
    for name, text in _leaves("", dict(call.arguments)):
        yield _Found("argument", name, text, call.name, file)
    if call.error is not None:
        yield _Found("argument", "error", call.error, call.name, file)


def _leaves(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """Each text inside an argument, and each other value as JSON, by the way that leads to it."""
    match value:
        case str():
            yield name, value
        case dict() | list() if value:
            items = cast(dict[str, JsonValue], value).items() if isinstance(value, dict) else enumerate(value)
            for key, inner in items:
                yield from _leaves(f"{name}.{key}" if name else str(key), inner)
        case _:
            yield name, json.dumps(value)
