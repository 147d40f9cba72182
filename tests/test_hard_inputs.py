"""The page of hard inputs says what the tests prove."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hard_inputs import AREAS, page, rows

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "hard-inputs.md"


def test_the_page_is_what_the_tests_say() -> None:
    made = page(rows(TESTS))
    if os.environ.get("WRITE") == "docs":
        PAGE.write_text(made, "utf-8")
    assert PAGE.read_text("utf-8") == made, "WRITE=docs pytest tests/test_hard_inputs.py makes it anew"


def test_each_area_has_rows_and_none_stands_twice() -> None:
    found = rows(TESTS)
    assert {row.area for row in found} == set(AREAS)
    assert [row for row, times in Counter((row.area, row.given) for row in found).items() if times > 1] == []


@pytest.mark.parametrize(
    ("source", "row"),
    [
        ('@hard_input("Files", "a|b", "c")\ndef test_a(): ...\n', "| a\\|b | c | `test_x.py::test_a` |"),
        (
            '@pytest.mark.long\n@hard_input("Files", "a", "b")\ndef test_a(): ...\n',
            "| a | b | `test_x.py::test_a` *long* |",
        ),
        (
            '@p([param(1, marks=hard_input("Search", "a", "b"))])\nasync def test_a(): ...\n',
            "| a | b | `test_x.py::test_a` |",
        ),
    ],
)
def test_where_a_row_may_stand(source: str, row: str, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(source)
    assert [str(found) for found in rows(tmp_path)] == [row]


@pytest.mark.parametrize(
    "source",
    [
        '@hard_input("Nowhere", "a", "b")\ndef test_a(): ...\n',
        '@hard_input("Files", name, "b")\ndef test_a(): ...\n',
        '@hard_input("Files", "a")\ndef test_a(): ...\n',
        'CASES = [hard_input("Files", "a", "b")]\n',
    ],
)
def test_what_cannot_be_read_is_no_row(source: str, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(source)
    with pytest.raises(ValueError, match=r"test_x\.py"):
        rows(tmp_path)
