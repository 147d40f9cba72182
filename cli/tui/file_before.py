"""The file that a call would change, as it is before: what a question compares with. Never more than it can show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...agent.backends.protocol import BackendError

if TYPE_CHECKING:
    from ...context.messages import ToolCall
    from ..opening import Opened

_MOST = 1_000_000
"""Bytes of a file up to which it is read for that: it happens between two keys."""
_TOOLS = frozenset({"edit_file", "write_file"})


def text_before(opened: Opened | None, call: ToolCall) -> str | None:
    """The text of the file that the call names; None where there is none, or nothing to compare."""
    path = call.arguments.get("path")
    if call.name not in _TOOLS or not isinstance(path, str) or opened is None or opened.agent is None:
        return None
    try:
        file = Path(opened.workspace.root, opened.agent.parts.backend.resolve(path))
        if not file.is_file() or file.stat().st_size > _MOST:
            return None
        return file.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except (OSError, BackendError, ValueError):
        return None
