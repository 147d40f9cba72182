"""What a small window goes without: tools that it hardly gains from, and all but the first words about the others.

Only what models are told changes: every tool stays callable. The prompt's short form stands in its own files, behind
the condition `small` (`agent.prompt`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from ..context.budget import Budget
from .model.types import ToolSchema

_TINY_WINDOW = 8_192
_LEFT_OUT = frozenset({"compact_conversation", "jobs", "task"})
"""A small window fills up so soon that compaction comes by itself; and commands are rather waited for."""
_LEFT_OUT_OF_TINY = _LEFT_OUT | {"write_todos", "glob", "recall"}


def left_out(budget: Budget) -> frozenset[str]:
    """Names of the tools that models are not told of."""
    if not budget.small:
        return frozenset()
    return _LEFT_OUT_OF_TINY if budget.window.tokens <= _TINY_WINDOW else _LEFT_OUT


def shown(schemas: Iterable[ToolSchema], budget: Budget) -> tuple[ToolSchema, ...]:
    """The schemas as models are told of them."""
    if not budget.small:
        return tuple(schemas)
    absent = left_out(budget)
    return tuple(_brief(schema) for schema in schemas if schema.name not in absent)


def _brief(schema: ToolSchema) -> ToolSchema:
    """The first paragraph of the description; parameters with no words but those that are needed to fill them in."""
    description = schema.description.split("\n\n", 1)[0]
    parameters = {key: value for key, value in schema.parameters.items() if key != "additionalProperties"}
    properties = cast(Mapping[str, JsonValue], schema.parameters.get("properties", {}))
    if properties:
        parameters["properties"] = {name: _plain(value) for name, value in properties.items()}
    return replace(schema, description=description, parameters=parameters)


def _plain(parameter: JsonValue) -> JsonValue:
    """A parameter that may be left out says no more than its type."""
    if not isinstance(parameter, dict) or "default" not in parameter:
        return parameter
    return {key: value for key, value in parameter.items() if key not in ("default", "description")}
