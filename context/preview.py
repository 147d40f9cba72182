"""What of a long text is worth seeing at once: its first and last lines, the lines between that report an error, and
of a JSON document its shape.

A preview says how much it leaves out, line by line, so that nobody takes it for the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .shape import shape_of

EDGE_LINES = 5
"""Lines shown of the beginning and of the end."""
LINE_CHARACTERS = 1_000
"""Characters shown of one line at most."""
PREVIEW_TOKENS = 400
"""Tokens of a whole preview at most."""
ERROR_LINES = 4
"""Lines shown between the edges because they report an error: the last ones."""

_ERROR = re.compile(
    r"\b(error|\w+error|exception|\w+exception|traceback|failed|failure|fatal|panic|assert|segfault|undefined)\b|^E\s",
    re.IGNORECASE,
)
_SIGNS = (
    *("rror", "xception", "raceback", "ailed", "ailure", "atal", "anic", "ssert", "egfault", "ndefined"),
    *("RROR", "XCEPTION", "FAILED", "FAILURE", "FATAL", "PANIC", "ASSERT", "UNDEFINED", "\nE "),
)
"""What is in every line that `_ERROR` takes but the oddly spelled: finding them in millions of lines costs little."""
_CANDIDATES = 100
"""Lines with a sign that are looked at."""
_LEAST = 60
"""Characters below which a line is not worth its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    number: int
    text: str


def preview(text: str, *, tokens: int = PREVIEW_TOKENS, count: Callable[[str], int]) -> str:
    """The lines of `text` worth seeing, each with its number, in at most about `tokens` tokens by `count`."""
    shape = shape_of(text)[: tokens * 5 // 4]
    if shape and 2 * count(shape) <= tokens:
        return f"{shape}\n{_edges(text, tokens - count(shape) - 1, count)}"
    return _edges(text, tokens, count)


def preview_ends(head: str, tail: str, lines: int, *, tokens: int = PREVIEW_TOKENS, count: Callable[[str], int]) -> str:
    """The same for a text of `lines` lines of which only the beginning and the end are at hand.

    The last line of `head` and the first of `tail` may be parts of lines and are not shown, unless they are the only.
    """
    first = head.split("\n")[:-1] or [head]
    last = tail.removesuffix("\n").split("\n")
    shown = [_Line(number=number, text=text) for number, text in enumerate(first[:EDGE_LINES])]
    offset = lines - len(last)
    errors = [offset + number for number in _errors(tail) if 0 < number < len(last) - EDGE_LINES][:ERROR_LINES]
    numbers = sorted({*errors, *range(max(lines - EDGE_LINES, offset + (len(last) > 1)), lines)})
    after = shown[-1].number
    shown += [_Line(number=number, text=last[number - offset]) for number in numbers if number > after]
    return _fitted(shown, tokens, count)


def _edges(text: str, tokens: int, count: Callable[[str], int]) -> str:
    return _fitted(_chosen(text), tokens, count)


def _fitted(lines: list[_Line], tokens: int, count: Callable[[str], int]) -> str:
    """The lines as they are shown, cut so that they fit."""
    characters = 4 * tokens
    while count(shown := _render(lines, characters)) > tokens and (characters > _LEAST or len(lines) > 2):
        characters = max(_LEAST, characters * 3 // 4)
        if len(lines) > 2 and characters < _LEAST * len(lines):
            del lines[len(lines) // 2]
    return shown


def _render(lines: Sequence[_Line], characters: int) -> str:
    width = _width([len(line.text) for line in lines], characters - 10 * len(lines))
    shown: list[str] = []
    previous = -1
    for line in lines:
        if line.number > previous + 1:
            shown.append(f"… {line.number - previous - 1:,} lines not shown")
        shown.append(f"{line.number + 1}→{_cut(line.text, width)}")
        previous = line.number
    return "\n".join(shown)


def _width(lengths: Sequence[int], room: int) -> int:
    """Characters that a line may have so that all together have `room`; short lines leave theirs to the long ones."""
    for position, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - position)
        if length > share:
            return max(10, min(LINE_CHARACTERS, share))
        room -= length
    return LINE_CHARACTERS


def _chosen(text: str) -> list[_Line]:
    """The lines to show: the edges, and the last errors between them."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    last = len(lines) - EDGE_LINES
    if last <= EDGE_LINES:
        numbers = list(range(len(lines)))
    else:
        errors = [number for number in _errors(text) if EDGE_LINES <= number < last]
        numbers = sorted([*range(EDGE_LINES), *errors[:ERROR_LINES], *range(last, len(lines))])
    return [_Line(number=number, text=lines[number]) for number in numbers]


def _errors(text: str) -> list[int]:
    """The numbers of the last lines that report an error, the last first; enough of them to spare some at the edge."""
    found: list[int] = []
    signs = {sign: text.rfind(sign) for sign in _SIGNS}
    for _ in range(_CANDIDATES):
        at = max(signs.values())
        if at < 0 or len(found) == ERROR_LINES + EDGE_LINES:
            break
        begin = text.rfind("\n", 0, at + 1) + 1
        if _ERROR.search(text[begin : begin + LINE_CHARACTERS].partition("\n")[0]):
            found.append(text.count("\n", 0, begin))
        signs |= {sign: text.rfind(sign, 0, begin) for sign, position in signs.items() if position >= begin - 1}
    return found


def _cut(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    return f"{line[:width]}… {len(line) - width:,} characters not shown"
