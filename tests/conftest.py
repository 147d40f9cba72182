"""Fixtures for every test: a home, a working directory and an environment of its own; no network but loopback."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from server import ModelServer

_LOOPBACK = ("127.", "::1", "localhost")
_Address = str | bytes | tuple[str, int] | tuple[str, int, int, int]


class _LoopbackSocket(socket.socket):
    """Connects to this machine, or fails the test."""

    def connect(self, address: _Address, /) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if isinstance(address, tuple) and not address[0].startswith(_LOOPBACK):
            raise AssertionError(f"a test tried to reach {address!r}")
        super().connect(address)


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives the test a home of its own and takes away every key and setting of the caller's. Returns the home."""
    home = tmp_path_factory.mktemp("home")
    for name in tuple(os.environ):
        if name.startswith(("DEEPAGENT_", "OPENAI_", "ANTHROPIC_", "GIT_")) or name.endswith(
            ("_API_KEY", "_PROXY", "_proxy")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setattr(socket, "socket", _LoopbackSocket)
    return home


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def model_server() -> Iterator[Callable[..., ModelServer]]:
    """Makes model servers: `model_server({"text": "hi"}, …, routes={…}, count=…)`; they stop with the test.

    A request that a provider would refuse fails the test.
    """
    servers: list[ModelServer] = []

    def make(*answers: object, **options: object) -> ModelServer:
        servers.append(ModelServer(*answers, **options))  # pyright: ignore[reportArgumentType] - tests pass what it takes
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share something costly to make run in one process: attempts in a sandbox, and litellm's import."""
    for item in items:
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))


def _group(item: pytest.Item) -> str:
    if item.path.name == "test_sandbox_escapes.py":
        values: dict[str, object] = item.callspec.params if isinstance(item, pytest.Function) else {}
        return f"escapes-{values.get('engine', '')}-{values.get('user', '')}"
    native = item.path.name in ("test_model_native_forms.py", "test_model_litellm.py")
    return "litellm" if native or (item.path.parent.name == "model" and "litellm" in item.name) else ""
