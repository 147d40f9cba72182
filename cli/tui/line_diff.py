"""Two texts compared line by line, and changed lines word by word: what a diff says, before it is drawn.

Pure, and bounded in time whatever is compared. How the lines look is the business of `diffs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Literal

Sign = Literal[" ", "-", "+"]
Marks = tuple[tuple[int, int], ...]

COMPARED = 1_000
"""Lines up to which old and new are compared: the time for that grows faster than their number."""
_WORDS = 200
"""Words of a line up to which it is compared by words; of a longer one, what differs is marked as one piece."""
_LENGTH = 2_000
"""Characters of a line up to which it is looked at for words at all."""
_ALIKE = 0.4
"""Lines that share less than this share of their words are two lines, not one that was changed."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """A line of a diff."""

    sign: Sign
    text: str
    old: int | None = None
    """Its number before, from 1; None where it was not there, or where that is not known."""
    new: int | None = None
    """Its number after."""
    marks: Marks = ()
    """The characters that changed, where the line was changed and not only added or removed."""


Hunk = tuple[DiffLine, ...]


def hunks(old: Sequence[str], new: Sequence[str], *, first: int | None = None, context: int = 2) -> list[Hunk]:
    """What differs, with `context` equal lines around it; `first` is the number of the first line, if it is known."""
    before = _common(old, new)
    after = _common(old[before:][::-1], new[before:][::-1])
    start = max(0, before - context)
    ends = (len(old) - max(0, after - context), len(new) - max(0, after - context))
    lines = (old[start : ends[0]], new[start : ends[1]])
    at = None if first is None else first + start
    return [_hunk(group, *lines, at) for group in _groups(*lines, context)]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines both begin with."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))


_Opcode = tuple[str, int, int, int, int]


def _groups(old: Sequence[str], new: Sequence[str], context: int) -> Iterable[Sequence[_Opcode]]:
    if len(old) + len(new) > COMPARED:
        return [[("replace", 0, len(old), 0, len(new))]] if old != new else []
    return SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context)


def _hunk(group: Sequence[_Opcode], old: Sequence[str], new: Sequence[str], first: int | None) -> Hunk:
    lines: list[DiffLine] = []
    for tag, old_start, old_end, new_start, new_end in group:
        was, now = _numbers(first, old_start), _numbers(first, new_start)
        if tag == "equal":
            same = zip(old[old_start:old_end], was, now, strict=False)
            lines += [DiffLine(sign=" ", text=text, old=a, new=b) for text, a, b in same]
            continue
        removed = [DiffLine(sign="-", text=t, old=n) for t, n in zip(old[old_start:old_end], was, strict=False)]
        added = [DiffLine(sign="+", text=t, new=n) for t, n in zip(new[new_start:new_end], now, strict=False)]
        lines += marked(removed, added)
    return tuple(lines)


def _numbers(first: int | None, start: int) -> Iterator[int | None]:
    at = None if first is None else first + start
    while True:
        yield at
        at = None if at is None else at + 1


def marked(removed: Sequence[DiffLine], added: Sequence[DiffLine]) -> list[DiffLine]:
    """Lines that stand in each other's place, with what changed within them."""
    if len(removed) + len(added) > COMPARED:
        return [*removed, *added]
    pairs = [words(a.text, b.text) for a, b in zip(removed, added, strict=False)]
    was = [replace(line, marks=marks) for line, (marks, _) in zip(removed, pairs, strict=False)]
    now = [replace(line, marks=marks) for line, (_, marks) in zip(added, pairs, strict=False)]
    return [*was, *removed[len(pairs) :], *now, *added[len(pairs) :]]


def words(old: str, new: str) -> tuple[Marks, Marks]:
    """The characters of each line that are not in the other; none where the lines have too little in common."""
    if max(len(old), len(new)) > _LENGTH:
        return (), ()
    pieces = [match[0] for match in _WORD.finditer(old)], [match[0] for match in _WORD.finditer(new)]
    if max(map(len, pieces)) > _WORDS:
        return _ends(old, new)
    matcher = SequenceMatcher(None, *pieces, autojunk=False)
    same = sum(not piece.isspace() for a, _, size in matcher.get_matching_blocks() for piece in pieces[0][a : a + size])
    if same < _ALIKE * max(sum(not piece.isspace() for piece in line) for line in pieces):
        return (), ()
    changed = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        _marks(pieces[0], [(start, end) for _, start, end, _, _ in changed]),
        _marks(pieces[1], [(start, end) for _, _, _, start, end in changed]),
    )


def _marks(pieces: Sequence[str], spans: Iterable[tuple[int, int]]) -> Marks:
    """Pieces as characters. What is marked at both sides of a mere space is marked in one."""
    at = list(accumulate(map(len, pieces), initial=0))
    found: list[tuple[int, int]] = []
    last = 0
    for start, end in spans:
        if start == end:
            continue
        if found and not "".join(pieces[last:start]).strip():
            found[-1] = (found[-1][0], at[end])
        else:
            found.append((at[start], at[end]))
        last = end
    return tuple(found)


def _ends(old: str, new: str) -> tuple[Marks, Marks]:
    """What lies between the beginning and the end that both lines share."""
    before = _common(old, new)
    after = _common(old[before:][::-1], new[before:][::-1])
    spans = ((before, len(old) - after), (before, len(new) - after))
    was, now = (((start, end),) if start < end else () for start, end in spans)
    return was, now


def patch(lines: Iterable[str]) -> Iterator[DiffLine | str]:
    """The lines of git's diff with their numbers; as they are, those that are about files and places."""
    inside, was, now = False, 0, 0
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in lines:
        if (line[:1] != "-" or added) and line[:1] != "+":
            yield from marked(removed, added)
            removed, added = [], []
        if place := _HUNK.match(line):
            inside, was, now = True, int(place[1]), int(place[2])
            yield line
        elif not inside or line[:1] not in {" ", "-", "+"}:
            inside = inside and line.startswith("\\")
            yield line
        elif line[0] == "-":
            removed.append(DiffLine(sign="-", text=line[1:], old=was))
            was += 1
        elif line[0] == "+":
            added.append(DiffLine(sign="+", text=line[1:], new=now))
            now += 1
        else:
            yield DiffLine(sign=" ", text=line[1:], old=was, new=now)
            was, now = was + 1, now + 1
    yield from marked(removed, added)
