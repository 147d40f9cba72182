"""What must never be written into a file or run: the harness's own stand-ins for text that is not shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue

from ..context.stubs import STUB_MARK

_STUB = re.compile(rf"^[^\w\n]*{re.escape(STUB_MARK)}|{re.escape(STUB_MARK)}[^\n]*\s*\Z", re.MULTILINE)
"""A line that begins with a stub, be it behind a comment's sign, or a stub at the very end."""
MASK = re.compile(r"\[secret [A-Z0-9]+(?:_[A-Z0-9]+)+\]")
"""A masked environment variable, as `agent.secrets.MARK` writes it."""
_FOUND = frozenset({"old_string"})
"""Arguments that are looked for and not written: they may hold what has to be taken out of a file."""


def refuse_stand_in(text: str) -> str | None:
    """Why `text` must not be written or run, or None."""
    if _STUB.search(text):
        return (
            f"The text holds {STUB_MARK}, which stands for text that is not shown to you; nothing was done. "
            "Give the real text: read the file first if you no longer see it."
        )
    if mask := MASK.search(text):
        return refuse_mask(mask[0])
    return None


def refuse_mask(mask: str) -> str:
    """Why a text with a mask must not be written or run."""
    return (
        f"The text holds {mask}, which stands for a secret that is not shown to you; nothing was done, since it would "
        "destroy the secret. Leave such lines out of the edit."
    )


def written_texts(arguments: JsonValue) -> Iterator[str]:
    """All texts in a call's arguments, at any depth, that end up in a file or a shell."""
    match arguments:
        case str():
            yield arguments
        case list():
            for item in arguments:
                yield from written_texts(item)
        case dict():
            for name, item in cast(dict[str, JsonValue], arguments).items():
                if name not in _FOUND:
                    yield from written_texts(item)
        case _:
            pass
