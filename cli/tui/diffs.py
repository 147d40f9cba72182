"""What a call would change, or has changed, as rows: taken from its arguments, since they are all that is known before.

Line numbers are not known here, and files are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from .lines import Row

if TYPE_CHECKING:
    from pydantic import JsonValue

LIMIT = 200
"""Rows of a diff."""
_CONTEXT = 2
"""Equal lines that are shown around changes."""
_COMPARED = 1_000
"""Lines up to which old and new are compared: the time for that grows faster than their number."""


def diff_rows(tool: str, arguments: Mapping[str, JsonValue], limit: int | None = LIMIT) -> list[Row]:
    """The rows of an edit or a write, `limit` of them at most; none for other tools or unreadable arguments."""
    rows = list(_rows(tool, arguments))
    if limit is None or len(rows) <= limit:
        return rows
    return [*rows[:limit], Row(f"… {len(rows) - limit:,} more lines", "muted")]


def _rows(tool: str, arguments: Mapping[str, JsonValue]) -> Iterator[Row]:
    match tool, arguments:
        case "edit_file", _:
            yield from _edit(dict(arguments))
            edits = arguments.get("edits")
            for edit in edits if isinstance(edits, list) else ():
                yield from _edit(edit)
        case "write_file", {"content": str(content)}:
            yield from (Row(f"+ {line}", "added") for line in content.removesuffix("\n").split("\n"))
        case _:
            pass


def _edit(edit: JsonValue) -> Iterator[Row]:
    match edit:
        case {"old_string": str(old), "new_string": str(new)}:
            if edit.get("replace_all") is True:
                yield Row("everywhere in the file:", "muted")
            yield from _changes(old.split("\n"), new.split("\n"))
        case _:
            pass


def _changes(old: list[str], new: list[str]) -> Iterator[Row]:
    if len(old) + len(new) > _COMPARED:
        yield from (Row(f"- {line}", "removed") for line in old)
        yield from (Row(f"+ {line}", "added") for line in new)
        return
    for number, group in enumerate(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT)):
        if number:
            yield Row("  …", "muted")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (Row(f"  {line}") for line in old[old_start:old_end])
                continue
            yield from (Row(f"- {line}", "removed") for line in old[old_start:old_end])
            yield from (Row(f"+ {line}", "added") for line in new[new_start:new_end])
