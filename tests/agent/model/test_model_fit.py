"""Arguments become what a schema wants where they can be meant in one way only."""

from __future__ import annotations

from typing import Any

import pytest
from deepagent.agent.model.fit import Unfit, coerced, fitted
from deepagent.agent.tools import builtin_tools
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {"Item": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "default": 5},
        "share": {"type": "number"},
        "all": {"type": "boolean", "default": False},
        "after": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "both": {"type": ["boolean", "integer"]},
        "mode": {"enum": ["a", "b"], "type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "free": {"type": "object"},
        "any": {},
    },
}
GOOD: list[tuple[str, Any, Any]] = [
    *(("path", 5, "5"), ("limit", "12", 12), ("limit", "-3", -3), ("limit", 4.0, 4), ("share", "0.5", 0.5)),
    *(("share", "3", 3), ("all", "true", True), ("all", "False", False), ("after", "7", 7), ("after", None, None)),
    *(("either", "7", "7"), ("either", 7, 7), ("mode", "a", "a"), ("names", '["a", "b"]', ["a", "b"])),
    *(("names", ["a", 1], ["a", "1"]), ("items", '[{"n": "1"}]', [{"n": 1}]), ("free", '{"x": [1]}', {"x": [1]})),
    *(("any", "12", "12"), ("any", [None], [None]), ("both", True, True), ("both", "3", 3)),
]
BAD: list[tuple[str, Any]] = [
    *(("path", True), ("path", 1.5), ("path", None), ("path", ["a"]), ("path", {"a": 1}), ("limit", "5 lines")),
    *(("limit", 5.5), ("limit", "007"), ("limit", "1e3"), ("limit", True), ("limit", ""), ("share", "nan")),
    *(("all", "yes"), ("all", 1), ("mode", "c"), ("names", "a, b"), ("names", '{"a": 1}'), ("names", '["a"')),
    *(("items", [{"n": "x"}]), ("items", [{}]), ("free", "[1]"), ("after", "soon"), ("names", "[" * 100_000)),
]


@pytest.mark.parametrize(("name", "value", "expected"), GOOD)
def test_one_reading(name: str, value: Any, expected: Any) -> None:
    arguments = {"path": "p", name: value}
    assert fitted(arguments, PARAMETERS) == coerced(arguments, PARAMETERS) == {"path": "p", name: expected}
    assert type(fitted(arguments, PARAMETERS)[name]) is type(expected)


@pytest.mark.parametrize(("name", "value"), BAD)
def test_no_reading_or_several(name: str, value: Any) -> None:
    arguments = {"path": "p", name: value}
    with pytest.raises(Unfit):
        fitted(arguments, PARAMETERS)
    assert coerced(arguments, PARAMETERS) == arguments, "the tool says what is wrong with it"


def test_null_for_what_may_be_left_out() -> None:
    assert fitted({"path": "p", "limit": None, "names": None}, PARAMETERS) == {"path": "p"}
    assert coerced({"path": "p", "limit": None}, PARAMETERS) == {"path": "p"}


def test_names() -> None:
    with pytest.raises(Unfit):
        fitted({}, PARAMETERS)
    with pytest.raises(Unfit):
        fitted({"path": "p", "colour": "red"}, PARAMETERS)
    assert coerced({"path": 3, "colour": "red"}, PARAMETERS) == {"path": "3", "colour": "red"}
    assert fitted({"x": 1}, {"type": "object"}) == {"x": 1}
    assert fitted({"x": 1}, {"type": "object", "properties": {"y": {}}, "additionalProperties": True}) == {"x": 1}


@pytest.mark.parametrize("schema", [{"$ref": "#/$defs/A"}, {"$ref": "#/nowhere"}])
def test_references_that_lead_nowhere(schema: Any) -> None:
    parameters: dict[str, Any] = {"properties": {"a": schema}, "$defs": {"A": {"$ref": "#/$defs/A"}}}
    with pytest.raises(Unfit):
        fitted({"a": 1}, parameters)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "b", "5", "true", "[1]", '{"n": 1}', "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["n", "x"]), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
VALID = Draft202012Validator(PARAMETERS)


@given(st.dictionaries(st.sampled_from([*PARAMETERS["properties"], "colour"]), VALUES, max_size=4))
def test_what_fits_is_valid_and_what_is_valid_stays(arguments: dict[str, Any]) -> None:
    validator: Any = VALID
    try:
        fit = fitted(arguments, PARAMETERS)
    except Unfit:
        assert not validator.is_valid(arguments)
        return
    assert validator.is_valid(fit)
    if validator.is_valid(arguments):
        assert fit == arguments == coerced(arguments, PARAMETERS)
    assert fitted(fit, PARAMETERS) == fit


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_our_own_schemas_are_understood(tool: Any) -> None:
    """Each example of an argument that the tool's own schema takes stays what it is."""
    examples: dict[str, Any] = {"string": "x", "integer": 3, "boolean": True, "number": 0.5, "array": [], "null": None}
    for name, schema in tool.schema.parameters.get("properties", {}).items():
        kinds = [schema.get("type"), *(one.get("type") for one in schema.get("anyOf", ()))]
        for kind in kinds:
            if kind in examples and "enum" not in schema:
                assert coerced({name: examples[kind]}, tool.schema.parameters) == {name: examples[kind]}
