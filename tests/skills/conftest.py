"""Skills on disk, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

MakeSkill = Callable[..., Path]


@pytest.fixture
def make_skill() -> MakeSkill:
    """Writes `root/name/SKILL.md` and returns the skill's folder."""

    def make(root: Path, name: str, description: str = "Does one thing.", *, text: str | bytes | None = None) -> Path:
        folder = root / name
        folder.mkdir(parents=True)
        content = text if text is not None else f"---\nname: {name}\ndescription: {description}\n---\nThe body.\n"
        (folder / "SKILL.md").write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    return make
