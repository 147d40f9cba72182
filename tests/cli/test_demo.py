"""The demo without a screen comes to its good end, compaction included."""

from __future__ import annotations

from pathlib import Path

import pytest
from deepagent.agent.git import make_repository
from deepagent.cli.demo import REPOSITORY
from deepagent.cli.demo_text import run_in_text


def test_the_demo_compacts_and_repairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = tmp_path / "shop"
    for source in (path for path in REPOSITORY.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        copy = shop / source.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    make_repository(shop, "A small shop")
    assert run_in_text(shop, tmp_path / "user") == 0
    said = capsys.readouterr().out
    for words in (
        "→ pointers, without a model call",
        "requests kept word for word: 1",
        "All tests pass.",
        "+from decimal",
    ):
        assert words in said
    assert "ROUND_HALF_EVEN" in (shop / "shop" / "money.py").read_text()
