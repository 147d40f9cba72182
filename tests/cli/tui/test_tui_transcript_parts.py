"""Answers in parts: nothing is lost, however the text comes in, and each part is Markdown by itself."""

from __future__ import annotations

import re

from deepagent.cli.tui.parts import PART, Piece, Splitter, parts_of
from hypothesis import given
from hypothesis import strategies as st

LINES = st.sampled_from(
    [
        "word " * 30 + "\n",
        "\n",
        "- item\n",
        "  more of it\n",
        "1. one\n",
        "```python\n",
        "```\n",
        "~~~~\n",
        "# head\n",
        "x = 1\n",
        "> q\n",
    ]
)
TEXTS = st.lists(LINES, min_size=1, max_size=400).map("".join)


def said(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


@given(TEXTS, st.integers(1, 97))
def test_what_comes_in_pieces_is_split_as_the_whole_is(text: str, size: int) -> None:
    splitter = Splitter()
    pieces = [piece for at in range(0, len(text), size) for piece in splitter.feed(text[at : at + size])]
    pieces += splitter.flush()
    whole = Splitter()
    expected = [*whole.feed(text), *whole.flush()]
    assert said(pieces) == said(expected) == text
    assert _parts(pieces) == _parts(expected)


def _parts(pieces: list[Piece]) -> list[str]:
    parts = [""]
    for piece in pieces:
        if piece.begins:
            parts.append("")
        parts[-1] += piece.text
    return parts


@given(TEXTS)
def test_parts_are_bounded(text: str) -> None:
    assert all(len(part) <= 5 * PART for _, part in parts_of(text))


def test_a_short_answer_is_one_part() -> None:
    assert parts_of("Hello.\n\nThere.") == [("block", "Hello.\n\nThere.")]


def test_a_part_begins_where_a_block_begins() -> None:
    text = ("word " * 40 + "\n\n") * 60
    parts = parts_of(text)
    assert len(parts) > 2
    assert all(begins == "block" and part.startswith("word") and part.endswith("\n\n") for begins, part in parts)


def test_long_code_is_closed_and_opened_again() -> None:
    lines = "".join(f"value_{number} = {number}\n" for number in range(1_000))
    parts = parts_of(f"See:\n\n````python\n{lines}````\n\nDone.")
    assert len(parts) > 3
    assert all(part.startswith("````python\n") and begins == "joined" for begins, part in parts[1:])
    assert all(part.endswith("\n````\n") for _, part in parts[:-1])
    code = [re.sub("````(python)?\n", "", part) for _, part in parts]
    assert "".join(code) == f"See:\n\n{lines}\nDone."


def test_a_long_list_goes_on_with_its_number() -> None:
    text = "".join(f"{number}. item\n   more of it\n" for number in range(1, 400))
    parts = parts_of(text)
    assert len(parts) > 1
    assert "".join(part for _, part in parts) == text
    assert all(re.match(r"\d+\. item", part) and begins == "joined" for begins, part in parts[1:])


def test_a_paragraph_without_end_is_broken_between_words() -> None:
    parts = parts_of("word " * 20_000)
    assert len(parts) > 3
    assert all(part.startswith("word ") and part.endswith("word ") for _, part in parts)
