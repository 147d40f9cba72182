"""Fixtures of the agent's tests: stages, each an agent with a scripted model in a folder of its own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..stage import Stage


def _load(path: Path) -> ModuleType:
    """A helper module of the tests, by its path: test folders are no packages and not on the path."""
    name = f"deepagent_tests_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Callable[..., Stage]]:
    """Makes stages: `stage({"text": "hi"}, …, settings={…})`; they close with the test."""
    made: list[Stage] = []

    def make(*steps: object, **options: Any) -> Stage:
        folder = options.pop("folder", tmp_path / "work")
        made.append(_load(Path(__file__).parents[1] / "stage.py").Stage(folder, *steps, **options))
        return made[-1]

    yield make
    for one in made:
        await one.close()
