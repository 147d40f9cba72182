"""Cutting bytes of text without cutting a character."""

from __future__ import annotations

EXCERPT = 400
"""Bytes of a long line that are shown around a match."""
_BEFORE = 120
"""Bytes of them before the match."""


def character_start(data: bytes, at: int) -> int:
    """The last place at or before `at` where a UTF-8 character begins; `at` itself where the bytes are no UTF-8."""
    for back in range(min(4, at + 1)):
        if at - back >= len(data) or data[at - back] & 0xC0 != 0x80:
            return at - back
    return at


def excerpt(line: bytes, match: int) -> tuple[int, bytes]:
    """Where the shown part of a line begins, and the part: a short line whole, of a long one what surrounds `match`."""
    if len(line) <= EXCERPT:
        return 0, line
    begin = character_start(line, max(0, match - _BEFORE))
    end = character_start(line, min(len(line), begin + EXCERPT))
    return begin, line[begin:end]
