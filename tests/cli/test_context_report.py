"""`deepagent context`: rows that add up, for a new session and an old one, and a check with an exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.sessions import session_ids
from deepagent.agent.workspace import find_workspace
from deepagent.cli.main import dispatch

pytestmark = pytest.mark.usefixtures("workspace")


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The report as JSON."""
    assert dispatch(["context", "--json", "-m", "demo", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def add_up(rows: list[dict[str, Any]], total: int) -> None:
    """Checks rows and their parts."""
    assert sum(row["tokens"] for row in rows) == total
    for row in rows:
        if "parts" in row:
            add_up(row["parts"], row["tokens"])


def test_a_new_session(capsys: pytest.CaptureFixture[str]) -> None:
    Path("AGENTS.md").write_text("Be brief.\n" * 100)
    found = report(capsys)
    add_up(found["rows"], found["used"])
    assert (found["session"], found["model"], found["source"]) == (None, "demo", "counted")
    assert (found["window"], found["trigger"]) == (200_000, 170_000)
    names = [row["name"] for row in found["rows"]]
    assert names[0] == "System prompt"
    assert "Memory" in names
    assert names[-1].startswith("Remainder")
    assert session_ids(find_workspace(Path.cwd(), environ={}).storage()) == ()


def test_an_earlier_session_is_only_looked_at(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text(json.dumps({"steps": [{"text": "word " * 500}]}))
    model = f"scripted:{script}"
    assert dispatch(["-p", "a question", "-m", model]) == 0
    capsys.readouterr()
    (log,) = Path(".deepagents/sessions").iterdir()
    before = log.read_bytes()
    found = report(capsys, "-c")
    assert found["session"] == log.stem
    add_up(found["rows"], found["used"])
    assert [row["name"] for row in found["rows"] if "messages" in row["name"]] == ["Your messages, 1"]
    assert log.read_bytes() == before
    assert len(list(log.parent.iterdir())) == 1
    assert report(capsys, "-r", log.stem[:15])["used"] == found["used"]
    assert dispatch(["context", "-m", "demo", "-r", "nothing"]) == 1
    assert "nothing" in capsys.readouterr().err


def test_what_is_not_kept_goes_on_with_a_copy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    steps = [{"text": "One."}, {"text": "Two.", "expect": [{"where": "messages", "contains": "the first question"}]}]
    script.write_text(json.dumps({"steps": steps}))
    assert dispatch(["-p", "the first question", "-m", f"scripted:{script}"]) == 0
    (log,) = Path(".deepagents/sessions").iterdir()
    before = log.read_bytes()
    assert dispatch(["-c", "--no-session-persistence", "-p", "more", "-m", f"scripted:{script}"]) == 0
    assert capsys.readouterr().out == "One.\nTwo.\n"
    assert log.read_bytes() == before


def test_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["context", "-m", "demo"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].endswith("of 200,000 tokens (assumed), counted · demo")
    assert any(line.startswith("  read_file ") for line in lines)


@pytest.mark.parametrize(("most", "code"), [(100, 1), (100_000, 0)])
def test_the_check(capsys: pytest.CaptureFixture[str], most: int, code: int) -> None:
    assert dispatch(["context", "check", "--max-idle", str(most), "-m", "demo"]) == code
    said = capsys.readouterr().out
    assert said.startswith("an idle session takes ")
    assert (f"more than {most:,}; most of it: Tools" in said) is bool(code)


def test_without_a_model_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["context"]) == 2
    assert "no model is set" in capsys.readouterr().err
