"""What is looked for before a file is searched stands in every line that matches."""

from __future__ import annotations

import re
import warnings

import pytest
from deepagent.agent.backends.sought import sought_in
from hypothesis import given, settings
from hypothesis import strategies as st

PIECES = (
    *("a", "b", "K", "s", "i", "é", " ", "x", "{", "}", "1"),
    *("\\.", "\\(", "\\d", "\\b", "\\w+", "\\x41", "\\1", "\\\\", "\\{", "[ab]", "[^x]", "[]a]", "[\\]b]", "[|]"),
    *(".", "^", "$", "*", "+", "?", "{2}", "{0,1}", "{,2}", "*?", "+?", "(", ")", "|", "(?:", "(?i:", "(?=", "(?!"),
)


@settings(max_examples=150, deadline=None)
@given(
    pattern=st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join),
    line=st.text(alphabet="abKksSiIıſK éÉx{}1.\\(]|A", max_size=12),
    literal=st.booleans(),
    ignore_case=st.booleans(),
)
def test_a_line_that_matches_has_it(pattern: str, line: str, literal: bool, ignore_case: bool) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expression = re.compile(re.escape(pattern) if literal else pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError):
        return
    if expression.search(line):
        assert sought_in(pattern, literal=literal, ignore_case=ignore_case).within(line.encode())


@pytest.mark.parametrize(
    ("pattern", "sought"),
    [
        ("needle", b"needle"),
        (r"def \w+\(self\)", b"(self)"),
        (r"^import os$", b"import os"),
        ("colou?r", b"colo"),
        ("a|b", b""),
        ("(ab)?cd", b""),
        (r"\x41bc", b""),
        ("[abc]def", b"def"),
        ("ab{2}c", b"a"),
        ("é+ü", "ü".encode()),
    ],
)
def test_what_is_sought(pattern: str, sought: bytes) -> None:
    assert sought_in(pattern, literal=False, ignore_case=False).data == sought


def test_what_is_sought_whatever_the_case() -> None:
    assert sought_in("NEEDLE Sink ABC", literal=True, ignore_case=True).data == b"needle "
    assert sought_in("NEEDLE", literal=True, ignore_case=True).within(b"a Needle")
