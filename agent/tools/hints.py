"""Why a text is not in a file: what the model can be told so that its next attempt succeeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

_LINES = 20_000
"""Lines that are compared at most."""
_AROUND = 3
"""Lines shown from the nearest one on."""
_WIDTH = 200
_LIKE = 0.6
"""Likeness from which a line is worth showing."""
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u2013": "-"})


def why_missing(text: str, old: str, new: str) -> str:
    """What stands in `text` where `old` may have been meant; both with LF."""
    if re.match(r"\s*\d+(@\d+)?→", old):
        return "It begins with a line number of read_file: give only what follows the arrow."
    lines = text.split("\n")
    for fold, what in _FOLDS:
        if line := _folded(lines, old, fold):
            return f"{what} differs at line {line}. There it is:\n{_quoted(lines, line)}"
    if new.strip() and new in text:
        return f"The new text is already there, at line {text.count(chr(10), 0, text.index(new)) + 1}."
    return _nearest(lines, old)


def _spaces(line: str) -> str:
    return " ".join(line.split())


def _marks(line: str) -> str:
    return _spaces(line.translate(_QUOTES)).casefold()


_FOLDS: tuple[tuple[Callable[[str], str], str], ...] = (
    (_spaces, "Only whitespace (tabs, spaces, blanks at the end)"),
    (_marks, "Only case, quotation marks or dashes"),
)


def _folded(lines: Sequence[str], old: str, fold: Callable[[str], str]) -> int | None:
    """The line at which `old` stands if both are folded. Line by line, and within one line."""
    wanted = [fold(line) for line in old.strip("\n").split("\n")]
    have = [fold(line) for line in lines[:_LINES]]
    if not any(wanted):
        return None
    for at in range(len(have) - len(wanted) + 1):
        if have[at].endswith(wanted[0]) if len(wanted) > 1 else wanted[0] in have[at]:
            inner = have[at + 1 : at + len(wanted) - 1] == wanted[1:-1]
            if len(wanted) == 1 or (inner and have[at + len(wanted) - 1].startswith(wanted[-1])):
                return at + 1
    return None


def _nearest(lines: Sequence[str], old: str) -> str:
    """The line most like the first line of `old` that says something."""
    wanted = next((line.strip() for line in old.split("\n") if len(line.strip()) > 2), old.strip())[:_WIDTH]
    matcher = SequenceMatcher(b=wanted, autojunk=False)
    best, where = _LIKE, 0
    for number, line in enumerate(lines[:_LINES], 1):
        matcher.set_seq1(line.strip()[:_WIDTH])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, where = matcher.ratio(), number
    if not where:
        return "No line is like it: read the file again."
    return f"The nearest is line {where}:\n{_quoted(lines, where)}"


def _quoted(lines: Sequence[str], line: int) -> str:
    shown = lines[line - 1 : line - 1 + _AROUND]
    return "\n".join(f"{number}→{text[:_WIDTH]}" for number, text in enumerate(shown, line))
