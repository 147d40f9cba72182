"""The page about the screen names every key and every command as the program does."""

from __future__ import annotations

from pathlib import Path

from deepagent.cli.slash import SLASH
from deepagent.cli.tui.keys import KEYS

PAGE = (Path(__file__).parents[2] / "docs" / "screen.md").read_text("utf-8")


def _rows(heading: str) -> list[tuple[str, str]]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").replace("\\|", "\0").split("|") for line in section.splitlines() if line.startswith("|")]
    return [(left.replace("\0", "|").strip(), right.replace("\0", "|").strip()) for left, right in rows[2:]]


def test_keys() -> None:
    assert _rows("Keys") == list(KEYS)


def test_commands() -> None:
    expected: list[tuple[str, str]] = []
    for slash in SLASH:
        name = f"`/{' '.join(part for part in (slash.name, slash.argument) if part)}`"
        aliases = ", ".join(f"`/{alias}`" for alias in slash.aliases)
        expected.append((f"{name} ({aliases})" if aliases else name, slash.help))
    assert _rows("Commands") == expected
