"""Finding a text in the bytes of a file and putting another in its place, byte for byte.

Matching takes LF for CRLF; what is inserted follows the line ends around it; bytes outside of what really differs stay
as they are, whatever their encoding. Files are read and written by `edit`; why a text is not there, `hints` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Bytes `start` to `end` of the old content, and what comes in their place."""

    start: int
    end: int
    new: bytes


def plan(data: bytes, old: str, new: str) -> tuple[Change, ...]:
    """One change for each place where `old` stands in `data`. `old` is not empty. Slow for long texts: on a thread."""
    old_bytes, new_bytes = _normal(old), _normal(new)
    before, after = _shared(old_bytes, new_bytes)
    parts = (old_bytes[:before], old_bytes[before : len(old_bytes) - after], old_bytes[len(old_bytes) - after :])
    inserted = new_bytes[before : len(new_bytes) - after]
    expression = re.compile(b"".join(b"(" + _any_line_end(part) + b")" for part in parts))
    return tuple(
        Change(start=match.start(2), end=match.end(2), new=_with_ends(inserted, data, match))
        for match in expression.finditer(data)
    )


def apply(data: bytes, changes: Sequence[Change]) -> bytes:
    """`data` with all changes made; they are in order and do not overlap."""
    pieces: list[bytes] = []
    at = 0
    for change in changes:
        pieces += [data[at : change.start], change.new]
        at = change.end
    return b"".join([*pieces, data[at:]])


def line_of(data: bytes, at: int) -> int:
    """The number of the line, from 1, that byte `at` stands in."""
    return data.count(b"\n", 0, at) + 1


def changed_lines(data: bytes, changes: Sequence[Change]) -> tuple[int, int]:
    """How many lines the changes add to `data`, and how many they remove, as a diff would say."""
    added = removed = 0
    for change in changes:
        old = data[change.start : change.end]
        lines_only = _whole_lines(data, change, old)
        added += change.new.count(b"\n") + (not lines_only)
        removed += old.count(b"\n") + (not lines_only)
    return added, removed


def _whole_lines(data: bytes, change: Change, old: bytes) -> bool:
    """The change puts lines between others or takes them out, and touches no other line."""
    texts = [text for text in (old, change.new) if text]
    at_start = change.start == 0 or data[change.start - 1 : change.start] == b"\n"
    at_end = data[change.end : change.end + 2].startswith((b"\n", b"\r\n"))
    after = at_start and all(text.endswith(b"\n") for text in texts)
    return after or (at_end and all(text.startswith((b"\n", b"\r\n")) for text in texts))


def _normal(text: str) -> bytes:
    return text.replace("\r\n", "\n").encode("utf-8", "replace")


def _any_line_end(part: bytes) -> bytes:
    return re.escape(part).replace(b"\\\n", b"\r?\n")


def _shared(old: bytes, new: bytes) -> tuple[int, int]:
    """Bytes that both have in common at the beginning, and at the end."""
    shorter = min(len(old), len(new))
    before = _common(old, new, shorter)
    return before, _common(old[::-1], new[::-1], shorter - before)


def _common(first: bytes, second: bytes, most: int) -> int:
    """How many bytes both begin with, at most `most`; found by halving, since comparing slices is fast."""
    low, high = 0, most
    while low < high:
        half = (low + high + 1) // 2
        low, high = (half, high) if first[:half] == second[:half] else (low, half - 1)
    return low


def _with_ends(inserted: bytes, data: bytes, match: re.Match[bytes]) -> bytes:
    """`inserted` with the line ends of the matched text, else of the line before or after it, else as it is."""
    if b"\n" not in inserted:
        return inserted
    stop = data.find(b"\n", match.start(), match.end())
    if stop < 0:
        stop = data.rfind(b"\n", 0, match.start())
    if stop < 0:
        stop = data.find(b"\n", match.end())
    crlf = stop > 0 and data[stop - 1 : stop] == b"\r"
    return inserted.replace(b"\n", b"\r\n") if crlf else inserted
