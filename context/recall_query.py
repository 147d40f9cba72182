"""What is asked of recall, and how a text is looked at for it.

The index (`context.recall_index`) finds where to look; whether a text really answers is always judged here, so with
and without an index the same is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import Literal, Protocol

from .recall_passages import RECALL_TOOL, Role

Mode = Literal["words", "literal", "regex"]
Order = Literal["rank", "newest"]
MODES: tuple[Mode, ...] = ("words", "literal", "regex")
_PIECES = 16
"""Words of a query that count."""
_PIECE = re.compile(r'"([^"]+)"|(\S+)')
_RUN = re.compile(r"[^\W_]+")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts whose words stand without blanks between them; each of their characters counts as a word."""
_ONE = re.compile(f"([{_UNSPACED}])")
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?Z?)?)?)?")
_SPOTS = 200
"""Places of a word in a text that are looked at."""
_NEAR = 400
"""Characters around a hit in which other words make it a better one."""

Span = tuple[int, int]
Find = Callable[[str], Span | None]
"""Where in a text the best hit is, in characters; None if the text does not answer."""


class QueryError(ValueError):
    """A query that makes no sense; the text says what would."""


class About(Protocol):
    """What filters look at: passages, and rows of the index."""

    @property
    def role(self) -> Role: ...
    @property
    def tool(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def time(self) -> str: ...
    @property
    def message(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search. An empty filter lets everything through."""

    text: str
    mode: Mode = "words"
    """All words in any order, with phrases in quotes; a text exactly as it is written; or a regular expression."""
    role: Role | None = None
    tool: str = ""
    """A tool that was called or that answered. Recall's own calls and results are found only if it is named here."""
    file: str = ""
    """A part of a path, or a pattern with `*`, `?` or `[`."""
    after: str = ""
    """The beginning of an ISO time in UTC, such as `2026-11-30T12`: nothing older."""
    before: str = ""
    """Nothing newer, this moment excluded."""
    session: str | None = None
    """The session to search; None for all of the project."""
    order: Order | None = None
    """By rank for words and newest first for all else, unless it is said."""
    skip: str = ""
    """A message that does not count: the one that asks."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise QueryError("a search needs a query")
        for name in ("after", "before"):
            if (value := getattr(self, name)) and not _TIME.fullmatch(value):
                raise QueryError(f"{name} is {value!r}; it must be a UTC time such as 2026-11-30 or 2026-11-30T21:15")
        if self.mode == "regex":
            compile_regex(self.text)

    @property
    def by_rank(self) -> bool:
        """Whether the best come first, not the newest."""
        return self.order == "rank" or (self.order is None and self.mode == "words")

    def fits(self, about: About) -> bool:
        """Whether the filters let something through."""
        return (
            (self.role is None or about.role == self.role)
            and about.tool == (self.tool or about.tool)
            and (about.tool != RECALL_TOOL or self.tool == RECALL_TOOL)
            and (not self.file or file_fits(about.file, self.file))
            and about.time >= self.after.rstrip("Z")
            and (not self.before or about.time < self.before.rstrip("Z"))
            and (not self.skip or about.message != self.skip)
        )


def compile_regex(text: str) -> re.Pattern[str]:
    """The pattern; `^` and `$` are the edges of lines. Raises `QueryError`."""
    try:
        return re.compile(text, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise QueryError(f"the regular expression cannot be read: {error}") from error


def file_fits(file: str, pattern: str) -> bool:
    """Whether a path holds `pattern`, or, if that has wildcards, ends with what it describes."""
    if not any(c in pattern for c in "*?["):
        return pattern in file
    return fnmatchcase(file, pattern) or fnmatchcase(file, f"*/{pattern}")


def pieces(text: str) -> tuple[str, ...]:
    """The words and quoted phrases of a query, those without a letter or digit left out."""
    found = (quoted or word for quoted, word in _PIECE.findall(text))
    return tuple(dict.fromkeys(piece for piece in found if _RUN.search(piece)))[:_PIECES]


def spaced(text: str) -> str:
    """The text as the index of words takes it: a blank around each character of scripts without blanks."""
    text = text.replace("\0", " ")
    return text if text.isascii() else _ONE.sub(r" \1 ", text)


def find_literal(wanted: str) -> Find:
    """Finds a text as it is written."""

    def find(text: str) -> Span | None:
        at = text.find(wanted)
        return None if at < 0 else (at, at + len(wanted))

    return find


def find_words(wanted: Sequence[str], *, every: bool) -> Find:
    """Finds where most of the words stand together; with `every`, only in texts that have all of them."""
    patterns = [_word(piece) for piece in wanted]

    def find(text: str) -> Span | None:
        spots = [[match.span() for match in islice(one.finditer(text), _SPOTS)] for one in patterns]
        if every and not all(spots):
            return None
        return _densest(spots)

    return find


def _word(piece: str) -> re.Pattern[str]:
    runs = [re.escape(run) for run in _RUN.findall(piece)]
    head = "" if _ONE.match(piece.lstrip("_")) else r"(?<![^\W_])"
    tail = "" if _ONE.match(piece[-1]) else r"(?![^\W_])"
    return re.compile(head + r"[\W_]+".join(runs) + tail, re.IGNORECASE)


def _densest(spots: Sequence[Sequence[Span]]) -> Span | None:
    """The spot near which most different words stand, the first of the best."""
    every = sorted((span, number) for number, spans in enumerate(spots) for span in spans)
    best: Span | None = None
    most = 0
    for at, (span, _) in enumerate(every):
        near: set[int] = set()
        for other, number in every[at:]:
            if other[0] > span[0] + _NEAR:
                break
            near.add(number)
        if len(near) > most:
            best, most = span, len(near)
    return best
