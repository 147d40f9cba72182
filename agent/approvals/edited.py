"""What a person changed in a call before it ran, in words for the model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff

from pydantic import JsonValue

_SHORT = 200
"""Characters of the longest value that is shown whole, before and after."""
_LONGEST = 4_000
"""Characters of the longest account of one argument."""


def changes(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> str:
    """A line or a diff for each argument that was changed, left out or added."""
    return "\n".join(_changes(before, after))


def _changes(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if name not in after:
            yield f"{name}: left out"
        elif name not in before:
            yield f"{name}: now {_cut(_json(new))}"
        elif old != new:
            yield _change(name, old, new)


def _change(name: str, old: JsonValue, new: JsonValue) -> str:
    if isinstance(old, str) and isinstance(new, str) and max(len(old), len(new)) > _SHORT:
        lines = unified_diff(old.splitlines(), new.splitlines(), "yours", "the user's", lineterm="", n=1)
        return _cut(f"{name}, as a diff:\n" + "\n".join(lines))
    return f"{name}: {_cut(_json(new))} instead of {_cut(_json(old))}"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} more characters)"
