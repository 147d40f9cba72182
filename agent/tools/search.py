"""`glob` and `grep`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.protocol import Found, Listed, Match, Search
from ..runtime import ToolRuntime
from ..tool import ToolResult, tool
from .answers import answering, count, failure, name_line
from .limits import SAFETY, cost

GLOB_FILES = 200
GREP_LINES = 100
GREP_MOST = 5_000
"""Lines that may be asked for."""
CONTEXT_MOST = 50
"""Lines around a hit that may be asked for."""
_ENDING = 100
"""Tokens kept free for what is said at the end."""


@tool(access="read", subject="path")
@answering
async def glob(pattern: str, runtime: ToolRuntime[Any], path: str = ".") -> ToolResult:
    """Find files by name, newest first: `*.py` at any depth, `src/**/test_*.{ts,tsx}`. Skips ignored files."""
    listed = await runtime.backend.glob(pattern, path, limit=GLOB_FILES)
    lines = _within_limit([name_line(found) for found in listed.paths], runtime.result_limit)
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
    type: str | None = None,
    literal: bool = False,
    ignore_case: bool = False,
    context: int = 0,
    files: bool = False,
    limit: int = GREP_LINES,
) -> ToolResult:
    """Search the lines of a file, or of all files below a folder, with a regular expression. Skips ignored files.

    Args:
        glob: Only files that match, such as `*.py`.
        type: Only files of a kind, such as `py`.
        literal: The pattern is plain text.
        context: Lines to show around each hit, as `number-text`.
        files: Only name the files and count their hits.
        limit: Most hits (or files) to return.
    """
    if not 1 <= limit <= GREP_MOST:
        return failure(f"limit must be from 1 to {GREP_MOST:,}.")
    if not 0 <= context <= CONTEXT_MOST:
        return failure(f"context must be from 0 to {CONTEXT_MOST}.")
    search = Search(
        pattern=pattern,
        literal=literal,
        ignore_case=ignore_case,
        glob=glob or None,
        kind=type or None,
        context=context,
        files=files,
        limit=limit,
    )
    found = await runtime.backend.grep(search, path)
    if files:
        counts = [f"{name_line(name)}: {number:,}" for name, number in found.counts]
        lines = _within_limit(counts, runtime.result_limit)
        left_out = (
            count(len(counts) - len(lines), "more file was", "more files were") if len(lines) < len(counts) else ""
        )
    else:
        lines, left_out = _grouped(found.matches, runtime.result_limit * SAFETY - _ENDING)
    return ToolResult(text="\n".join([*lines, *_grep_notes(found, left_out, path)]), summary=_grep_summary(found))


def _grep_summary(found: Found) -> str:
    if not found.counts:
        return "no hits"
    hits = count(sum(number for _, number in found.counts), "hit") + ("+" if found.incomplete else "")
    return f"{hits} in {count(len(found.counts), 'file')}"


def _grouped(matches: Sequence[Match], tokens: float) -> tuple[list[str], str]:
    """Each file's path on a line and its lines below it, as many as `tokens` allow; and how many hits are left out."""
    lines: list[str] = []
    path = None
    for at, match in enumerate(matches):
        new = [_line(match)] if match.path == path else [name_line(match.path), _line(match)]
        tokens -= sum(cost(line) + 1 for line in new)
        if tokens < 0 and lines:
            left = sum(not match.context for match in matches[at:])
            return lines, count(left, "more line was", "more lines were") if left else ""
        lines += new
        path = match.path
    return lines, ""


def _line(match: Match) -> str:
    place = f"{match.line}@{match.column}" if match.column > 1 else str(match.line)
    return f"{place}{'-' if match.context else '→'}{match.text}{' … (cut)' if match.cut else ''}"


def _grep_notes(found: Found, left_out: str, path: str) -> list[str]:
    notes: list[str] = []
    if not found.counts:
        notes.append(f"Nothing found. Ignored files are searched only if path names them; path was {path}.")
    if left_out:
        notes.append(f"({left_out} found: narrow the pattern, path or glob)")
    if found.binary:
        notes.append(f"(not shown: {count(found.binary, 'binary file')})")
    return notes + _shortfalls(found.skipped, found.incomplete)


def _shortfalls(skipped: int, incomplete: str | None) -> list[str]:
    notes = [f"(skipped {skipped:,} that could not be read)"] if skipped else []
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
