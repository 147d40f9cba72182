"""Standard input as a part of the prompt, where it is no terminal."""

from __future__ import annotations

import sys
import threading

LIMIT = 64 * 1024 * 1024
"""Bytes of a prompt; more than that is a mistake, such as a device."""
_PATIENCE = 3.0
"""Seconds until a person is told what is being waited for."""


class InputTooLong(Exception):
    """Standard input holds more than anybody can mean as a prompt."""


def read_input() -> str:
    """All of standard input, or nothing where it is a terminal or closed. Raises `InputTooLong`."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    timer = threading.Timer(_PATIENCE, _say_waiting)
    timer.daemon = True
    timer.start()
    try:
        data = sys.stdin.buffer.read(LIMIT + 1)
    except OSError:
        return ""
    finally:
        timer.cancel()
    if len(data) > LIMIT:
        raise InputTooLong(f"standard input holds more than {LIMIT:,} bytes; put it into a file and name that")
    return data.decode("utf-8", "replace")


def _say_waiting() -> None:
    print("deepagent: waiting for standard input to end (give </dev/null if there is none)", file=sys.stderr)
