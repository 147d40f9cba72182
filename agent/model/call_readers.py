"""Reads one call, or a list of calls, from the place in a text where it begins: as JSON, in tags, or in Python.

Strictly: what could be read in two ways, or holds more than a call, is none. What stands around the calls is told by
`agent.model.call_forms`.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import JsonValue

from .arguments import parse_arguments

Call = tuple[str, Mapping[str, JsonValue]]
"""A name and arguments."""
Read = tuple[list[Call], int]
"""Calls, and the place behind them."""
Reader = Callable[[str, int, str], Read]
"""Reads a text from a place on; the third is the call's name where it stood before that. Raises `NoCall`."""


class NoCall(ValueError):
    """The text is something else."""


_NAMES = frozenset({"name", "tool", "tool_name", "function", "action"})
_ARGUMENTS = frozenset({"arguments", "parameters", "args", "input", "action_input", "tool_input"})
_BESIDE = {"id": str, "type": str, "tool_call_id": str, "index": int}
"""What may stand in a call besides."""


def read_calls(text: str, place: int, _: str = "") -> Read:
    """JSON: one call that names its tool, or a list of such."""
    value, end = _json(text, place)
    calls = [_call(one) for one in (cast(list[object], value) if isinstance(value, list) else [value])]
    if not calls:
        raise NoCall
    return calls, end


def _call(value: object) -> Call:
    if isinstance(value, dict) and isinstance(inner := cast(dict[str, object], value).get("function"), dict):
        if set(cast(dict[str, object], value)) - {"function", "id", "type", "index"}:
            raise NoCall
        value = cast(object, inner)
    if not isinstance(value, dict):
        raise NoCall
    fields = cast(dict[str, object], value)
    names, arguments = fields.keys() & _NAMES, fields.keys() & _ARGUMENTS
    beside = fields.keys() - names - arguments
    if len(names) != 1 or len(arguments) != 1 or not all(isinstance(fields[k], _BESIDE.get(k, ())) for k in beside):
        raise NoCall
    name = fields[next(iter(names))]
    if not isinstance(name, str):
        raise NoCall
    return name, _checked(fields[next(iter(arguments))])


def read_arguments(text: str, place: int, name: str) -> Read:
    """JSON: the arguments alone."""
    value, end = _json(text, place)
    return [(name, _checked(value))], end


def _checked(value: object) -> Mapping[str, JsonValue]:
    """Arguments that are an object, or the JSON text of one."""
    if not isinstance(value, (dict, str)) or value == "":
        raise NoCall
    given, error = parse_arguments("", cast(object, value))
    if error:
        raise NoCall
    return given


def _json(text: str, place: int) -> tuple[object, int]:
    """The JSON object or list at `place`, and the place behind it. Names that stand twice are no one reading."""
    if text[place : place + 1] not in ("{", "["):
        raise NoCall
    try:
        return json.JSONDecoder(object_pairs_hook=_once).raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        raise NoCall from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise NoCall
    return dict(pairs)


def pairs(pattern: str) -> Reader:
    """A reader of names and texts in tags. `pattern`: one of them (groups `key`, `value`, and for numbers `plain`)."""
    pair = re.compile(pattern, re.DOTALL)

    def read(text: str, place: int, name: str) -> Read:
        given: dict[str, JsonValue] = {}
        while match := pair.match(text, place):
            groups = match.groupdict()
            if groups["key"] in given:
                raise NoCall
            given[groups["key"]] = groups["value"] if groups["value"] is not None else groups["plain"]
            place = match.end()
        return [(name, given)], place

    return read


def read_python(text: str, *, alone: bool) -> list[Call]:
    """Python: a list of calls with named arguments that are plain values; `alone`: or one call without a list."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            tree = ast.parse(text.strip(), mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List) else [tree] if alone else []
        calls = [_python_call(node) for node in nodes]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise NoCall from error
    if not calls:
        raise NoCall
    return calls


def _python_call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call) or node.args or not isinstance(node.func, (ast.Name, ast.Attribute)):
        raise NoCall
    if any(keyword.arg is None for keyword in node.keywords):
        raise NoCall
    values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    return ast.unparse(node.func), _checked(json.loads(json.dumps(values, allow_nan=False)))
