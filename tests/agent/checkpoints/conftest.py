"""Fixtures of the tests of checkpoints: a folder of work, a session in it, and calls that change files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checkpoint_desk import Desk
from deepagent.agent.git.shadow import Limits


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Makes desks: `desk(git=True, limits=…)`; all work in the same folder, one after the other."""
    made: list[Desk] = []

    def make(*, git: bool = True, limits: Limits | None = None) -> Desk:
        made.append(Desk(tmp_path / "work", git=git, limits=limits))
        return made[-1]

    yield make
    for one in made:
        one.close()
