"""A session as one file to read or to work with: Markdown, or JSON for a name that ends so.

Secrets are masked in the log already, so they are here. What left the view is in it like all else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..context.archive_text import write_message
from ..context.entries import MESSAGE, Compacted, UsageReported

if TYPE_CHECKING:
    from ..context.session import Session


def exported(session: Session, path: Path) -> str:
    """The text for a file of this name."""
    return _as_json(session) if path.suffix.lower() == ".json" else _as_markdown(session)


def _as_markdown(session: Session) -> str:
    return f"# Session {session.id}\n" + "".join(write_message(message) for message in session.messages())


def _as_json(session: Session) -> str:
    """An object: `session`, `cost` (US dollars, null where unknown), `usage` in tokens, `messages` as the log has them,
    and for each compaction its time and summary."""
    reports = [entry for entry in session.entries if isinstance(entry, UsageReported)]
    data = {
        "session": session.id,
        "cost": session.cost,
        "usage": {
            "input": sum(report.usage.input for report in reports),
            "output": sum(report.usage.output for report in reports),
            "cache_read": sum(report.usage.cache_read or 0 for report in reports),
            "cache_write": sum(report.usage.cache_write or 0 for report in reports),
        },
        "messages": [MESSAGE.dump_python(message, mode="json") for message in session.messages()],
        "compactions": [
            {"id": entry.id, "time": entry.time, "text": entry.shown}
            for entry in session.entries
            if isinstance(entry, Compacted)
        ],
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"
