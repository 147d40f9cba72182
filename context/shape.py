"""The shape of a structured text in one line: what a JSON document is made of, or the columns of a table.

A preview shows edges and errors; of a document whose lines all look alike, its shape says more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import JsonValue

LONGEST = 8_000_000
"""Characters of a document that is read for its shape: that takes some hundredths of a second."""
_KEYS = 12
"""Keys that are named of one object."""
_DEPTH = 3
_LINE = 400
"""Characters of the line at most."""


def shape_of(text: str) -> str:
    """`JSON: list of 312 objects {id: number, name: text, …}`, or empty where the text is no such document."""
    start = text[:64].lstrip()
    if not start.startswith(("{", "[")) or len(text) > LONGEST:
        return ""
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return _lines_shape(text)
    return f"JSON: {_shape(value, _DEPTH)}"[:_LINE]


def _lines_shape(text: str) -> str:
    """The shape of JSON Lines: that of the first, and how many there are."""
    first, _, rest = text.lstrip().partition("\n")
    try:
        value: JsonValue = json.loads(first)
        json.loads(rest.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return ""
    return f"JSON Lines: {text.strip().count(chr(10)) + 1:,} of {_shape(value, _DEPTH - 1)}"[:_LINE]


def _shape(value: JsonValue, depth: int) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return _list(cast(Sequence[JsonValue], value), depth)
        case _:
            return _object(cast(Mapping[str, JsonValue], value), depth)


def _list(values: Sequence[JsonValue], depth: int) -> str:
    if not values:
        return "empty list"
    return f"list of {len(values):,}" if depth <= 0 else f"list of {len(values):,} × {_shape(values[0], depth - 1)}"


def _object(value: Mapping[str, JsonValue], depth: int) -> str:
    if depth <= 0 or not value:
        return f"object with {len(value):,} key{'' if len(value) == 1 else 's'}"
    named = [f"{key[:40]}: {_shape(inner, depth - 1)}" for key, inner in list(value.items())[:_KEYS]]
    more = f", … {len(value) - _KEYS:,} more keys" if len(value) > _KEYS else ""
    return f"{{{', '.join(named)}{more}}}"
