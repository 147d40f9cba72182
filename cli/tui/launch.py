"""Runs the screen, and leaves the terminal as it was with a few words in it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ..options import RunOptions
from .app import DeepagentApp


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenEnd:
    """How a talk on the screen ended."""

    code: int
    """The exit code."""
    demo_wanted: bool = False
    """Whether the user chose the demo instead, which works in a repository of its own."""


def run_screen(options: RunOptions) -> ScreenEnd:
    """Has a talk on the screen."""
    app = DeepagentApp(options)
    code = app.run()
    if app.farewell:
        print(app.farewell)
    if app.crash:
        print(f"\n{app.crash}\nThis is a bug of deepagent; what was said is kept.", file=sys.stderr)
    return ScreenEnd(code=app.return_code or code or 0, demo_wanted=app.demo_wanted)
