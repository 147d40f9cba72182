"""What a terminal would show in the end of what a program wrote: without colours, overwritten progress and controls.

A small part of a terminal, line by line: carriage return, backspace, erase in line. Moving up is not followed.
"""

from __future__ import annotations

import re
from codecs import IncrementalDecoder, getincrementaldecoder
from dataclasses import dataclass, field

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
_ANY = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What makes a line worth a look: most output has none of it."""
_ENDS = re.compile("\r+(?=\n|\\Z)")
"""Carriage returns at the end of a line: nothing is written over it any more."""
_WIDE = 4_000
"""Characters of a line from which overwriting replaces it: a terminal is not that wide."""
_PENDING = 64 * 1024
"""Characters of a line that are waited for; what is longer is given out in parts."""


def plain(output: bytes) -> str:
    """The text of a command's output, decoded as UTF-8 with U+FFFD for what is not."""
    return _shown(output.decode("utf-8", "replace"))


@dataclass(slots=True)
class Screen:
    """The same for output that comes piece by piece; holds back at most one line, and that not for ever."""

    _pending: str = ""
    _decoder: IncrementalDecoder = field(default_factory=lambda: getincrementaldecoder("utf-8")("replace"))

    @property
    def pending(self) -> str:
        """What has come of a line that is not settled yet, as far as it would be shown."""
        return _shown(self._pending)

    def feed(self, data: bytes, *, end: bool = False) -> str:
        """Takes the next piece and gives what is settled; at the `end` all that is left."""
        text = self._pending + self._decoder.decode(data, end)
        done = len(text) if end else text.rfind("\n") + 1
        self._pending = text[done:]
        if len(self._pending) > _PENDING:
            return _shown(text[:done]) + self._shortened()
        return _shown(text[:done])

    def _shortened(self) -> str:
        """Overwrites what a long line wrote over itself; if that does not help, its beginning is given out."""
        line = self._pending
        if "\r" in line or "\x08" in line:
            text, column = _overwritten(line)
            line = f"{text}\r{text[:column]}" if column < len(text) else text
            if len(line) <= _PENDING // 2:
                self._pending = line
                return ""
        cut = line.rfind("\x1b", len(line) - 64)  # an escape sequence may not be whole yet
        cut = cut if cut > 0 else len(line)
        self._pending = line[cut:]
        return _shown(line[:cut])


def _shown(text: str) -> str:
    """All at once what need not be looked at line by line: most output has neither colours nor progress bars."""
    if _ANY.search(text) is None:
        return text
    text = _ENDS.sub("", text)
    if "\r" in text or "\x08" in text:
        lines = text.split("\n")
        text = "\n".join(_overwritten(line)[0] if "\r" in line or "\x08" in line else line for line in lines)
    return _CONTROL.sub("", _ESCAPE.sub("", text))


def _overwritten(line: str) -> tuple[str, int]:
    """What is left of a line whose parts were written over each other, and where the next character would go."""
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
    return text, column
