"""The script of a `ScriptedModel`: its format, read from a YAML or JSON file and checked. docs/scripted-model.md
describes it for people; playing it is the business of `agent.model.scripted`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError, with_config

from ...context.entries import Usage
from ...context.messages import StopReason
from ..errors import ConfigError

_STRICT = ConfigDict(extra="forbid")
Place = Literal["request", "system", "messages", "first", "last", "tools"]
"""Where an expectation looks: everything, the system prompt, all messages, the first or last one, the tools' names."""
FailureKind = Literal[
    "auth",
    "unknown_model",
    "out_of_credit",
    "bad_request",
    "overflow",
    "rate_limit",
    "server",
    "connection",
    "broken_stream",
]


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a request must look like; every condition that is given must hold."""

    where: Place = "request"
    contains: str | tuple[str, ...] = ()
    not_contains: str | tuple[str, ...] = ()
    matches: str | tuple[str, ...] = ()
    """Regular expressions, each to be found somewhere (`.` matches line ends, `^` and `$` match at lines)."""
    tokens_below: int | None = None
    """The whole request's size, one token for each four bytes of UTF-8."""
    tokens_above: int | None = None


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error in place of an answer."""

    kind: FailureKind
    message: str = ""
    status: int | None = None
    retry_after: float | None = None
    """Seconds."""
    window: int | None = None
    """Tokens; only for `overflow`."""
    times: int | None = None
    """How many attempts fail before the step's answer is given; None: all of them."""
    after: int = 0
    """How many deltas of the answer come before the error."""


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A tool call of an answer."""

    name: str
    arguments: dict[str, JsonValue] | str = field(default_factory=dict[str, JsonValue])
    """An object; or text, read as a model's own writing is, so that broken JSON can be played."""
    id: str | None = None
    """None: made of the step's position, the same on each replay."""


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer of the model."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop: StopReason | None = None
    """None: `tool_calls` where there are calls, else `end`."""
    usage: Usage | Literal["estimate"] | None = None
    """What the model reports; `estimate`: one token for each four bytes; None: the script's `usage`."""
    error: Failure | None = None
    delay: float = 0
    """Seconds before the first delta."""
    pace: float = 0
    """Seconds before each further delta."""
    expect: tuple[Expectation, ...] = ()
    repeat: int = 1
    """For how many positions in a row this step stands."""


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Steps for the requests that meet `when`, such as those of one sub-agent."""

    when: tuple[Expectation, ...]
    steps: tuple[Step, ...]


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole script."""

    steps: tuple[Step, ...] = ()
    """Answers to requests of purpose `turn`, by `ModelRequest.position`."""
    summaries: tuple[str | Step, ...] = ()
    """Answers to requests of purpose `summary`, by position; after the last one a canned summary."""
    branches: tuple[Branch, ...] = ()
    """Looked at in order before `steps`."""
    usage: Literal["estimate"] | None = None
    """What steps report that say nothing of their own."""


@cache
def _adapter() -> TypeAdapter[Script]:
    return TypeAdapter(Script)


def script_of(data: Mapping[str, object], *, source: str = "script") -> Script:
    """The script in `data`. Raises `ConfigError`, naming `source` and the place, where it is not one."""
    try:
        return _adapter().validate_python(data)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(str(p) for p in e['loc']) or 'script'}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"{source}: {wrong}") from error


def load_script(path: Path) -> Script:
    """The script in the file `path`. Raises `ConfigError` where it cannot be read or is not one."""
    try:
        text = path.read_text("utf-8")
        data: object = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)  # YAML splits \ud83d\ude00
    except OSError as error:
        raise ConfigError(f"The script {path} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"The script {path} is neither YAML nor JSON: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"The script {path} must be a mapping with `steps`")
    return script_of(data, source=str(path))  # pyright: ignore[reportUnknownArgumentType]  # validated there


def strings(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """One string or several, as several."""
    return (value,) if isinstance(value, str) else value


def step_at(steps: tuple[Step, ...], position: int) -> Step | None:
    """The step that stands at `position`, repeats counted, or None after the last one."""
    for step in steps:
        if position < step.repeat:
            return step
        position -= step.repeat
    return None
