"""The first word of the command line."""

from __future__ import annotations

import pytest
from deepagent.cli.words import COMMANDS, nearest_command


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("demmo", "demo"),
        ("dmo", "demo"),
        ("dome", None),
        ("dmeo", "demo"),
        ("auht", "auth"),
        ("session", "sessions"),
        ("xconfig", "config"),
        ("skill", "skills"),
        ("memori", "memory"),
    ],
)
def test_one_typo_away(word: str, meant: str | None) -> None:
    assert nearest_command(word) == meant


@pytest.mark.parametrize("word", ["", "-p", "--demo", "fix", "demo please", "explain", "d", *COMMANDS])
def test_no_typo(word: str) -> None:
    assert nearest_command(word) is None
