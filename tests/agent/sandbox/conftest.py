"""Fixtures of the sandbox tests: a world and an engine that works here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from deepagent.agent.sandbox.engine import Engine, SandboxError
from sandbox_world import World, engine_for, world


@pytest.fixture(scope="module")
def shared_world() -> Iterator[World]:
    """One for all tests of a module."""
    with world("me") as made:
        yield made


@pytest.fixture(params=["bubblewrap", "landlock"])
def engine(request: pytest.FixtureRequest, shared_world: World) -> Engine:
    """Each engine in turn; skips where one does not work."""
    return working_engine(request.param, shared_world)


@pytest.fixture
def engine_named(shared_world: World) -> Callable[[str], Engine]:
    """An engine by its name; skips where it does not work."""
    return lambda name: working_engine(name, shared_world)


def working_engine(name: str, world: World) -> Engine:
    try:
        return engine_for(name, world)
    except (OSError, SandboxError) as error:
        pytest.skip(f"{name} does not work here: {error}")
