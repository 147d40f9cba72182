"""What must never be written into a file: the harness's own stand-ins for text that is not shown."""

from __future__ import annotations

import re

from ...context.stubs import STUB_MARK

_STUB = re.compile(rf"^[^\w\n]*{re.escape(STUB_MARK)}|{re.escape(STUB_MARK)}[^\n]*\s*\Z", re.MULTILINE)
"""A line that begins with a stub, be it behind a comment's sign, or a stub at the very end."""
_MASK = re.compile(r"\[secret [A-Z0-9]+(?:_[A-Z0-9]+)+\]")
"""A masked environment variable, as `agent.secrets.MARK` writes it."""


def refuse_stub(text: str) -> str | None:
    """Why `text` must not be written, or None."""
    if _STUB.search(text):
        return (
            f"The text holds {STUB_MARK}, which stands for text that is not shown to you; nothing was written. "
            "Give the real text: read the file first if you no longer see it."
        )
    if mask := _MASK.search(text):
        return (
            f"The text holds {mask[0]}, which stands for a secret that is not shown to you; nothing was written. "
            "Leave such lines out of the edit."
        )
    return None
