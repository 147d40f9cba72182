"""How much of a text fits into a number of tokens, judged without a tokenizer and rather too strictly.

A result that pages must stay below the limit at which results go to a file, or reading that file would fill another
one, and so on. The weights were fitted to o200k on code, prose, base64, hexadecimal, CJK, emoji and random characters:
no kind was judged more than 15 % too low, which `SAFETY` makes up for.
"""

from __future__ import annotations

import re

SAFETY = 0.85
"""Part of a limit that a page is filled to."""
_KINDS: tuple[tuple[str, float], ...] = (
    ("[a-z]{17,}", 0.55),
    ("[a-z]+", 0.4),
    ("[A-Z]+", 0.6),
    ("[0-9]+", 0.34),
    (" +", 0.07),
    ("[\r\n\t]+", 0.5),
    (r"[!-/:-@\[-`{-~]+", 0.6),
    ("[\u0400-\u045f]+", 0.9),
    ("[\x80-\u06ff]+", 1.4),
    ("[\u0700-\u2fff]+", 2.2),
    ("[\u3000-\uffff]+", 1.9),
    ("[\U00010000-\U0010ffff]+", 3.4),
    ("[\x00-\x1f\x7f]+", 1.0),
)
"""Runs of like characters, and the tokens that one of them may cost."""
_RUN = re.compile("|".join(f"({kind})" for kind, _ in _KINDS))
_WEIGHTS = tuple(weight for _, weight in _KINDS)
_BLANKS = 5
"""The number of the kind that is blanks."""


def cost(text: str) -> float:
    """About how many tokens `text` is, rather too many than too few."""
    return sum(_run_cost(match) for match in _RUN.finditer(text))


def fitting(text: str, tokens: float) -> tuple[int, float]:
    """How many characters of `text` fit into `tokens`, and how many tokens are left then."""
    left = tokens
    for match in _RUN.finditer(text):
        price = _run_cost(match)
        if price > left:
            return match.start() + max(0, int((left - 1) / _WEIGHTS[(match.lastindex or 1) - 1])), 0.0
        left -= price
    return len(text), left


def _run_cost(match: re.Match[str]) -> float:
    """A run costs a token at least, but for blanks: a single one is part of the word that follows."""
    kind = match.lastindex or 1
    weighed = (match.end() - match.start()) * _WEIGHTS[kind - 1]
    return weighed if kind == _BLANKS else max(1.0, weighed + 0.25)
