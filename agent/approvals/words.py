"""The words of a shell line, read as the shell reads them: quotes and escapes away, nothing expanded.

Strictly, anything that the shell would compute is a `Doubt`. Loosely, it becomes `UNKNOWN`, so that a rule that denies
can still be held against the rest. Where words begin and end is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ACTIVE = {"*": "\ue001", "?": "\ue002", "[": "\ue003", "~": "\ue004", "$?": "\ue005"}
"""What stands in a word for what the shell expands, so that `rm '*'` and `rm *` stay two things."""
UNKNOWN = "\ue006"
"""What stands in a loosely read word for any text, spaces included."""
_PATTERNS = frozenset(ACTIVE[c] for c in "*?[")
_ENDS = frozenset(" \t\n;&|<>()")
_EXPANDS = re.compile(r"\$[\w{(\[@*#?$!'\"-]", re.ASCII)
_VARIABLE = re.compile(r"\$(?:\w+|[@*#?$!-])", re.ASCII)
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_NAMES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Doubt(Exception):
    """Something is not understood; the text says what, for a person."""


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def opens_with_pattern(word: str) -> bool:
    """The shell may make any word of it, an option too."""
    return word[:1] in _PATTERNS


def has_pattern(word: str) -> bool:
    """The shell puts names of files in its place."""
    return any(sign in word for sign in _PATTERNS)


def glob_regex(word: str) -> str:
    """A pattern of the shell as a regular expression that takes at least what the shell would."""
    text = re.escape(word).replace(ACTIVE["*"], ".*").replace(ACTIVE["?"], ".").replace(ACTIVE["~"], ".*")
    return re.sub(rf"{ACTIVE['[']}.*?\]", ".", text)


def computed(word: str) -> bool:
    """The shell, not the line, says what the word is."""
    return UNKNOWN in word or any(sign in word for sign in ACTIVE.values())


def written(word: str) -> str:
    """A word as a person wrote it, but for its quotes."""
    return word.translate({ord(sign): c for c, sign in ACTIVE.items()})


def decode(text: str) -> str:
    """The word that `text` is. Raises `Doubt`."""
    return _Word(text, None).read()


def decode_loosely(text: str, expansions: Mapping[int, int]) -> str:
    """The same with `UNKNOWN` for what the shell computes; `expansions` says where those end, by where they begin."""
    return _Word(text, expansions).read()


class _Word:
    """Reads one word."""

    def __init__(self, text: str, expansions: Mapping[int, int] | None) -> None:
        self._text = text
        self._expansions = expansions
        self._at = 0

    def read(self) -> str:
        pieces: list[str] = []
        while self._at < len(self._text):
            pieces.append(self._piece())
        return "".join(pieces)

    def _piece(self) -> str:
        c = self._text[self._at]
        match c:
            case "'":
                return self._single_quoted()
            case '"':
                return self._double_quoted()
            case "\\":
                return self._escaped()
            case "$" | "`":
                return self._dollar(quoted=False)
            case "{" if self._text.startswith("{}", self._at):
                return self._take(2, "{}")
            case "{" | "}":
                return self._unclear(f"`{c}` (a group, a function or an expansion)", len(self._text))
            case _ if c in _ENDS:
                return self._unclear(f"`{c}` where it is not expected", self._expansion_end())
            case _:
                return self._take(1, ACTIVE.get(c, c))

    def _take(self, length: int, text: str) -> str:
        self._at += length
        return text

    def _unclear(self, what: str, end: int) -> str:
        """Goes on at `end` when reading loosely. Raises `Doubt` otherwise."""
        if self._expansions is None:
            raise Doubt(what)
        self._at = max(end, self._at + 1)
        return UNKNOWN

    def _expansion_end(self) -> int:
        known = (self._expansions or {}).get(self._at)
        variable = _VARIABLE.match(self._text, self._at)
        return known or (variable.end() if variable else self._at + 1)

    def _single_quoted(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            return self._unclear("a quote that is not closed", len(self._text))
        inner, self._at = self._text[self._at + 1 : end], end + 1
        return inner

    def _double_quoted(self) -> str:
        self._at += 1
        pieces: list[str] = []
        while (c := self._text[self._at : self._at + 1]) != '"':
            if not c:
                return "".join(pieces) + self._unclear("a quote that is not closed", len(self._text))
            if c == "\\" and self._text[self._at + 1 : self._at + 2] in {"$", "`", '"', "\\", "\n"}:
                pieces.append(self._escaped())
            else:
                pieces.append(self._dollar(quoted=True) if c in "$`" else self._take(1, c))
        self._at += 1
        return "".join(pieces)

    def _escaped(self) -> str:
        following = self._text[self._at + 1 : self._at + 2]
        if not following:
            return self._unclear("a backslash at the end", len(self._text))
        return self._take(2, "" if following == "\n" else following)

    def _dollar(self, *, quoted: bool) -> str:
        """What begins with a dollar or a backtick."""
        text, at = self._text, self._at
        if text.startswith("$?", at):
            return self._take(2, ACTIVE["$?"])  # a number, whatever happens
        if text[at] == "`":
            return self._unclear("a command in backticks", self._expansion_end())
        if (quoted and text.startswith(('$"', "$'"), at)) or not _EXPANDS.match(text, at):
            return self._take(1, "$")  # it expands nothing
        if text.startswith("$'", at) and self._expansions is not None:
            return self._ansi_quoted()
        if text.startswith('$"', at) and self._expansions is not None:
            return self._take(1, "")
        return self._unclear("an expansion (`$…`)", self._expansion_end())

    def _ansi_quoted(self) -> str:
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self._text, self._at)
        if found is None:
            return self._unclear("a quote that is not closed", len(self._text))
        self._at = found.end()
        return _ANSI.sub(_ansi, found[1])


def _ansi(match: re.Match[str]) -> str:
    """The character of an escape in `$'…'`."""
    digits = match[1] or match[2] or match[3]
    if digits or match[4]:
        number = int(digits, 16) if digits else int(match[4], 8)
        return chr(number) if number <= 0x10FFFF else ""
    return _ANSI_NAMES.get(match[5], match[5])
