"""A text that stands in every line that an expression matches: a file without it need not be searched.

On the safe side: where an expression is not understood, there is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NOT_UNDERSTOOD = re.compile(r"\||\(\?|\)[?*{]|\\[^\W_a-zA-Z]|\\[xuUN]")
"""Alternatives, groups with a meaning or that may be missing, characters by number."""
_TOKEN = re.compile(
    r"(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<escape>\\[A-Za-z])|\\(?P<mark>.)"
    r"|(?P<count>[?*+]\??|\{[^}]*\}\??)|(?P<special>[.^$()])|(?P<plain>.)"
)
_OTHER_CASE = re.compile("[kKsSiI]|[^\x00-\x7f]")
"""Letters that match others than A to Z when case does not count: the Kelvin sign, long s, i without and with a dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Bytes that a file must hold; empty if nothing is known."""

    data: bytes = b""
    ignore_case: bool = False
    """Of A to Z only the small ones are in `data`."""

    def within(self, content: bytes) -> bool:
        """Whether a file's content has it."""
        return self.data in (content.lower() if self.ignore_case else content)


def sought_in(pattern: str, *, literal: bool, ignore_case: bool) -> Sought:
    """The longest text that a line must hold to match `pattern`."""
    runs = [pattern] if literal else _runs(pattern)
    if ignore_case:
        runs = [part.lower() for run in runs for part in _OTHER_CASE.split(run)]
    try:
        return Sought(data=max(runs, key=len).encode(), ignore_case=ignore_case)
    except UnicodeEncodeError:
        return Sought()


def _runs(pattern: str) -> list[str]:
    if _NOT_UNDERSTOOD.search(pattern):
        return [""]
    runs = [""]
    for token in _TOKEN.finditer(pattern):
        if character := token["plain"] or token["mark"]:
            runs[-1] += character
        elif token["count"]:  # what it counts may be missing, or there more than once
            runs += [runs.pop()[:-1], ""]
        else:
            runs.append("")
    return runs
