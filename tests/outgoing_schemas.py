"""What providers refuse of the tools that a request names: OpenAI's list, and the schemas that Gemini takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

Schema = Mapping[str, Any]

_check: Callable[[Schema], None] = Draft202012Validator.check_schema  # pyright: ignore[reportUnknownMemberType]
_LONGEST = 1_024
"""Characters of a tool's description."""
_GEMINI = frozenset(
    "type format title description nullable enum items minItems maxItems properties required minProperties "
    "maxProperties minimum maximum minLength maxLength pattern example default anyOf propertyOrdering".split()
)
"""Fields of a schema that Gemini knows; it refuses any other."""
_GEMINI_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def a_list(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def an_object(value: Any) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def tool_problems(given: Any) -> Iterator[str]:
    """Why a list of tools in OpenAI's form would be refused; None is no list, which is fine."""
    if given is None:
        return
    tools = a_list(given)
    if not tools:
        yield "an empty list of tools"
    for tool in tools:
        if tool.keys() - {"cache_control"} != {"type", "function"} or tool["type"] != "function":
            yield "a tool that is no function"
            return
    yield from function_problems([tool["function"] for tool in tools], "parameters")


def function_problems(functions: list[Any], parameters: str) -> Iterator[str]:
    """Why functions would be refused; `parameters` is the field with the schema."""
    names = [str(function.get("name")) for function in functions]
    if len(set(names)) != len(names):
        yield f"two tools of one name: {names}"
    for name, function in zip(names, functions, strict=True):
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name):
            yield f"a tool of the name {name!r}"
        if len(function.get("description") or "") > _LONGEST:
            yield f"{name}: a description of more than {_LONGEST} characters"
        schema = an_object(function.get(parameters))
        if schema.get("type") != "object":
            yield f"{name}: parameters that are no object"
            continue
        yield from (f"{name}: {problem}" for problem in _schema_problems(json.dumps(schema)))


@cache
def _schema_problems(text: str) -> tuple[str, ...]:
    """Why a tool's schema would be refused by OpenAI or Anthropic."""
    return tuple(_problems_of(json.loads(text)))


def _problems_of(schema: Schema) -> Iterator[str]:
    try:
        _check(schema)
    except SchemaError as error:
        yield f"no JSON schema: {error.message}"
        return
    if top := schema.keys() & {"anyOf", "oneOf", "allOf", "enum", "not"}:
        yield f"{sorted(top)} at the top of a schema"
    for inner in _within(schema):
        if inner.get("type") == "array" and "items" not in inner:
            yield "a list whose items are not told of"
        if set(inner.get("required", ())) - inner.get("properties", {}).keys():
            yield f"required, but not told of: {inner['required']}"
        reference = inner.get("$ref")
        if isinstance(reference, str) and not _leads(reference, schema):
            yield f"a reference to nothing: {reference}"


def _within(schema: Schema) -> Iterator[Schema]:
    """The schema and all that stand in it."""
    yield schema
    for key in ("properties", "$defs", "definitions"):
        for inner in schema.get(key, {}).values():
            yield from _within(inner)
    for key in ("items", "additionalProperties"):
        if inner := an_object(schema.get(key)):
            yield from _within(inner)
    for key in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(key, ()):
            yield from _within(inner)


def _leads(reference: str, root: Schema) -> bool:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = an_object(found).get(step)
    return found is not None


def gemini_schema_problems(schema: Schema, where: str) -> Iterator[str]:
    """Why Gemini would refuse a schema that stands in `parameters`."""
    if unknown := schema.keys() - _GEMINI:
        yield f"{where}: unknown to Gemini: {sorted(unknown)}"
    kind = str(schema.get("type", "")).lower()
    if kind not in _GEMINI_TYPES and "anyOf" not in schema:
        yield f"{where}: no type"
    if "enum" in schema and (kind != "string" or not all(isinstance(one, str) and one for one in schema["enum"])):
        yield f"{where}: choices that are no words: {schema['enum']}"
    properties = schema.get("properties", {})
    if set(schema.get("required", ())) - properties.keys():
        yield f"{where}: required, but not told of: {schema['required']}"
    if kind == "array" and "items" not in schema:
        yield f"{where}: a list whose items are not told of"
    for name, inner in properties.items():
        if not re.fullmatch(r"[a-zA-Z_]\w{0,63}", name, re.ASCII):
            yield f"{where}: a parameter of the name {name!r}"
        yield from gemini_schema_problems(inner, f"{where}.{name}")
    if "items" in schema:
        yield from gemini_schema_problems(schema["items"], f"{where}[]")
    for inner in schema.get("anyOf", ()):
        yield from gemini_schema_problems(inner, f"{where}|")
