"""What is looked at before a whole file is replaced: its encoding and line ends, and whether parts would be lost."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from ...context.messages import clean
from .file_text import FileText
from .hints import numbered

_DIFF = 1_000_000
"""Pairs of lines up to which the old and the new file are compared line by line."""
_LONG = 40
"""Lines from which a file is long enough to be cut short by mistake."""
_ELISION = re.compile(
    r"^[ \t]*(?:(?:#|//|/\*|\*|<!--|--|;|%)[ \t]*(?:\.\.\.|…)?|\.\.\.|…)[ \t(\[{]*"
    r"(?:(?:keep|the|all|your|other)[ \t]+)*"
    r"(?:rest|remainder|remaining|existing|previous|unchanged|other|same)\b[^\n]{0,30}"
    r"\b(?:code|file|content|contents|implementation|methods?|functions?|class|lines|unchanged|here|above|before)\b"
    r"[^\n]{0,30}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that stands for code which is meant to stay, such as `# ... rest of the code unchanged`."""


def suspicious(old: FileText, content: str) -> str | None:
    """Why `content` should not replace `old`, or None."""
    if numbered(content) and not numbered(old.text):
        return (
            "All lines of the new text have line numbers of read_file, which belong to no file; nothing was written. "
            "Give only what follows the arrows."
        )
    if "\ufffd" in content and not old.exact:
        return (
            "The file is not UTF-8, and \ufffd stands for bytes of it that would be lost; nothing was written. "
            "Change single places of it: that keeps all other bytes."
        )
    before, after = old.text.count("\n") + 1, content.count("\n") + 1
    elision = _ELISION.search(content)
    if elision and before >= _LONG and after < before / 2:
        return (
            f"The new text has {after:,} lines in place of {before:,}, and says `{elision[0].strip()}`. Such a line is "
            "written as it stands; nothing was written. Give the whole file, or change only a part of it."
        )
    return None


def like(old: FileText, content: str) -> bytes:
    """The bytes of `content`, with encoding, BOM and line ends of the old file: CRLF or CR if it has no others."""
    content = clean(content).removeprefix("\ufeff")
    lines, crlf = old.text.count("\n"), old.text.count("\r\n")
    if lines and lines == crlf and "\r\n" not in content:
        content = content.replace("\n", "\r\n")
    return old.encoded(content)


def compared(old: str, new: str) -> tuple[int, int]:
    """Lines added and lines removed."""
    before, after = _lines(old), _lines(new)
    start = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        start += 1
    end = 0
    for one, other in zip(reversed(before[start:]), reversed(after[start:]), strict=False):
        if one != other:
            break
        end += 1
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    same = 0
    if len(before) * len(after) <= _DIFF:
        same = sum(block.size for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks())
    return len(after) - same, len(before) - same


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
