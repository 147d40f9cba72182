"""Tools: plain async functions whose schema comes from their signature and docstring.

What a tool does with files is the backend's, whether it may run is the approvals', how its result is kept small is
the context layer's business.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_type_hints, overload

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from ..context.messages import Image
from ..context.stored import Stored
from .model.types import ToolSchema
from .runtime import ToolRuntime
from .sandbox.bounds import Refusal

Access = Literal["none", "read", "write", "execute"]
"""What a tool touches: nothing outside the session, files to read, files to change, or anything (a shell)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A tool's answer, in three voices."""

    text: str
    """For the model."""
    summary: str = ""
    """For the person: one line, such as `412 lines`."""
    log: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """For the log: facts such as exit code, path, lines changed."""
    is_error: bool = False
    images: tuple[Image, ...] = ()
    """What a model that sees gets besides."""
    refused: tuple[Refusal, ...] = ()
    """What the sandbox kept a command from."""
    stored: Stored | None = None
    """The longer part of the answer, in a file: the model gets a preview of it before `text`."""


Function = Callable[..., Awaitable[ToolResult | str]]
Run = Callable[[Mapping[str, JsonValue], ToolRuntime[Any]], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that a model can call."""

    schema: ToolSchema
    run: Run
    """Takes the raw arguments; wrong ones are answered, never raised."""
    access: Access
    subject: str | None = None
    """The argument that approval rules look at (`path`, `command`), if any."""
    beside: bool = False
    """Calls of it may run beside others though it is none that only reads."""

    @property
    def parallel(self) -> bool:
        """Neighbouring calls run together."""
        return self.beside or self.access == "read"

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return self.schema.name


class _Schema(GenerateJsonSchema):
    """JSON schema without titles: they only cost tokens."""

    def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
        return cast(dict[str, Any], _without_titles(cast(JsonValue, super().generate(schema, mode))))


def _without_titles(node: JsonValue) -> JsonValue:
    match node:
        case dict():
            return {k: _without_titles(v) for k, v in node.items() if not (k == "title" and isinstance(v, str))}
        case list():
            return [_without_titles(v) for v in node]
        case _:
            return node


_ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n {8,}.+)*)", re.MULTILINE)


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description of a tool and of each argument, from a docstring with an `Args:` section at its end."""
    text = inspect.getdoc(function) or ""
    body, _, args = text.partition("\nArgs:\n")
    described = {m[1]: " ".join(m[2].split()) for m in _ARGUMENT.finditer(args)}
    return body.strip(), described


def _runtime_parameter(hints: Mapping[str, Any]) -> str | None:
    for name, hint in hints.items():
        if name != "return" and (hint is ToolRuntime or getattr(hint, "__origin__", None) is ToolRuntime):
            return name
    return None


def _explain(error: ValidationError, name: str, schema: ToolSchema) -> str:
    """What is wrong with the arguments and what is expected, so that the model can correct itself."""
    wrong = "; ".join(f"{'.'.join(str(p) for p in e['loc']) or 'arguments'}: {e['msg']}" for e in error.errors())
    expected = TypeAdapter(dict[str, JsonValue]).dump_json(dict(schema.parameters)).decode()
    return f"{name} was not run. {wrong}. It takes: {expected}"


@overload
def tool(function: Function, /) -> Tool: ...
@overload
def tool(
    *, access: Access = "none", subject: str | None = None, name: str | None = None
) -> Callable[[Function], Tool]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    access: Access = "none",
    subject: str | None = None,
    name: str | None = None,
) -> Tool | Callable[[Function], Tool]:
    """Makes a tool of an async function.

    Its name, docstring (with an `Args:` section) and type hints become the schema; a parameter of type `ToolRuntime`
    is filled by the agent and hidden from the model. A plain string as result is the text for the model. Raises
    `TypeError` for a function that is not async.
    """
    if function is None:
        return lambda f: _make(f, access, subject, name)
    return _make(function, access, subject, name)


def _make(function: Function, access: Access, subject: str | None, name: str | None) -> Tool:
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"a tool is an async function; {function.__name__} is none")
    hints = get_type_hints(function, include_extras=True)
    hidden = _runtime_parameter(hints)
    description, described = _docstring(function)
    fields: dict[str, Any] = {}
    for key, parameter in inspect.signature(function).parameters.items():
        if key != hidden:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[key] = (hints.get(key, Any), Field(default, description=described.get(key)))
    tool_name = name or function.__name__
    model = create_model(tool_name, __config__=ConfigDict(extra="forbid"), **fields)
    schema = ToolSchema(
        name=tool_name, description=description, parameters=model.model_json_schema(schema_generator=_Schema)
    )

    async def run(arguments: Mapping[str, JsonValue], runtime: ToolRuntime[Any]) -> ToolResult:
        try:
            valid = model.model_validate(dict(arguments))
        except ValidationError as error:
            return ToolResult(text=_explain(error, tool_name, schema), summary="wrong arguments", is_error=True)
        values = {key: getattr(valid, key) for key in fields}
        result = cast(object, await function(**values, **({hidden: runtime} if hidden else {})))
        if not isinstance(result, str | ToolResult):
            raise TypeError(f"it returned {type(result).__name__}; a tool returns a text or a ToolResult")
        return ToolResult(text=result) if isinstance(result, str) else result

    return Tool(schema=schema, run=run, access=access, subject=subject)
