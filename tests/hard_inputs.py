"""Rows of `docs/hard-inputs.md`, each beside the test that proves it.

```python
@hard_input("Files", "a CRLF file, one word edited", "only the bytes of that word change")
async def test_…
```

Also as the mark of one case: `pytest.param(…, marks=hard_input(…))`. The page is made from these rows, whichever tests
run: `WRITE=docs pytest tests/test_hard_inputs.py`; so the arguments have to be plain strings. `pytest -m hard_input`
runs the proofs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

AREAS = ("Files", "Search", "Commands", "Approvals", "Sandbox", "Git and undo", "Trust", "Tool calls")
"""The sections of the page, in order."""
_HEAD = """# Hard inputs

What comes of input that is made to go wrong. Each row is proved by the test that it names; the page is made from the
tests (`WRITE=docs .venv/bin/pytest tests/test_hard_inputs.py`) and compared with them in every run. Tests marked *long*
run with `make test-long`, all others with `make test`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardInput:
    """A row, and where its test is."""

    area: str
    given: str
    outcome: str
    test: str
    """`tests/…/test_x.py::test_y`."""
    long: bool = False

    def __str__(self) -> str:
        proof = f"`{self.test.rpartition('/')[2]}`{' *long*' if self.long else ''}"
        return f"| {_cell(self.given)} | {_cell(self.outcome)} | {proof} |"


def hard_input(area: str, given: str, outcome: str) -> pytest.MarkDecorator:
    """Marks the test that proves a row, or the case of a test."""
    assert area in AREAS, area
    return pytest.mark.hard_input(area, given, outcome)


def rows(tests: Path) -> tuple[HardInput, ...]:
    """All rows in the sources of the tests, by area, then by file and line. Raises `ValueError` for what is no row."""
    found = [row for path in sorted(tests.rglob("test_*.py")) for row in _rows_of(path, tests)]
    return tuple(sorted(found, key=lambda row: AREAS.index(row.area)))


def page(found: tuple[HardInput, ...]) -> str:
    """The page."""
    return "\n".join(
        (_HEAD, *(_section(area, mine) for area in AREAS if (mine := [r for r in found if r.area == area])))
    )


def _section(area: str, found: list[HardInput]) -> str:
    return "\n".join((f"## {area}\n", "| given | outcome | proved by |", "|---|---|---|", *map(str, found), ""))


def _rows_of(path: Path, tests: Path) -> Iterator[HardInput]:
    tree = ast.parse(path.read_bytes())
    name = path.relative_to(tests.parent).as_posix()
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    said = 0
    for function in functions:
        for mark in (mark for decorator in function.decorator_list for mark in _marks(decorator)):
            area, given, outcome = _texts(mark, name)
            long = any(ast.unparse(decorator) == "pytest.mark.long" for decorator in function.decorator_list)
            yield HardInput(area=area, given=given, outcome=outcome, test=f"{name}::{function.name}", long=long)
            said += 1
    if said < len(_marks(tree)):
        raise ValueError(f"{name}: a hard_input stands at no test function of the module")


def _marks(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "hard_input"]


def _texts(mark: ast.Call, name: str) -> tuple[str, str, str]:
    texts = [node.value for node in mark.args if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if len(texts) != 3 or texts[0] not in AREAS or any("\n" in text for text in texts):
        raise ValueError(f"{name}:{mark.lineno}: hard_input takes an area and two lines, as plain strings")
    return texts[0], texts[1], texts[2]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
