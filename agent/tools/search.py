"""`glob` and `grep`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.paths import printable
from ..backends.protocol import Found, Listed, Match
from ..runtime import ToolRuntime
from ..tool import ToolResult, tool
from .answers import answering, count, failure
from .limits import SAFETY, cost

GLOB_FILES = 200
GREP_LINES = 100
GREP_MOST = 5_000
"""Lines that may be asked for."""
_ENDING = 100
"""Tokens kept free for what is said at the end."""


@tool(access="read", subject="path")
@answering
async def glob(pattern: str, runtime: ToolRuntime[Any], path: str = ".") -> ToolResult:
    """Find files by name, newest first: `*.py` at any depth, `src/**/test_*.{ts,tsx}`. Skips ignored files."""
    listed = await runtime.backend.glob(pattern, path, limit=GLOB_FILES)
    lines = _within_limit([printable(found) for found in listed.paths], runtime.result_limit)
    notes = _glob_notes(listed, len(lines), path)
    return ToolResult(text="\n".join([*lines, *notes]), summary=count(listed.total, "file"))


def _glob_notes(listed: Listed, shown: int, path: str) -> list[str]:
    notes: list[str] = []
    if not listed.total:
        notes.append(f"No file matches. Ignored files are found only if path names their folder; path was {path}.")
    if shown < listed.total:
        notes.append(f"({listed.total - shown:,} of {listed.total:,} files are not shown: narrow the pattern or path)")
    return notes + _shortfalls(listed.skipped, listed.incomplete)


@tool(access="read", subject="path")
@answering
async def grep(
    pattern: str,
    runtime: ToolRuntime[Any],
    *,
    path: str = ".",
    glob: str | None = None,
    literal: bool = False,
    ignore_case: bool = False,
    limit: int = GREP_LINES,
) -> ToolResult:
    """Search the lines of a file, or of all files below a folder, with a regular expression. Skips ignored files.

    Args:
        glob: Only files that match, such as `*.py`.
        literal: The pattern is plain text.
        limit: Most lines to return.
    """
    if not 1 <= limit <= GREP_MOST:
        return failure(f"limit must be from 1 to {GREP_MOST:,}.")
    found = await runtime.backend.grep(pattern, path, glob=glob, literal=literal, ignore_case=ignore_case, limit=limit)
    lines, shown = _grouped(found.matches, runtime.result_limit * SAFETY - _ENDING)
    notes = _grep_notes(found, shown, path)
    hits = count(len(found.matches), "hit") + ("+" if found.incomplete else "")
    summary = f"{hits} in {count(found.files, 'file')}" if found.matches else "no hits"
    return ToolResult(text="\n".join([*lines, *notes]), summary=summary)


def _grouped(matches: Sequence[Match], tokens: float) -> tuple[list[str], int]:
    """Each file's path on a line and its matches below it, as many as `tokens` allow; and how many these are."""
    lines: list[str] = []
    path, shown = None, 0
    for match in matches:
        new = [_line(match)] if match.path == path else [printable(match.path), _line(match)]
        tokens -= sum(cost(line) + 1 for line in new)
        if tokens < 0 and lines:
            break
        lines += new
        path, shown = match.path, shown + 1
    return lines, shown


def _line(match: Match) -> str:
    place = f"{match.line}@{match.column}" if match.column > 1 else str(match.line)
    return f"{place}→{match.text}{' … (cut)' if match.cut else ''}"


def _grep_notes(found: Found, shown: int, path: str) -> list[str]:
    notes: list[str] = []
    if not found.matches:
        notes.append(f"Nothing found. Ignored files are searched only if path names them; path was {path}.")
    if shown < len(found.matches):
        notes.append(f"({len(found.matches) - shown:,} more lines were found: narrow the pattern, path or glob)")
    return notes + _shortfalls(found.skipped, found.incomplete)


def _shortfalls(skipped: int, incomplete: str | None) -> list[str]:
    notes = [f"(skipped {skipped:,} that could not be read as text)"] if skipped else []
    return [*notes, f"(not all was searched: {incomplete}; narrow the pattern, path or glob)"] if incomplete else notes


def _within_limit(lines: Sequence[str], limit: int) -> list[str]:
    left = limit * SAFETY - _ENDING
    kept: list[str] = []
    for line in lines:
        left -= cost(line) + 1
        if left < 0 and kept:
            break
        kept.append(line)
    return kept
