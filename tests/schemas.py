"""The published schemas of the JSON output, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

_SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"


def check(name: str, value: object) -> None:
    """Fails unless `value` is what the schema `name` (`result` or `stream`) says."""
    schemas = {path.name: json.loads(path.read_text("utf-8")) for path in _SCHEMAS.glob("*.json")}
    make: Any = Registry
    registry = make().with_resources((n, Resource.from_contents(schema)) for n, schema in schemas.items())
    validator: Any = Draft202012Validator(schemas[f"{name}.schema.json"], registry=registry)
    validator.validate(value)
