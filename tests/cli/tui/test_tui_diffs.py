"""Diffs: numbers, what changed within a line, bounds, and that they look alike wherever they stand."""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import Any

import pytest
from deepagent.cli.tui.diffs import diff_rows, patch_rows
from deepagent.cli.tui.line_diff import COMPARED, hunks, words
from deepagent.cli.tui.lines import Lines
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tui_stage import call, git, on_screen, read, write

pytestmark = pytest.mark.usefixtures("workspace")
LINES = st.lists(st.sampled_from(["a", "b b", "", "日本", "x(1)"]), max_size=12)


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("return total + 1", "return total + 2", "1", "2"),
        ("def f(a):", "def f(a, b):", "", ", b"),
        ("x = old_name", "x = new_name", "old_name", "new_name"),
        ("one two three four", "one 2 3 four", "two three", "2 3"),
        ("    same", "        same", "    ", "        "),
        ("nothing in common", "quite another line()", "", ""),
        ("", "new", "", ""),
        ("変わった 言葉 です", "変わった 文字 です", "言葉", "文字"),
        ("a" * 3_000, "a" * 2_999 + "b", "", ""),
        ("x, " * 150 + "1", "x, " * 150 + "2", "1", "2"),
    ],
)
def test_words_that_changed_are_marked(old: str, new: str, before: str, after: str) -> None:
    was, now = words(old, new)
    assert ("|".join(old[a:b] for a, b in was), "|".join(new[a:b] for a, b in now)) == (before, after)


@given(LINES, LINES, st.integers(0, 3))
def test_a_diff_turns_the_old_text_into_the_new_one(old: list[str], new: list[str], context: int) -> None:
    found = hunks(old, new, first=1, context=context)
    was: dict[int, str] = {}
    now: dict[int, str] = {}
    for line in (line for hunk in found for line in hunk):
        assert line.sign == " " or line.old is None or line.new is None
        was |= {line.old: line.text} if line.old else {}
        now |= {line.new: line.text} if line.new else {}
    assert all(old[number - 1] == text for number, text in was.items())
    assert all(new[number - 1] == text for number, text in now.items())
    plain = [text for number, text in enumerate(old, 1) if number not in was]
    assert plain == [text for number, text in enumerate(new, 1) if number not in now]
    assert bool(found) == (old != new)


def test_one_change_in_a_long_file_is_found_at_once() -> None:
    old = [f"line {number}" for number in range(100_000)]
    began = time.process_time()
    (hunk,) = hunks(old, [*old[:50_000], "new", *old[50_001:]], first=1, context=3)
    assert time.process_time() - began < 1
    assert [(line.sign, line.old, line.new) for line in hunk[3:5]] == [("-", 50_001, None), ("+", None, 50_001)]
    assert len(hunk) == 8
    assert len(hunks([*"ab"] * COMPARED, [*"cd"] * COMPARED)[0]) == 4 * COMPARED


def gutter(rows: list[Any]) -> list[str]:
    """The rows with their numbers."""
    return [row.first + row.text for row in rows]


def test_numbers_come_from_the_result_or_from_the_file() -> None:
    edit = {"path": "a", "old_string": "b\nc", "new_string": "b\nX"}
    assert gutter(diff_rows("edit_file", edit, lines=[9])) == [" 9  9   b", "10    - c", "   10 + X"]
    assert gutter(diff_rows("edit_file", edit, before="a\nb\nc\nd\n")) == [
        "1 1   a",
        "2 2   b",
        "3   - c",
        "  3 + X",
        "4 4   d",
    ]
    assert gutter(diff_rows("edit_file", edit, before="other")) == ["  b", "- c", "+ X"]
    assert gutter(diff_rows("write_file", {"path": "a", "content": "1\n2\n"}, before="1\n3\n")) == [
        "1 1   1",
        "2   - 3",
        "  2 + 2",
    ]
    two: dict[str, JsonValue] = {
        "edits": [{"old_string": "1", "new_string": "one"}, {"old_string": "9", "new_string": "nine"}]
    }
    assert gutter(diff_rows("edit_file", two, lines=[1, 9])) == [
        "1   - 1",
        "  1 + one",
        "      …",
        "9   - 9",
        "  9 + nine",
    ]


def test_marks_stand_where_the_text_is_shown() -> None:
    (old, new) = diff_rows("edit_file", {"old_string": "\tx = \x1b[1m1", "new_string": "\tx = \x1b[1m2"})
    for row, word in ((old, "1"), (new, "2")):
        assert row.text.endswith(f"x = ␛[1m{word}")
        assert [row.text[span.start : span.end] for span in row.spans] == [f"1m{word}"]


def test_a_patch_has_numbers_and_marks() -> None:
    lines = (
        "--- a/x\n+++ b/x\n@@ -8,3 +8,3 @@ def f():\n same\n-old word\n+new word\n\\ No newline at end of file".split(
            "\n"
        )
    )
    rows = patch_rows(lines)
    assert gutter(rows) == [*lines[:3], "8 8  same", "9   -old word", "  9 +new word", lines[-1]]
    assert [row.text[s.start : s.end] for row in rows for s in row.spans] == ["old", "new"]
    for one, other in zip_longest(rows, lines):
        assert one.text == other


async def test_a_question_shows_what_would_change_in_the_file() -> None:
    write("a.py", "one\ntwo\nthree\nfour\n")
    edits = call("edit_file", path="a.py", old_string="three", new_string="3")
    async with on_screen({"calls": [edits]}, {"text": "done"}) as screen:
        await screen.say("go")
        await screen.sees("2 2   two", "3   - three", "  3 + 3", "4 4   four")
        await screen.decide("y")
        await screen.settle()
        assert read("a.py") == "one\ntwo\n3\nfour\n"
        await screen.press("ctrl+o")
        await screen.sees("3   - three", "  3 + 3")


async def test_the_work_tree_looks_alike() -> None:
    git("init", "-q")
    write("a", "1\n2\n日本 words\n")
    git("add", ".")
    git("commit", "-qm", "a")
    write("a", "1\n2\n日本 things\n")
    async with on_screen() as screen:
        await screen.say("/diff")
        await screen.sees("3   -日本 words", "  3 +日本 things")
        rows = screen.app.screen.query_one(Lines)._rows
        assert [row.text[span.start : span.end] for row in rows for span in row.spans] == ["words", "things"]
