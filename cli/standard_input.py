"""Standard input as a part of the prompt, where it is no terminal."""

from __future__ import annotations

import sys
import threading

_PATIENCE = 3.0
"""Seconds until a person is told what is being waited for."""


def read_input() -> str:
    """All of standard input, or nothing where it is a terminal or closed."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    timer = threading.Timer(_PATIENCE, _say_waiting)
    timer.daemon = True
    timer.start()
    try:
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        timer.cancel()


def _say_waiting() -> None:
    print("deepagent: waiting for standard input to end (give </dev/null if there is none)", file=sys.stderr)
