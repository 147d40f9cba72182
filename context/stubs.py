"""The texts that stand in the view where longer ones stood, and the mark by which they are known.

Which text is replaced is decided elsewhere (`context.offload`, `context.shorten`); what stands in its place is written
here, once, and stored with the entry, so that later versions of this file never change an old view.
"""

from __future__ import annotations

import re

STUB_MARK = "\u27e6deepagent\u27e7"
"""Begins every stub. Tools that write refuse a text that begins with it, so no stub ever becomes a file's content."""

NOTE_MARK = "Note from the harness, not from the user"
"""Begins every note, which is a message of its own in the user's role."""
_OURS = (
    STUB_MARK,
    NOTE_MARK,
    "The older part of this conversation, ",
    "# What the user asked for, oldest first",
    "# Pinned by the user, word for word",
    '<request number="',
)
"""How texts of ours begin that a model goes by: stubs, notes, and what stands at the head after a compaction."""
_LOOKS_LIKE_OURS = re.compile(rf"^(?![ \t]*>)(?=[^\w\n]{{0,40}}(?:{'|'.join(map(re.escape, _OURS))}))", re.MULTILINE)
QUOTED = "> "
"""Stands before a line of somebody else's text that begins like one of ours."""


def quoted(text: str) -> str:
    """`text`, which files or programs wrote, with no line in it that could be taken for one of ours.

    Lines that `read_file` and `grep` show begin with a number, so they stay as they are, and can be edited.
    """
    return _LOOKS_LIKE_OURS.sub(QUOTED, text) if any(mark in text for mark in _OURS) else text


def argument_stub(argument: str, characters: int, path: str | None, entry: str) -> str:
    """Stands for a long argument of an old call."""
    where = f"The file {path} holds what came of it (it may have changed since). " if path else ""
    return f"{STUB_MARK} {characters:,} characters of `{argument}` are hidden. {where}recall(id='{entry}') shows them."


def pointer_text(*, what: str, path: str, size: int, lines: int, tokens: int, preview: str, hint: str) -> str:
    """Stands for a text that went to a file. `size` in bytes; `hint` says how to read on."""
    measure = f"{size:,} bytes, {lines:,} lines, about {tokens:,} tokens"
    return f"{STUB_MARK} {what} is long ({measure}) and lies whole in {path}. {hint}\n{quoted(preview)}"


def read_stub(path: str, lines: tuple[int, int] | None, *, message: str, stale: bool) -> str:
    """Stands for what was read from a file once."""
    which = f"Lines {lines[0]}-{lines[1]} of {path}" if lines else path
    why = "changed or read again since, see below" if stale else "read it again if you need it"
    return f'{STUB_MARK} {which}: no longer shown, {why}. recall(id="{message}") shows them.'


def old_pointer_text(tool: str, path: str, lines: int, tokens: int) -> str:
    """Stands for an old result that is in a file already."""
    return f"{STUB_MARK} This result of {tool} ({lines:,} lines, about {tokens:,} tokens) is old and lies in {path}."


def image_stub(shown: str, path: str) -> str:
    """Stands for an image that was seen once; `shown` are its words."""
    return f"{STUB_MARK} {shown} is no longer in view. read_file shows it again, at {path} as it was then."
