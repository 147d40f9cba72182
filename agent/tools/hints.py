"""Why a text is not in a file: what the model can be told so that its next attempt succeeds."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from ..stand_ins import MASK
from .answers import count

LINE_NUMBER = re.compile(r"[ \t]*(\d+)(?:@\d+)?→")
"""How `read_file` and `grep` begin a line."""
_LINES = 20_000
"""Lines that are compared at most."""
_WORDS = 2_000
"""Words of a text up to which it is looked for with other blanks between them."""
_AROUND = 3
"""Lines shown from the nearest one on."""
_WIDTH = 200
_LIKE = 0.6
"""Likeness from which a line is worth showing."""
_QUOTES = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u200b": None}
)
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\'": "'", "\\\\": "\\"}
_BLANKS = {"\t": "tab", "\n": "line break", " ": "space", "\u00a0": "no-break space", "\r": "carriage return"}


def numbered(text: str) -> bool:
    """Whether all lines of `text` bear line numbers that count on, as only a copy from `read_file` or `grep` does."""
    lines = text.removesuffix("\n").split("\n")
    found = [LINE_NUMBER.match(line) for line in lines]
    numbers = [int(match[1]) for match in found if match]
    return len(numbers) == len(lines) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def why_missing(text: str, old: str, new: str) -> str:
    """What stands in `text` where `old` may have been meant; both with LF."""
    if LINE_NUMBER.match(old):
        return _with_numbers(text, old)
    if mask := MASK.search(old):
        return f"{mask[0]} stands for a secret that is not shown to you: leave it out of old_string."
    lines = text.removesuffix("\n").split("\n")
    if found := _other_blanks(text, lines, old) or _other_escapes(text, lines, old) or _other_marks(lines, old):
        return found
    if new.strip() and new in text:
        return f"The new text is already there, at line {_line(text, text.index(new))}."
    return _nearest(lines, old)


def _with_numbers(text: str, old: str) -> str:
    plain = "\n".join(LINE_NUMBER.sub("", line, count=1) for line in old.split("\n"))
    where = f" Without, it stands at line {_line(text, text.index(plain))}." if plain and plain in text else ""
    return f"It has line numbers of read_file: give only what follows the arrows.{where}"


def _other_blanks(text: str, lines: Sequence[str], old: str) -> str | None:
    """What to say if only blanks (tabs, spaces, line breaks) differ."""
    words = old.split()
    if not words or len(words) > _WORDS or len(lines) > _LINES:
        return None
    match = re.search(r"(\s+)".join(map(re.escape, words)), text)
    if match is None:
        return None
    start, end = match.span()
    lead, *between, trail = (
        old[: len(old) - len(old.lstrip())],
        *re.findall(r"\s+", old.strip()),
        old[len(old.rstrip()) :],
    )
    before = text[len(text[:start].rstrip()) : start]
    after = text[end : len(text) - len(text[end:].lstrip())]
    have = [_edge(before, lead, last=True), *match.groups(), _edge(after, trail, last=False)]
    at = next(
        (n for n, (one, other) in enumerate(zip(have, [lead, *between, trail], strict=True)) if one != other), None
    )
    if at is None:
        return None
    given = [lead, *between, trail][at]
    line = _line(text, match.end(at) if 0 < at < len(words) else start if at == 0 else end)
    place = f"before `{words[at][:40]}`" if at < len(words) else f"after `{words[-1][:40]}`"
    first = max(_line(text, start), line - 1)
    return (
        f"Only whitespace differs: {place} in line {line} the file has {_blanks(have[at])}, old_string "
        f"{_blanks(given)}. In the file it is:\n{_quoted(lines, first)}"
    )


def _edge(blanks: str, given: str, *, last: bool) -> str:
    """The part of the blanks there that `given` is to be compared with: as many lines of them."""
    if not given:
        return ""
    lines = blanks.split("\n")
    wanted = given.count("\n") + 1
    return "\n".join(lines[-wanted:] if last else lines[:wanted])


def _blanks(run: str) -> str:
    """`1 line break and 4 spaces`."""
    parts = [count(len(list(same)), _BLANKS.get(blank, f"U+{ord(blank):04X}")) for blank, same in groupby(run)]
    if len(parts) > 4:
        parts = [*parts[:3], "more"]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else "nothing"


def _other_escapes(text: str, lines: Sequence[str], old: str) -> str | None:
    """What to say if `old` was escaped once too often, or once too seldom."""
    for plain, what in _escaped(old):
        if plain != old and plain in text:
            line = _line(text, text.index(plain))
            return f"{what}: in the file it stands at line {line} like this:\n{_quoted(lines, line)}"
    return None


def _escaped(old: str) -> Iterator[tuple[str, str]]:
    yield re.sub(r"\\[nt\"'\\]", lambda m: _ESCAPES[m[0]], old), "old_string is escaped once too often"
    yield html.unescape(old), "old_string has HTML entities"
    yield html.escape(old, quote=False), "The file has HTML entities"
    yield old.replace("\n", "\\n").replace("\t", "\\t"), "The file has `\\n` or `\\t` in two characters there"


def _other_marks(lines: Sequence[str], old: str) -> str | None:
    """What to say if only case, quotation marks, dashes or the coding of letters differ."""
    wanted = [_folded(line) for line in old.strip("\n").split("\n")]
    have = [_folded(line) for line in lines[:_LINES]]
    if not any(wanted):
        return None
    for at in range(len(have) - len(wanted) + 1):
        if have[at].endswith(wanted[0]) if len(wanted) > 1 else wanted[0] in have[at]:
            inner = have[at + 1 : at + len(wanted) - 1] == wanted[1:-1]
            if len(wanted) == 1 or (inner and have[at + len(wanted) - 1].startswith(wanted[-1])):
                what = "Only case, quotation marks, dashes, or how a letter is coded"
                return f"{what} differs at line {at + 1}. In the file it is:\n{_quoted(lines, at + 1)}"
    return None


def _folded(line: str) -> str:
    return unicodedata.normalize("NFKC", " ".join(line.translate(_QUOTES).split())).casefold()


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


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _quoted(lines: Sequence[str], line: int) -> str:
    shown = lines[line - 1 : line - 1 + _AROUND]
    return "\n".join(f"{number}→{text[:_WIDTH]}" for number, text in enumerate(shown, line))
