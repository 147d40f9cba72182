"""Fixtures of the agent's tests: stages, each an agent with a scripted model in a folder of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from stage import Stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Callable[..., Stage]]:
    """Makes stages: `stage({"text": "hi"}, …, settings={…})`; they close with the test."""
    made: list[Stage] = []

    def make(*steps: Mapping[str, Any], **options: Any) -> Stage:
        folder = options.pop("folder", tmp_path / "work")
        made.append(Stage(folder, *steps, **options))
        return made[-1]

    yield make
    for one in made:
        await one.close()
