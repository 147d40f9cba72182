"""Several replacements in one text, made in order: all of them, or none.

Finding and replacing is told in `splice`, what helps after a miss in `hints`, files in `edit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import WithJsonSchema

from ...context.messages import clean
from .answers import count
from .file_text import FileText
from .hints import LINE_NUMBER, numbered, why_missing
from .splice import Change, apply, changed_lines, line_of, plan, shared

_MANY = 10
"""Places that are listed at most."""
_EDITS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "old_string": {"type": "string"},
            "new_string": {"type": "string"},
            "replace_all": {"type": "boolean"},
        },
        "required": ["old_string", "new_string"],
    },
}
"""Written out, since a schema with references is not taken by all providers, and longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A text, and what comes in its place."""

    old_string: str
    new_string: str
    replace_all: bool = False


Edits = Annotated[tuple[Edit, ...], WithJsonSchema(_EDITS)]


class EditError(Exception):
    """Why nothing was changed, for the model; `summary` is for people."""

    def __init__(self, text: str, summary: str) -> None:
        super().__init__(text)
        self.summary = summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A text with all edits made."""

    text: str
    places: str
    """`line 3`, `2 places, lines 3, 9`."""
    added: int
    """Lines."""
    removed: int
    starts: tuple[int, ...]
    """For each edit the line where its old_string begins, first of all places, in what the edits before it left."""


def checked(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits with LF for CRLF. Raises `EditError` for what can be refused without looking at a file."""
    found: list[Edit] = []
    for number, edit in enumerate(edits):
        which = _which(number, edits)
        if not edit.old_string:
            raise EditError(
                f"{which}old_string is empty: it must be text that stands in the file.", "refused: empty old_string"
            )
        old, new = (clean(t).removeprefix("\ufeff").replace("\r\n", "\n") for t in (edit.old_string, edit.new_string))
        if old == new:
            raise EditError(f"{which}No change: old_string and new_string are the same.", "no change")
        if numbered(new) and not LINE_NUMBER.match(old):
            raise EditError(
                f"{which}new_string has the line numbers of read_file, which are not in the file; nothing was written. "
                "Give only what follows the arrows.",
                "refused: line numbers",
            )
        found.append(Edit(old_string=old, new_string=new, replace_all=edit.replace_all))
    return tuple(found)


def made(path: str, file: FileText, edits: Sequence[Edit]) -> Edited:
    """All edits made, each in what those before it left. Slow for long texts: on a thread. Raises `EditError`."""
    text, added, removed = file.text, 0, 0
    lines: list[int] = []
    starts: list[int] = []
    for number, edit in enumerate(edits):
        try:
            changes = _planned(path, file, text, edit)
        except EditError as error:
            raise _told(error, number, edits, file.text) from None
        plus, minus = changed_lines(text, changes)
        added, removed = added + plus, removed + minus
        lines += [line_of(text, change.start) for change in changes]
        before = edit.old_string[: shared(edit.old_string, edit.new_string)[0]]
        starts.append(lines[-len(changes)] - before.count("\n"))
        text = apply(text, changes)
    return Edited(text=text, places=_places(lines), added=added, removed=removed, starts=tuple(starts))


def _planned(path: str, file: FileText, text: str, edit: Edit) -> tuple[Change, ...]:
    old, new = (t.replace("\r", "\n") if file.cr else t for t in (edit.old_string, edit.new_string))
    crlf = file.text.count("\n") == file.text.count("\r\n") > 0
    changes = plan(text, old, new, crlf=crlf, overlapping=not edit.replace_all)
    if not changes:
        encoding = "" if old.isascii() or file.exact else " The file is not UTF-8: give only ASCII text."
        why = why_missing(text.replace("\r\n", "\n"), old, new)
        raise EditError(f"old_string was not found in {path}; nothing was written.{encoding} {why}", "not found")
    if len(changes) > 1 and not edit.replace_all:
        raise EditError(
            f"old_string occurs {len(changes)} times in {path}, at lines {_lines(_of(text, changes))}; nothing was "
            "written. Give more of the text around the one you mean, or set replace_all.",
            f"{len(changes)} matches",
        )
    if not file.exact and any(not change.new.isascii() for change in changes):
        raise EditError(
            f"{path} is not UTF-8, so only ASCII text can be put into it; nothing was written.", "refused: not UTF-8"
        )
    return changes


def _told(error: EditError, number: int, edits: Sequence[Edit], before: str) -> EditError:
    """The error with the number of its edit, and that no other was made."""
    if len(edits) == 1:
        return error
    changed = error.summary == "not found" and bool(plan(before, edits[number].old_string, ""))
    after = " An edit before it in this call changed that text: each edit sees what those before it left."
    none = " No edit of this call was made."
    return EditError(f"{_which(number, edits)}{error}{after if changed else ''}{none}", error.summary)


def _which(number: int, edits: Sequence[Edit]) -> str:
    return f"Edit {number + 1} of {len(edits)}: " if len(edits) > 1 else ""


def _places(lines: Sequence[int]) -> str:
    return f"line {lines[0]:,}" if len(lines) == 1 else f"{count(len(lines), 'place')}, lines {_lines(lines)}"


def _of(text: str, changes: Sequence[Change]) -> list[int]:
    return [line_of(text, change.start) for change in changes[: _MANY + 1]]


def _lines(lines: Sequence[int]) -> str:
    return ", ".join(f"{line:,}" for line in lines[:_MANY]) + (" …" if len(lines) > _MANY else "")
