"""The process's standard streams: always there, never a reason for a traceback."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import cast


class OutputLost(Exception):
    """Standard output takes nothing more: its reader is gone, or the disk behind it is full."""


def prepare_streams() -> None:
    """Puts `/dev/null` where a stream was closed, and lets standard output write what its encoding lacks as escapes.

    Without the former the next file that is opened would get the number of a standard stream.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
    if isinstance(sys.stdout, TextIOWrapper):
        cast(TextIOWrapper, sys.stdout).reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Keeps the interpreter from complaining, as it ends, about output that nobody takes any more."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
