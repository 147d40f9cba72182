"""Runs the screen, and leaves the terminal as it was with a few words in it."""

from __future__ import annotations

import sys

from ..options import RunOptions
from .app import DeepagentApp


def run_screen(options: RunOptions) -> int:
    """The exit code of a talk on the screen."""
    app = DeepagentApp(options)
    code = app.run()
    if app.farewell:
        print(app.farewell)
    if app.crash:
        print(f"\n{app.crash}\nThis is a bug of deepagent; what was said is kept.", file=sys.stderr)
    if app.demo_wanted:
        from ..demo import run_demo

        return run_demo()
    return app.return_code or code or 0
