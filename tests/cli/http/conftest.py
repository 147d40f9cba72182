"""Fixtures of the runs over HTTP: a repository with a bug, and a model server."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `http_program`: test folders are no packages
sys.path.insert(0, str(Path(__file__).parents[2]))  # for `schemas`

from deepagent.cli.main import dispatch
from http_program import CODE, KEY, ROOT, TEST, Done, Place

if TYPE_CHECKING:
    from ...server import ModelServer


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


@pytest.fixture
def model_server() -> Iterator[Callable[..., ModelServer]]:
    """Makes servers: `model_server({"text": "hi"}, …)`; they stop with the test."""
    path = ROOT / "tests" / "server.py"
    name = "deepagent_tests_server"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    servers: list[ModelServer] = []

    def make(*answers: object, **options: object) -> ModelServer:
        servers.append(sys.modules[name].ModelServer(*answers, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()
