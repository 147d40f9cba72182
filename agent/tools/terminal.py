"""What a terminal would show in the end of what a program wrote: without colours, overwritten progress and controls.

A small part of a terminal, line by line: carriage return, backspace, erase in line. Moving up is not followed.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|\x1b\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?"  # OSC: titles, links
    "|\x1b[PX^_][^\x1b\n]*(?:\x1b\\\\)?"  # strings for the terminal itself
    "|\x1b[ -/]*[0-~]"  # all else
    "|\x1b"
)
_ERASE = re.compile("(?:\x1b\\[|\x9b)([012]?)K")
_STEP = re.compile("(\r|\x08|(?:\x1b\\[|\x9b)[012]?K)")
_CONTROL = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_WIDE = 4_000
"""Characters of a line from which overwriting replaces it: a terminal is not that wide."""


def plain(output: bytes) -> str:
    """The text of a command's output, decoded as UTF-8 with U+FFFD for what is not."""
    return "\n".join(map(_line, output.decode("utf-8", "replace").split("\n")))


def _line(line: str) -> str:
    if line.isprintable():
        return line
    line = line.rstrip("\r")
    if "\r" in line or "\x08" in line:
        line = _overwritten(line)
    return _CONTROL.sub("", _ESCAPE.sub("", line))


def _overwritten(line: str) -> str:
    """What is left of a line whose parts were written over each other."""
    text, column = "", 0
    for piece in _STEP.split(line):
        if piece == "\r":
            column = 0
        elif piece == "\x08":
            column = max(0, column - 1)
        elif erase := _ERASE.fullmatch(piece):
            text = {"": text[:column], "0": text[:column], "1": " " * column + text[column:], "2": ""}[erase[1]]
        elif piece := _CONTROL.sub("", _ESCAPE.sub("", piece)):
            after = text[column + len(piece) :] if len(text) <= _WIDE else ""
            text = text[:column].ljust(column) + piece + after
            column += len(piece)
    return text
