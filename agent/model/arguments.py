"""Reads the arguments of a tool call as a provider wrote them; whether they fit the tool is the tool's business."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from ...context.messages import clean

_SHOWN = 200
"""Characters of unreadable arguments that an error quotes."""


def parse_arguments(name: str, raw: object) -> tuple[dict[str, JsonValue], str | None]:
    """The arguments of a call to `name`, and why they could not be read (then they are empty), or None.

    `raw` is JSON text or, with some servers, already an object. Nothing and blank text are an empty object.
    """
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, None
    value: object = raw
    if isinstance(raw, str):
        try:
            value = json.loads(clean(raw), parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            return {}, f"The arguments of {name or 'the call'} are no valid JSON ({error}): {_excerpt(raw)}"
    if not isinstance(value, Mapping):
        return {}, f"The arguments of {name or 'the call'} must be one JSON object, not: {_excerpt(raw)}"
    return cast(dict[str, JsonValue], _cleaned(cast(JsonValue, dict(cast(Mapping[str, JsonValue], value))))), None


def _no_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _excerpt(raw: object) -> str:
    text = raw if isinstance(raw, str) else repr(raw)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _cleaned(value: JsonValue) -> JsonValue:
    """`value` without lone surrogates, which escapes such as `\\ud800` smuggle into strings."""
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return {clean(key): _cleaned(item) for key, item in value.items()}
        case _:
            return value
