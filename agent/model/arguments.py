"""Reads the arguments of a tool call as a provider wrote them; whether they fit the tool is the tool's business."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import cast

from pydantic import JsonValue

from ...context.messages import clean

_DEEPEST = 100
"""Levels of nesting; the log's serializer takes some 250."""
_SHOWN = 200
"""Characters of unreadable arguments that an error quotes."""


def parse_arguments(name: str, raw: object) -> tuple[dict[str, JsonValue], str | None]:
    """The arguments of a call to `name`, and why they could not be read (then they are empty), or None.

    `raw` is JSON text or, with some servers, already an object. Nothing and blank text are an empty object.
    """
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, None
    try:
        value: object = json.loads(clean(raw), parse_constant=_no_constant) if isinstance(raw, str) else raw
        if isinstance(value, Mapping):
            return {clean(k): _cleaned(v, 1) for k, v in cast(Mapping[str, JsonValue], value).items()}, None
    except (ValueError, RecursionError) as error:
        return {}, f"The arguments of {name or 'the call'} are no valid JSON ({error}): {_excerpt(raw)}"
    return {}, f"The arguments of {name or 'the call'} must be one JSON object, not: {_excerpt(raw)}"


def _no_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _excerpt(raw: object) -> str:
    text = raw if isinstance(raw, str) else repr(raw)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _cleaned(value: JsonValue, depth: int) -> JsonValue:
    """`value` without lone surrogates, which escapes such as `\\ud800` smuggle into strings.

    Raises `ValueError` for what can be read and not be written again: too deep a nesting, numbers beyond all bounds.
    """
    if depth > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
    match value:
        case str():
            return clean(value)
        case float() if not isfinite(value):
            raise ValueError("a number is too large")
        case list():
            return [_cleaned(item, depth + 1) for item in value]
        case dict():
            return {clean(key): _cleaned(item, depth + 1) for key, item in value.items()}
        case _:
            return value
