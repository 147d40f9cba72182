"""Finding a text in another and putting a third in its place, and nothing else.

Matching takes LF for CRLF; what is inserted follows the line ends around it; what does not really differ stays as it
is. How a file becomes a text and back is told in `file_text`; why a text is not there, `hints` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Characters `start` to `end` of the old text, and what comes in their place."""

    start: int
    end: int
    new: str


def plan(text: str, old: str, new: str, *, crlf: bool = False, overlapping: bool = False) -> tuple[Change, ...]:
    """One change for each place where `old` stands in `text`; both have LF, and `old` is not empty.

    `crlf` is for what is inserted where no line ends are to follow. With `overlapping`, places that share characters
    are told too, so that it is seen whether there is only one.
    """
    before, after = shared(old, new)
    parts = (old[:before], old[before : len(old) - after], old[len(old) - after :])
    inserted = new[before : len(new) - after]
    expression = "".join(f"({_any_line_end(part)})" for part in parts)
    return tuple(
        Change(start=match.start(2), end=match.end(2), new=_with_ends(inserted, text, match, crlf))
        for match in re.finditer(f"(?={expression})" if overlapping else expression, text)
    )


def apply(text: str, changes: Sequence[Change]) -> str:
    """`text` with all changes made; they are in order and do not overlap."""
    pieces: list[str] = []
    at = 0
    for change in changes:
        pieces += [text[at : change.start], change.new]
        at = change.end
    return "".join([*pieces, text[at:]])


def line_of(text: str, at: int) -> int:
    """The number of the line, from 1, that character `at` stands in."""
    return text.count("\n", 0, at) + 1


def changed_lines(text: str, changes: Sequence[Change]) -> tuple[int, int]:
    """How many lines the changes add to `text`, and how many they remove, as a diff would say."""
    added = removed = 0
    for change in changes:
        old = text[change.start : change.end]
        lines_only = _whole_lines(text, change, old)
        added += change.new.count("\n") + (not lines_only)
        removed += old.count("\n") + (not lines_only)
    return added, removed


def _whole_lines(text: str, change: Change, old: str) -> bool:
    """The change puts lines between others or takes them out, and touches no other line."""
    pieces = [piece for piece in (old, change.new) if piece]
    at_start = change.start == 0 or text[change.start - 1 : change.start] == "\n"
    at_end = text[change.end : change.end + 2].startswith(("\n", "\r\n"))
    after = at_start and all(piece.endswith("\n") for piece in pieces)
    return after or (at_end and all(piece.startswith(("\n", "\r\n")) for piece in pieces))


def _any_line_end(part: str) -> str:
    return re.escape(part).replace("\\\n", "(?:\r\n|(?<!\r)\n)")


def shared(old: str, new: str) -> tuple[int, int]:
    """Characters that both have in common at the beginning, and at the end."""
    shorter = min(len(old), len(new))
    before = _common(old, new, shorter)
    return before, _common(old[::-1], new[::-1], shorter - before)


def _common(first: str, second: str, most: int) -> int:
    """How many characters both begin with, at most `most`; found by halving, since comparing slices is fast."""
    low, high = 0, most
    while low < high:
        half = (low + high + 1) // 2
        low, high = (half, high) if first[:half] == second[:half] else (low, half - 1)
    return low


def _with_ends(inserted: str, text: str, match: re.Match[str], crlf: bool) -> str:
    """`inserted` with the line ends of the matched text, else of the line before or after it, else as it is."""
    if "\n" not in inserted:
        return inserted
    stop = text.find("\n", match.start(1), match.end(3))
    if stop < 0:
        stop = text.rfind("\n", 0, match.start(1))
    if stop < 0:
        stop = text.find("\n", match.end(3))
    crlf = text[stop - 1 : stop] == "\r" if stop > 0 else crlf and stop < 0
    return inserted.replace("\n", "\r\n") if crlf else inserted
