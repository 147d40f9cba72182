"""Markdown as rows: every kind of block, nested, wrapped, and none that acts."""

from __future__ import annotations

from deepagent.cli.tui.blocks import markdown, rows_from
from rich.cells import cell_len
from transcript_host import DANGER, HOSTILE


def lines(text: str, width: int = 40) -> list[str]:
    return [(row.first + row.text).rstrip() for row in rows_from(markdown().parse(text), width)]


def styles(text: str) -> list[tuple[str, str]]:
    return [
        (row.text[span.start : span.end], str(span.style))
        for row in rows_from(markdown().parse(text), 40)
        for span in row.spans
    ]


def test_paragraphs_and_headings() -> None:
    assert lines("# One\ntwo\nthree  \nfour\n\nfive") == ["One", "", "two three", "four", "", "five"]


def test_inline_styles() -> None:
    assert styles("a *b* **c** ~~d~~ `e`") == [("b", "italic"), ("c", "bold"), ("d", "strike"), ("e", "$text-accent")]


def test_lists_nest() -> None:
    text = "- a\n  - b\n    1. c\n- d\n\n0. zero\n1. one"
    assert lines(text) == ["• a", "  ◦ b", "    1. c", "• d", "", "0. zero", "1. one"]


def test_a_list_of_lists() -> None:
    assert lines("1. - a\n   - b") == ["1. ◦ a", "   ◦ b"]


def test_quotes() -> None:
    assert lines("> a\n>\n> b\n> - c\n\nd") == ["▏ a", "▏", "▏ b", "▏", "▏ • c", "", "d"]


def test_code_keeps_its_spaces() -> None:
    assert lines("```\n  a\n\n\tb\n```") == ["   a", "", "     b"]
    assert ("def", "$text-accent") in styles("```python\ndef f(): pass\n```")
    assert lines("```no-such-language\ndef f(): pass\n```") == [" def f(): pass"]


def test_tables_have_columns() -> None:
    assert lines("|a|b|\n|-|-:|\n|1|22|\n|日本|3|") == ["a       b", "─────────", "1      22", "日本    3"]


def test_a_wide_table_is_wrapped_in_its_columns() -> None:
    text = f"|name|what|\n|-|-|\n|x|{'many words ' * 9}|\n|y|z|"
    shown = lines(text, 30)
    assert all(cell_len(line) <= 30 for line in shown)
    assert [line for line in shown if line.startswith(("x", "y"))] == ["x      many words many words", "y      z"]
    assert " ".join(" ".join(shown).split()).count("many words") == 9


def test_html_and_pictures_are_text() -> None:
    assert lines("List<String> <b>x</b>\n\n<script>alert(1)</script>") == [
        "List<String> <b>x</b>",
        "",
        "<script>alert(1)</script>",
    ]
    assert lines("![alt](http://e.x/p.png)") == ["!alt"]


def test_entities_do_not_bring_controls_back() -> None:
    assert lines("&#x202e;&#x9b;31m&amp;") == ["\ufffd\ufffd31m&"]


def test_hostile_text_in_every_place() -> None:
    code = f"```{HOSTILE}\n{HOSTILE}\n```"
    text = f"# {HOSTILE}\n\n- {HOSTILE}\n\n> {HOSTILE}\n\n`{HOSTILE}`\n\n{code}\n\n|{HOSTILE}|\n|-|\n|{HOSTILE}|"
    shown = "\n".join(lines(text, 500))
    assert shown.count("[/b] [=x,y]") == 7
    assert not set(DANGER) & set(shown)
