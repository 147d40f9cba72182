"""Fits arguments to a tool's JSON schema: what can be meant in one way only becomes what the schema wants.

Knows the part of JSON schema in which tools are described (types, properties, items, enums, unions, references inside
the schema). Bounds and patterns are the tool's own business; it checks its arguments anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import JsonValue

Schema = Mapping[str, JsonValue]

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,15})")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?")
_TRUTHS = {"true": True, "false": False}
_DEEPEST = 20
"""References that are followed one inside the other."""


class Unfit(ValueError):
    """The value is not what the schema wants, or could be meant in more than one way."""


def fitted(arguments: Mapping[str, JsonValue], parameters: Schema) -> dict[str, JsonValue]:
    """All of `arguments` as the schema `parameters` wants them. Raises `Unfit`, also for unknown and missing names."""
    return _object(arguments, parameters, parameters, 0)


def coerced(arguments: Mapping[str, JsonValue], parameters: Schema) -> dict[str, JsonValue]:
    """The same argument by argument: one that does not fit stays as it is, for the tool to say what is wrong."""
    properties, required = _properties(parameters), _required(parameters)
    kept: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        schema = properties.get(name)
        try:
            kept[name] = value if schema is None else _fit(value, schema, parameters, 0)
        except Unfit:
            if value is not None or name in required:
                kept[name] = value  # else: "no value" for what may be left out is leaving it out
    return kept


def missing(arguments: Mapping[str, JsonValue], parameters: Schema) -> bool:
    """Whether an argument is not there that must be."""
    return any(name not in arguments for name in _required(parameters))


def _fit(value: JsonValue, schema: JsonValue, root: Schema, depth: int) -> JsonValue:
    if depth > _DEEPEST:
        raise Unfit("too deep")
    if not isinstance(schema, dict):
        return value
    if isinstance(reference := schema.get("$ref"), str):
        return _fit(value, _referenced(reference, root), root, depth + 1)
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list):
        return _fit_one_of(value, options, root, depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        return _fit_one_of(value, [{**schema, "type": one} for one in kind], root, depth)
    fit = _fit_type(value, kind, schema, root, depth)
    choices = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    if isinstance(choices, list) and fit not in choices:
        raise Unfit(f"{fit!r} is none of {choices}")
    return fit


def _fit_one_of(value: JsonValue, options: Sequence[JsonValue], root: Schema, depth: int) -> JsonValue:
    """The value as it is where an option takes it so, else the one thing that it can be made into."""
    found: list[JsonValue] = []
    for option in options:
        try:
            found.append(_fit(value, option, root, depth + 1))
        except Unfit:
            continue
    exact = [one for one in found if one == value and type(one) is type(value)]
    distinct = exact[:1] or [one for n, one in enumerate(found) if one not in found[:n]]
    if len(distinct) != 1:
        raise Unfit("it fits in no way, or in several")
    return distinct[0]


def _fit_type(value: JsonValue, kind: JsonValue, schema: Schema, root: Schema, depth: int) -> JsonValue:
    match kind, value:
        case "string", str():
            return value
        case "string", int() if not isinstance(value, bool):
            return str(value)
        case (("integer" | "number" | "boolean"), (bool() | int() | float() | str())):
            return _scalar(value, kind)
        case "null", None:
            return None
        case "array", (list() | str()):
            items = value if isinstance(value, list) else _read(value, list)
            return [_fit(item, schema.get("items"), root, depth + 1) for item in cast(list[JsonValue], items)]
        case "object", (dict() | str()):
            given = value if isinstance(value, dict) else _read(value, dict)
            return _object(cast(dict[str, JsonValue], given), schema, root, depth)
        case None, _:
            return value
        case _:
            raise Unfit(f"it is no {kind}")


def _scalar(value: bool | float | str, kind: str) -> JsonValue:
    match kind, value:
        case "boolean", bool():
            return value
        case "boolean", str() if value.lower() in _TRUTHS:
            return _TRUTHS[value.lower()]
        case (("integer" | "number"), int()) if not isinstance(value, bool):
            return value
        case "number", float():
            return value
        case "integer", float() if value.is_integer():
            return int(value)
        case "integer", str() if _INTEGER.fullmatch(value):
            return int(value)
        case "number", str() if _NUMBER.fullmatch(value):
            return cast(JsonValue, json.loads(value))
        case _:
            raise Unfit(f"it is no {kind}")


def _object(value: Mapping[str, JsonValue], schema: Schema, root: Schema, depth: int) -> dict[str, JsonValue]:
    properties, required = _properties(schema), _required(schema)
    fit: dict[str, JsonValue] = {}
    for name, item in value.items():
        if name in properties:
            try:
                fit[name] = _fit(item, properties[name], root, depth + 1)
            except Unfit:
                if item is not None or name in required:
                    raise
        elif not schema.get("additionalProperties", not properties):
            raise Unfit(f"{name} is unknown")
        else:
            fit[name] = item
    if missing(fit, schema):
        raise Unfit("something is missing")
    return fit


def _properties(schema: Schema) -> Mapping[str, JsonValue]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Schema) -> tuple[str, ...]:
    required = schema.get("required")
    return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()


def _referenced(reference: str, root: Schema) -> JsonValue:
    """What `#/a/b` names within `root`. Raises `Unfit`."""
    found: JsonValue = dict(root)
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(found, dict) or step not in found:
            raise Unfit(f"{reference} names nothing")
        found = found[step]
    return found


def _read(text: str, kind: type[list[JsonValue]] | type[dict[str, JsonValue]]) -> JsonValue:
    """A list or an object that came as JSON text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unfit("it is no JSON") from error
    if not isinstance(value, kind):
        raise Unfit("it is other JSON")
    return cast(JsonValue, value)
