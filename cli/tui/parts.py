"""An answer in parts of a few thousand characters, each of which is Markdown by itself.

A part is parsed, laid out and unmounted as a whole, so what an answer costs does not grow with its length. Parts begin
where a block begins; code and lists that are longer than a part are taken apart between lines and items.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

PART = 4_000
"""Characters from which on a part ends where a block does."""
_HARD = 4 * PART
"""Characters from which on it ends at the next line or space."""
_DECIDING = 4
"""Characters of a line that tell what it begins."""
_LINE = 200
"""Characters of a line that are looked at."""
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
_ITEM = re.compile(r"[-*+] |\d{1,3}[.)](?: |$)")

Begins = Literal["", "block", "joined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Text for the current part, or, if it `begins` one, for the next."""

    text: str
    begins: Begins = ""
    """`block`: with an empty line before it; `joined`: without one."""
    close: str = ""
    """What the part before needs to be whole: the end of its code."""
    open: str = ""
    """What the new part needs for that before its text."""


@dataclass(slots=True)
class Splitter:
    """Takes an answer as it comes and says where parts begin."""

    _held: str = ""
    """The beginning of a line that does not tell yet what it begins."""
    _line: str = ""
    """The current line so far."""
    _size: int = 0
    _fence: str = ""
    """The line that opened the code we are in."""
    _blank: bool = True
    _list: bool = False

    def feed(self, text: str) -> list[Piece]:
        """The pieces of `text`, as far as it is known where they belong."""
        self._held += text
        pieces: list[Piece] = []
        while self._held:
            end = self._held.find("\n", 0, PART) + 1
            part = self._held[: end or PART]
            if not self._line and self._size >= PART and not end and len(part) < _DECIDING:
                break
            self._held = self._held[len(part) :]
            pieces += self._take(part)
        return pieces

    def flush(self) -> list[Piece]:
        """What was held back; nothing more will come."""
        held, self._held = self._held, ""
        return self._take(held) if held else []

    def _take(self, part: str) -> list[Piece]:
        pieces = self._begin(part) if self._size >= PART else [Piece(text=part)]
        self._size += sum(len(piece.text) for piece in pieces[-1:])
        self._line = (self._line + part)[:_LINE]
        if part.endswith("\n"):
            self._end_line()
        return pieces

    def _begin(self, part: str) -> list[Piece]:
        """`part`, perhaps as the beginning of a new part of the answer."""
        if self._line:
            return self._break_line(part) if self._size >= _HARD and not self._fence else [Piece(text=part)]
        begins = self._boundary(part)
        if not begins:
            return [Piece(text=part)]
        self._size = 0
        if self._fence:
            marks = _marks(self._fence)
            return [Piece(text=part, begins=begins, close=f"{marks}\n", open=f"{self._fence}\n")]
        return [Piece(text=part, begins=begins)]

    def _break_line(self, part: str) -> list[Piece]:
        before, space, after = part.partition(" ")
        if not space or not after.strip():
            return [Piece(text=part)]
        self._size = 0
        return [Piece(text=before + space), Piece(text=after, begins="joined")]

    def _boundary(self, line: str) -> Begins:
        """Whether a part may begin with `line`, and how."""
        if self._fence:
            return "" if self._closes(line) else "joined"
        if not line.strip():
            return ""
        if self._list and _ITEM.match(line):
            return "joined"
        if (self._blank and not line[0].isspace()) or line.startswith("#"):
            return "block"
        return "joined" if self._size >= _HARD and not line[0].isspace() else ""

    def _closes(self, line: str) -> bool:
        found = _FENCE.match(line.rstrip("\n"))
        marks = _marks(self._fence)
        return bool(found) and not found[2].strip() and found[1].startswith(marks)

    def _end_line(self) -> None:
        line, self._line = self._line.rstrip("\n"), ""
        if self._fence:
            self._fence = "" if self._closes(line) else self._fence
            self._blank = False
            return
        self._blank = not line.strip()
        if _FENCE.match(line):
            self._fence = line
        if not self._blank and not line[0].isspace():
            self._list = bool(_ITEM.match(line))


def _marks(fence: str) -> str:
    """The backticks or tildes of the line that opens code."""
    found = _FENCE.match(fence)
    return found[1] if found else "```"


def parts_of(text: str) -> list[tuple[Begins, str]]:
    """A whole answer in parts: how each begins, and its Markdown."""
    splitter = Splitter()
    parts: list[tuple[Begins, str]] = [("block", "")]
    for piece in (*splitter.feed(text), *splitter.flush()):
        if piece.begins:
            begins, before = parts[-1]
            parts[-1] = (begins, before + piece.close)
            parts.append((piece.begins, piece.open))
        parts[-1] = (parts[-1][0], parts[-1][1] + piece.text)
    return parts
