"""The texts that stand in the view where longer ones stood, and the mark by which they are known.

Which text is replaced is decided elsewhere (`context.offload`, `context.shorten`); what stands in its place is written
here, once, and stored with the entry, so that later versions of this file never change an old view.
"""

from __future__ import annotations

STUB_MARK = "\u27e6deepagent\u27e7"
"""Begins every stub. Tools that write refuse a text that begins with it, so no stub ever becomes a file's content."""


def argument_stub(argument: str, characters: int, path: str | None, entry: str) -> str:
    """Stands for a long argument of an old call."""
    where = f"The file {path} holds what came of it (it may have changed since). " if path else ""
    return f"{STUB_MARK} {characters:,} characters of `{argument}` are hidden. {where}recall(id='{entry}') shows them."


def pointer_text(*, what: str, path: str, size: int, lines: int, tokens: int, preview: str, hint: str) -> str:
    """Stands for a text that went to a file. `size` in bytes; `hint` says how to read on."""
    measure = f"{size:,} bytes, {lines:,} lines, about {tokens:,} tokens"
    return f"{STUB_MARK} {what} is long ({measure}) and lies whole in {path}. {hint}\n{preview}"


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
