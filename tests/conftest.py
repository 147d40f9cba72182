"""Fixtures for every test: a home, a working directory and an environment of its own; no network but loopback."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from server import ModelServer
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]
from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

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
    # Compiled code goes by the second and the size: what is run, edited and run again at once would be the old one.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
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


class _ByCost(LoadScopeScheduling):
    """Gives a process whole files, whose tests share what is costly to make.

    Tests of the command line go one by one, since they start programs and screens and wait for them. Those that go
    through litellm stay together wherever they are: its import takes seconds.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        if path.startswith("tests/cli/"):
            return nodeid
        return "litellm" if "litellm" in nodeid or "native_forms" in path else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return _ByCost(config, log)
