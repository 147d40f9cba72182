"""Reading rules, and what they match."""

from __future__ import annotations

import pytest
from deepagent.agent.approvals.guard import program
from deepagent.agent.approvals.rules import parse_rule, path_matches, rule_text
from deepagent.agent.errors import ConfigError
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "text", ["", "(", "execute(", "execute()", "execute)x", "a b", "execute(ls) x", "*", "ex*(ls)"]
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ConfigError, match="is no rule"):
        parse_rule(text)


def test_rules() -> None:
    assert (parse_rule("execute").tool, parse_rule("execute").pattern) == ("execute", None)
    assert parse_rule("execute(*)").pattern is None
    assert parse_rule(" execute(a (b) c) ").pattern == "a (b) c"
    assert parse_rule(r"execute(a \* b)").exact
    assert not parse_rule("execute(a * b)").exact


@given(st.text(alphabet="a*\\ ()'", min_size=1))
def test_a_rule_for_a_subject_means_that_subject(subject: str) -> None:
    rule = parse_rule(rule_text("write_file", subject))
    if subject == "*":
        assert rule.exact
    assert rule.pattern == subject
    assert path_matches(rule, subject)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a", True),
        ("src/**", "src/.x/.y", True),
        ("src/**", "src", False),
        ("src/", "src/a/b", True),
        ("./src/a", "src/a", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/.c.py", True),
        ("*.py", "a/b.py", False),
        ("a?c", "abc", False),
        ("a[b]c", "abc", False),
        ("a.c", "abc", False),
        ("**", "/outside", False),
        ("/out/**", "/out/a", True),
        ("a\nb", "a\nb", True),
    ],
)
def test_path_patterns(pattern: str, path: str, fits: bool) -> None:
    assert path_matches(parse_rule(f"write_file({pattern})"), path) == fits


def test_a_broad_match_reaches_outside() -> None:
    rule = parse_rule("write_file(**/.env)")
    assert path_matches(rule, "/elsewhere/.env", broad=True)
    assert not path_matches(rule, "/elsewhere/.env")


@pytest.mark.parametrize(
    ("word", "name"),
    [("python3.11", "python"), ("/usr/bin/find", "find"), ("FIND", "find"), ("./x", "x"), ("7z", "7z"), ("12", "12")],
)
def test_names_of_programs(word: str, name: str) -> None:
    assert program(word) == name
