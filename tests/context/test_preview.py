"""What of a long text is shown: its edges and errors, and how much is not shown."""

from __future__ import annotations

import base64
import json
import random
import re

import pytest
from context_samples import any_texts
from deepagent.context.messages import clean
from deepagent.context.preview import PREVIEW_TOKENS, preview
from deepagent.context.shape import shape_of
from deepagent.context.tokens import Counter, estimate
from hypothesis import given, settings
from hypothesis import strategies as st


def show(text: str) -> str:
    return preview(text, count=lambda shown: len(shown) // 4)


def test_edges_and_what_lies_between_is_said() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 101))
    assert show(text).split("\n") == [
        *(f"{n}→line {n}" for n in range(1, 6)),
        "… 90 lines not shown",
        *(f"{n}→line {n}" for n in range(96, 101)),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: cannot find symbol",
        "E       assert 1 == 2",
        "ValueError: bad",
        "Traceback (most recent call last):",
        "FAILED tests/test_x.py::test_y",
        "thread 'main' panicked, fatal: stop",
        "Segmentation fault: segfault",
        "java.lang.NullPointerException: null",
        "undefined reference to `f'",
    ],
)
def test_error_lines_in_the_middle_are_shown(line: str) -> None:
    text = "\n".join(["plain words"] * 400 + [line] + ["plain words"] * 300)
    shown = show(text)
    assert f"401→{line}" in shown
    assert "… 395 lines not shown" in shown
    assert "… 295 lines not shown" in shown


def test_of_many_errors_the_last_are_shown() -> None:
    text = "\n".join(f"error {number}" if 50 < number < 900 else "plain" for number in range(1_000))
    assert re.findall(r"\d+→error (\d+)", show(text)) == ["896", "897", "898", "899"]


def test_errors_at_the_edge_do_not_hide_those_between() -> None:
    lines = ["plain"] * 500 + ["error in the middle"] + ["plain"] * 400 + ["error at the end"] * 5
    assert "501→error in the middle" in show("\n".join(lines))


def test_one_long_line_says_how_much_is_left_out() -> None:
    shown = show("x" * 5_000_000)
    assert shown.startswith("1→xxx")
    assert "characters not shown" in shown
    left = int(re.findall(r"… ([\d,]+) characters", shown)[0].replace(",", ""))
    assert shown.count("x") + left == 5_000_000
    assert shown.count("x") <= 1_000


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(random.Random(1).randbytes(90_000)).decode(),
        "\n".join(base64.b64encode(random.Random(n).randbytes(90)).decode() for n in range(300)),
        "错误" * 50_000,
        "\n".join("错误发生在这里" * 40 for _ in range(200)),
        "\n".join(f"error {n} " + "wide " * 400 for n in range(200)),
        "".join(f"line {n}\n" for n in range(10_000)),
        " " * 100_000,
    ],
)
@pytest.mark.parametrize("tokens", [60, PREVIEW_TOKENS])
def test_a_preview_has_at_most_its_tokens(tables: Counter, text: str, tokens: int) -> None:
    shown = preview(text, tokens=tokens, count=tables.text)
    assert tables.text(shown) <= max(tokens, 90)
    assert "not shown" in shown


def test_short_lines_leave_their_room_to_long_ones() -> None:
    shown = show("\n".join(["a", "b", "c", "d" * 700, "e", "f"]))
    assert "d" * 700 in shown


@settings(max_examples=150, deadline=None)
@given(st.lists(any_texts.map(clean), max_size=40).map("\n".join))
def test_each_line_is_shown_in_order_or_counted_as_left_out(text: str) -> None:
    lines = text.removesuffix("\n").split("\n") if text else []
    shown = preview(text, count=len)
    numbers = [int(number) for number in re.findall(r"^(\d+)→", shown, re.MULTILINE)]
    skipped = [int(number) for number in re.findall(r"^… (\d+) lines not shown$", shown, re.MULTILINE)]
    assert numbers == sorted(set(numbers)) or any("→" in line or "…" in line for line in lines)
    assert len(numbers) + sum(skipped) >= len(lines)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (
            json.dumps([{"id": 1, "name": "x", "tags": ["a"]}] * 312),
            "JSON: list of 312 × {id: number, name: text, tags: list of 1 × text}",
        ),
        (json.dumps({"a": {"b": {"c": {"d": 1}}}, "e": None}), "JSON: {a: {b: {c: object with 1 key}}, e: null}"),
        (
            "\n".join(json.dumps({"at": n, "ok": True}) for n in range(500)),
            "JSON Lines: 500 of {at: number, ok: true or false}",
        ),
        ("[INFO] no json\n" * 500, ""),
        ("{broken", ""),
        ("[" * 100_000, ""),
    ],
)
def test_the_shape_of_a_document(text: str, shape: str) -> None:
    assert shape_of(text) == shape
    shown = preview(text, count=estimate)
    assert shown.startswith(shape)
    assert estimate(shown) <= PREVIEW_TOKENS


def test_a_shape_leaves_room_for_the_edges() -> None:
    text = json.dumps([{f"key number {n}": n for n in range(40)}] * 500, indent=1)
    shown = preview(text, tokens=200, count=estimate)
    assert shown.startswith("JSON: list of 500")
    assert "lines not shown" in shown
    assert estimate(shown) <= 200
