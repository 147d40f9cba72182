"""What importing costs: the seam is light, and a lane is loaded when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("litellm", "httpx", "openai", "tiktoken", "textual", "git", "typer")


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("types", (*HEAVY, "yaml", "asyncio")),
        ("wire", (*HEAVY, "yaml", "asyncio")),
        ("assemble", HEAVY),
        ("retry", HEAVY),
        ("scripted", HEAVY),
        ("catalog", HEAVY),
        ("choose", HEAVY),
        ("litellm_lane", HEAVY),
        ("lean", tuple(name for name in HEAVY if name != "httpx")),
    ],
)
def test_modules_are_light(module: str, forbidden: tuple[str, ...]) -> None:
    code = f"import sys, deepagent.agent.model.{module}; print(*[m for m in {forbidden!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
