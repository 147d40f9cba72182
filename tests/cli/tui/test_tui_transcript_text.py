"""Outside text is shown, never obeyed: what becomes of it, its cutting and its wrapping by cells."""

from __future__ import annotations

import unicodedata

import pytest
from deepagent.cli.tui.lines import wrapped
from deepagent.cli.tui.text import cut, one_line, safe, spread, visible
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from transcript_host import HOSTILE, MARKUP, WIDE

ANY = st.text(st.characters(categories=["L", "N", "P", "S", "Z", "C"], codec=None))


@given(ANY)
def test_nothing_that_a_terminal_acts_on_is_left(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert not any(unicodedata.category(c) == "Cc" for c in shown if c not in "\n\t")


def test_what_is_harmless_stays_as_it_is() -> None:
    text = f"a\tb\n{MARKUP}\n{WIDE}"
    assert visible(text) == text
    assert safe(text).plain == text


def test_markup_is_no_markup() -> None:
    content = safe("[bold]x[/bold]", "italic")
    assert content.plain == "[bold]x[/bold]"
    assert [str(span.style) for span in content.spans] == ["italic"]


def test_controls_can_be_seen() -> None:
    assert visible("\x1b[?1049l\x07\x9b\ud800\u200b") == "␛[?1049l␇\ufffd\ufffd\ufffd"
    assert visible("a\r\nb\u2028c") == "a\nb\nc"


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n  b\r\n\tc ") == "a b c"
    assert "\n" not in one_line(HOSTILE + "\n" + HOSTILE, 40)


@given(st.text(), st.integers(0, 30))
def test_a_cut_line_fits(text: str, width: int) -> None:
    line = visible(text).replace("\n", " ").replace("\t", " ")
    assert cell_len(cut(line, width)) <= width


def test_a_cut_is_marked() -> None:
    assert cut("日本語日本語", 6) == "日本…"
    assert cut("日本語", 6) == "日本語"
    assert cut("e\u0301" * 9, 4) == "e\u0301" * 3 + "…"


def test_the_right_side_is_cut_last() -> None:
    assert spread(safe("a long left side"), "1.0 s", 12).plain == "a lon… 1.0 s"
    assert spread(safe("left"), "1.0 s", 12).plain == "left   1.0 s"


@given(st.text(st.characters(exclude_categories=["C", "M", "Zl", "Zp"])), st.integers(2, 20), st.booleans())
def test_wrapping_loses_nothing_and_fits(text: str, width: int, words: bool) -> None:
    parts = [text[start:end] for start, end in wrapped(text, width, words=words)]
    assert "".join(parts) == text
    assert all(cell_len(part.rstrip()) <= width or (words and not part[:width].strip()) for part in parts)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("hello world this is it", ["hello ", "world ", "this is ", "it"]),
        ("aa xxxxxxxxxxxxx bb", ["aa ", "xxxxxxxx", "xxxxx bb"]),
        ("日本語 テキスト", ["日本語 ", "テキスト"]),
    ],
)
def test_lines_break_between_words(text: str, lines: list[str]) -> None:
    assert [text[start:end] for start, end in wrapped(text, 8, words=True)] == lines
