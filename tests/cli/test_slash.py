"""Slash commands as data: each name leads to one command, and an exact name comes first."""

from __future__ import annotations

import pytest
from deepagent.cli.slash import SLASH, Slash, complete_slash, parse_slash

NAMES = [(name, slash) for slash in SLASH for name in (slash.name, *slash.aliases)]


def test_each_name_is_there_once() -> None:
    names = [name for name, _ in NAMES]
    assert len(names) == len(set(names))
    assert all(name == name.casefold().strip() and "/" not in name for name in names)


def test_commands_that_are_promised_are_there() -> None:
    promised = """help compact compact_conversation context clear model login resume sessions skills memory mode diff
        copy export quit"""
    assert set(promised.split()) <= {name for name, _ in NAMES}
    assert all(slash.help and slash.help == slash.help.strip() for slash in SLASH)


@pytest.mark.parametrize(("name", "slash"), NAMES)
def test_exact_name_is_parsed_and_completed_first(name: str, slash: Slash) -> None:
    assert parse_slash(f"/{name}") == (slash, "")
    assert parse_slash(f"  /{name}   some  words ") == (slash, "some  words")
    assert complete_slash(f"/{name}")[0] == slash
    assert complete_slash(name)[0] == slash


@pytest.mark.parametrize(
    "text", ["", "/", "help", "/hel", "/helpme", "/HELP", "/usr/bin", "a /help", "/help\nme", "//help"]
)
def test_what_names_no_command_is_none(text: str) -> None:
    assert parse_slash(text) is None


def test_nothing_typed_offers_everything_in_order() -> None:
    assert complete_slash("/") == SLASH


def test_beginnings_come_before_scattered_letters() -> None:
    assert [slash.name for slash in complete_slash("/mod")] == ["model", "mode"]
    assert [slash.name for slash in complete_slash("/MODE")] == ["mode", "model"]
    assert [slash.name for slash in complete_slash("/exi")] == ["quit"]
    assert [slash.name for slash in complete_slash("/s")][:2] == ["sessions", "skills"]
    assert complete_slash("/zzz") == ()
