"""What of a long text is worth seeing at once: its first and last lines, and the lines between that report an error.

A preview says how much it leaves out, line by line, so that nobody takes it for the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

EDGE_LINES = 5
"""Lines shown of the beginning and of the end."""
LINE_CHARACTERS = 1_000
"""Characters shown of one line at most."""
PREVIEW_CHARACTERS = 1_600
"""Characters of a whole preview, about 400 tokens."""
ERROR_LINES = 4
"""Lines shown between the edges because they report an error."""

_ERROR = re.compile(
    r"\b(error|exception|traceback|failed|failure|fatal|panic|assert(ion)?error|segfault|undefined)\b|^E\s",
    re.IGNORECASE,
)


def preview(text: str) -> str:
    """At most about 1,600 characters of `text`, each line with its number."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    chosen = _chosen(lines)
    width = min(LINE_CHARACTERS, max(80, PREVIEW_CHARACTERS // max(1, len(chosen)) - 10))
    shown: list[str] = []
    previous = -1
    for number in chosen:
        if number > previous + 1:
            shown.append(f"… {number - previous - 1:,} lines not shown")
        shown.append(f"{number + 1}→{_cut(lines[number], width)}")
        previous = number
    return "\n".join(shown)


def _chosen(lines: Sequence[str]) -> list[int]:
    """Which lines to show: the edges, and the last errors between them."""
    if len(lines) <= 2 * EDGE_LINES:
        return list(range(len(lines)))
    inner = range(EDGE_LINES, len(lines) - EDGE_LINES)
    errors = [number for number in inner if _ERROR.search(lines[number][:LINE_CHARACTERS])]
    edges = [*range(EDGE_LINES), *range(len(lines) - EDGE_LINES, len(lines))]
    return sorted([*edges, *errors[-ERROR_LINES:]])


def _cut(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    return f"{line[:width]}… {len(line) - width:,} characters of this line not shown"
