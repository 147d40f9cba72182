"""Fixtures of the runs over HTTP: a repository with a bug, and a model server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from deepagent.cli.main import dispatch
from http_program import CODE, KEY, TEST, Done, Place
from server import ModelServer


@pytest.fixture
def place(tmp_path: Path, isolated: Path, model_server: Callable[..., ModelServer]) -> Place:
    """A repository whose test fails because of one wrong character."""
    server = model_server()
    environ = {**os.environ, "HOME": str(isolated), "LC_ALL": "C.UTF-8", "OPENAI_BASE_URL": server.url}
    place = Place(repo=tmp_path / "repo", server=server, environ={**environ, "OPENAI_API_KEY": KEY})
    place.repo.mkdir()
    (place.repo / "adding.py").write_text(CODE)
    (place.repo / "test_adding.py").write_text(TEST)
    (place.repo / ".gitignore").write_text("__pycache__/\n")
    place.git("init", "--quiet")
    place.git("add", "--all")
    place.git("commit", "--quiet", "--message", "first")
    return place


@pytest.fixture
def here(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs `deepagent -p` as `place.run` does, but within the tests' process, which saves its start."""

    def run(*arguments: str, model: str = "openai/gpt-4o-mini", **environ: str) -> Done:
        with monkeypatch.context() as patch:
            patch.chdir(place.repo)
            patch.setattr(sys, "stdin", None)
            for name, value in {**place.environ, **environ}.items():
                patch.setenv(name, value)
            code = dispatch(["-p", "-m", model, *arguments])
        captured = capsys.readouterr()
        return Done(code=code, out=captured.out, err=captured.err)

    return run
