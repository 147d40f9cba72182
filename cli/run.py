"""A run: what its flags say decides whether the screen opens or the headless printer works."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from .options import RunOptions


def run_prompt(argv: Sequence[str]) -> int:
    """The exit code of a run with these arguments."""
    options = _options(argv)
    if isinstance(options, int):
        return options
    if not options.print and _terminal():
        from .tui.launch import run_screen

        end = run_screen(options)
        if end.demo_wanted:
            from .demo import run_demo

            return run_demo()
        return end.code
    from .headless import run_headless

    return run_headless(options)


def _options(argv: Sequence[str]) -> RunOptions | int:
    """What the flags say; where there are none, the first frame need not wait for what reads them."""
    if not argv:
        return RunOptions(flags={})
    from .flags import read_flags

    return read_flags(argv)


def _terminal() -> bool:
    """Whether somebody sits in front of a terminal that can show the screen."""
    return os.environ.get("TERM") != "dumb" and all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)
    )
