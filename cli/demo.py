"""`deepagent demo`: a repair in a small real repository, without network and key.

The model's answers are scripted (`demo.yaml`); files, tests, offloading, compaction and archive are the real ones. In a
terminal the screen shows it, with approvals, at a pace that one can follow; elsewhere it is told line by line.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

from .demo_scene import KEEP_RESULTS, PROMPT, WINDOW
from .options import DEMO_SCRIPT, RunOptions

FLAGS: dict[str, object] = {"model": "demo", "context.window": WINDOW, "context.keep_results": KEEP_RESULTS}
"""What the demo sets on the screen."""
REPOSITORY = Path(__file__).with_name("demo-repo")
_DELAY, _PACE = 0.8, 0.03
"""Seconds before an answer, and between its words, on the screen."""


def run_demo() -> int:
    """The exit code of the demo."""
    from ..agent.git import make_repository

    folder = Path(tempfile.mkdtemp(prefix="deepagent-demo-"))
    shop = folder / "shop"
    shutil.copytree(REPOSITORY, shop, ignore=shutil.ignore_patterns("__pycache__"))
    make_repository(shop, "A small shop")
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _run_on_screen(folder, shop)
    from .demo_text import run_in_text

    return run_in_text(shop, folder / "user")


def _run_on_screen(folder: Path, shop: Path) -> int:
    from .tui.launch import run_screen

    os.environ["DEEPAGENT_HOME"] = str(folder / "user")
    return run_screen(RunOptions(prompt=PROMPT, cwd=shop, demo=_paced(folder), flags=FLAGS)).code


def _paced(folder: Path) -> Path:
    """The demo's script with pauses."""
    import yaml

    script = cast(dict[str, Any], yaml.safe_load(DEMO_SCRIPT.read_text("utf-8")))
    steps = [{"delay": _DELAY, "pace": _PACE, **step} for step in script["steps"]]
    path = folder / "demo.json"
    path.write_text(json.dumps({**script, "steps": steps}), "utf-8")
    return path
