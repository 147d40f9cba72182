"""A backend on the test's own folder."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
from deepagent.agent.backends.local import LocalBackend
from search_calls import make_tree

MakeBackend = Callable[..., LocalBackend]


@pytest.fixture
async def make_backend(workspace: Path) -> AsyncIterator[MakeBackend]:
    """Makes backends that are closed after the test; the root is the test's working directory unless told otherwise."""
    made: list[LocalBackend] = []

    def make(
        root: Path = workspace,
        cwd: Path | None = None,
        *,
        extra: tuple[Path, ...] = (),
        data: Path | None = None,
        environ: Mapping[str, str] = os.environ,
        hidden_env: tuple[str, ...] = (),
        search_seconds: float = 20.0,
    ) -> LocalBackend:
        backend = LocalBackend(
            root,
            cwd or root,
            extra=extra,
            data=data or root / ".deepagents",
            environ=environ,
            hidden_env=hidden_env,
            search_seconds=search_seconds,
        )
        made.append(backend)
        return backend

    yield make
    for backend in made:
        await backend.aclose()


@pytest.fixture
def backend(make_backend: MakeBackend) -> LocalBackend:
    """A backend on the working directory."""
    return make_backend()


@pytest.fixture
def tree(workspace: Path) -> Path:
    """The working directory, filled with what is hard to search."""
    return make_tree(workspace)
