"""`deepagent archive search` and `read`, and `deepagent sessions rm`: exit codes, JSON, and the texts as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deepagent.cli.main import dispatch

TEXT = "a line with a<5 and \x1b[31mred\x1b[0m\nthe port is 48213\n日本語 `x`"


@pytest.fixture
def talked(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The id of a session in which something was read."""
    (workspace / "notes.txt").write_text(TEXT)
    script = tmp_path / "s.json"
    calls = [{"name": "read_file", "arguments": {"path": "notes.txt"}}]
    script.write_text(json.dumps({"steps": [{"calls": calls}, {"text": "The port is 48213."}]}))
    assert dispatch(["-p", "which port?", "-m", f"scripted:{script}", "--yolo"]) == 0
    capsys.readouterr()
    (log,) = (workspace / ".deepagents" / "sessions").iterdir()
    return log.stem


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert dispatch(["archive", "search", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_words_literals_and_patterns(talked: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["port 48213"], ["--literal", "port is 48213"], ["--regex", r"port is \d+"]):
        answer = found(capsys, *arguments)
        assert (answer["total"], answer["exact"], answer["notices"]) == (2, True, [])
        assert {hit["session"] for hit in answer["hits"]} == {talked}
        assert {hit["role"] for hit in answer["hits"]} == {"tool", "assistant"}
    assert found(capsys, "--literal", "a<5")["hits"][0]["line"] == 2
    assert found(capsys, "port", "--tool", "read_file", "--file", "*.txt")["total"] == 1
    assert found(capsys, "port", "--role", "user")["total"] == 1


def test_as_text_nothing_reaches_the_terminal_as_a_code(talked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["archive", "search", "line with", "--session", talked[:12]]) == 0
    said = capsys.readouterr().out
    assert "1 passage in this session with all the words." in said
    assert f"{talked}/" in said
    assert "\x1b" not in said


@pytest.mark.usefixtures("talked")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["search", "zebra"], 1),
        (["search", "(", "--regex"], 2),
        (["search", "x", "--after", "yesterday"], 2),
        (["search", "x", "--session", "nothing"], 1),
        (["search", "x", "--role", "nobody"], 2),
        (["read", "#"], 2),
        (["read", "nothing"], 1),
    ],
)
def test_exit_codes(arguments: list[str], code: int) -> None:
    assert dispatch(["archive", *arguments]) == code


def test_what_was_found_is_read_as_it_was(capsys: pytest.CaptureFixture[str], talked: str) -> None:
    (hit,) = [hit for hit in found(capsys, "48213")["hits"] if hit["role"] == "tool"]
    assert dispatch(["archive", "read", hit["id"], "--lines", "2-3"]) == 0
    assert "a line with a<5 and " in (said := capsys.readouterr().out)
    assert said.endswith("the port is 48213\n")
    assert dispatch(["archive", "read", f"{talked}/{hit['message']}"]) == 0
    assert "日本語 `x`" in capsys.readouterr().out


def test_a_session_is_removed_if_that_is_confirmed(talked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["sessions", "rm", talked]) == 2
    assert "--yes" in capsys.readouterr().err
    assert dispatch(["sessions", "rm", talked[:14], "--yes"]) == 0
    assert f"removed {talked}: " in capsys.readouterr().out
    assert dispatch(["sessions"]) == 0
    assert "There is no session" in capsys.readouterr().out
    assert dispatch(["archive", "search", "port"]) == 1


@pytest.mark.usefixtures("workspace")
def test_sections_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["archive", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
