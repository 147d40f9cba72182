"""What `doctor` finds: a place that is fine, and each thing that is not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from deepagent.cli.doctor import Check, checks, text_of
from deepagent.cli.main import dispatch

pytestmark = pytest.mark.usefixtures("workspace")


def found(**environ: str) -> dict[str, list[Check]]:
    """The findings by their names."""
    by_name: dict[str, list[Check]] = {}
    for check in checks(Path(), environ={**os.environ, **environ}):
        by_name.setdefault(check.name, []).append(check)
    return by_name


def test_a_place_where_all_is_there(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPAGENT_MODEL", "demo")
    monkeypatch.setenv("LANG", "C.UTF-8")
    assert dispatch(["doctor"]) == 0
    said = capsys.readouterr().out
    for name in ("deepagent", "workspace", "model", "sandbox", "git", "bash", "memory", "skills"):
        assert f"✓ {name}" in said or name == "sandbox", said
    assert dispatch(["doctor", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"name", "state", "text"} == set(rows[0])


def test_without_a_model_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["doctor"]) == 1
    assert "✗ model" in capsys.readouterr().out


def test_a_key_that_is_missing_is_named() -> None:
    (model,) = found(DEEPAGENT_MODEL="openai/gpt-5")["model"]
    assert model.state == "bad"
    assert "OPENAI_API_KEY" in model.text


def test_settings_that_are_wrong_are_named() -> None:
    (settings,) = found(DEEPAGENT_CONTEXT_COMPACT_AT="much")["settings"]
    assert settings.state == "bad"
    assert "compact_at" in settings.text


def test_programs_that_are_missing_are_told_with_what_that_means(tmp_path: Path) -> None:
    there = found(PATH=str(tmp_path), DEEPAGENT_MODEL="demo")
    assert [there[name][0].state for name in ("git", "rg", "bash")] == ["note"] * 3
    assert there["rg"][0].text == "not found: searches take longer; the results are the same"


def test_a_sandbox_that_is_off_is_told() -> None:
    (sandbox,) = found(DEEPAGENT_SANDBOX_MODE="off", DEEPAGENT_MODEL="demo")["sandbox"]
    assert (sandbox.state, sandbox.text) == ("note", "none: it is switched off")


def test_a_terminal_without_letters_is_told() -> None:
    there = found(LC_ALL="C", TERM="dumb", DEEPAGENT_MODEL="demo")
    assert there["locale"][0].text.startswith("C is no UTF-8")
    assert there["terminal"][0].state == "note"


def test_longer_texts_stand_below_each_other() -> None:
    text = text_of((Check(name="a", state="ok", text="one\ntwo"), Check(name="long", state="bad", text="three")))
    assert text.split("\n") == ["✓ a     one", "        two", "✗ long  three"]
