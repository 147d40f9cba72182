"""The check on a new record, without a model: what the earlier one held by name must not go missing.

A line of the earlier record whose names, paths or numbers no longer stand anywhere in the new text is put back as it
was. A model that lets something go on purpose says so: `retired: NAME` in its record is a place where the name stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .tokens import Counter

_NAMES = re.compile(
    r"`[^`\n]{2,80}`"  # code
    r"|https?://[^\s)>\]]+"
    r"|(?<![\w/])[\w.~-]*/[\w./-]*\w"  # paths
    r"|\b\w+\.[A-Za-z]\w{0,4}\b(?!\()"  # file names
    r"|\b[A-Za-z]+_\w+\b|\b[a-z]+[A-Z]\w*\b"  # identifiers
    r"|\b\d[\d,.]*\d\b"  # numbers of two digits and more
    r"|\"[^\"\n]{2,80}\"",
    re.ASCII,
)
_LINE = 400
"""Characters of a line that is put back at most."""


def names_in(text: str) -> frozenset[str]:
    """What a text says by name: code, paths, identifiers, numbers, quotations."""
    return frozenset(found.strip('`"') for found in _NAMES.findall(text))


def lost_lines(earlier: str, now: str, *, limit: int, counter: Counter) -> tuple[str, ...]:
    """The lines of `earlier` with names that `now` has nowhere, as they were, in at most `limit` tokens together.

    The last ones count most: they are kept where not all have room.
    """
    kept: list[str] = []
    used = 0
    for line in reversed(list(_lines_with_names(earlier))):
        if all(name in now for name in names_in(line)):
            continue
        used += counter.text(line) + 1
        if used > limit:
            break
        kept.append(line)
    return tuple(reversed(kept))


def _lines_with_names(text: str) -> Iterator[str]:
    for line in dict.fromkeys(text.split("\n")):
        stripped = line.strip().removeprefix("- ").strip()
        if stripped and not line.startswith("#") and names_in(stripped) and not stripped.lower().startswith("retired:"):
            yield stripped[:_LINE]
