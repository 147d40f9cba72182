"""What a call would change, or has changed, and git's diffs, as rows: signs, numbers, and what changed within a line.

Taken from the call's arguments; line numbers from what the tool reported, or from the file as it was `before`, if the
caller has it. What differs is the business of `line_diff`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Span

from .line_diff import DiffLine, Hunk, Sign, hunks, patch
from .lines import Kind, Row
from .text import visible_line

if TYPE_CHECKING:
    from pydantic import JsonValue

    from ...context.messages import ToolMessage

LIMIT = 200
"""Rows of a diff."""
_KINDS: dict[Sign, Kind] = {"+": "added", "-": "removed", " ": "plain"}


def diff_rows(
    tool: str,
    arguments: Mapping[str, JsonValue],
    limit: int | None = LIMIT,
    *,
    lines: Sequence[int] = (),
    before: str | None = None,
) -> list[Row]:
    """The rows of an edit or a write, `limit` of them at most; none for other tools or unreadable arguments.

    `lines` are the numbers of the lines where the edits begin, in order.
    """
    parts = list(_parts(tool, arguments, lines, before))
    return _cut(list(_rows(parts)), limit)


def starts_of(message: ToolMessage) -> tuple[int, ...]:
    """The lines where the edits of a file begin, as its result tells them."""
    from ...agent.tools.edit import STARTS

    found = message.log.get(STARTS)
    return tuple(line for line in found if isinstance(line, int)) if isinstance(found, list) else ()


def patch_rows(lines: Iterable[str]) -> list[Row]:
    """The rows of git's diff."""
    found = list(patch(lines))
    width = _width(line for line in found if isinstance(line, DiffLine))
    return [_row(line, width, gap="") if isinstance(line, DiffLine) else _told(line) for line in found]


def _told(line: str) -> Row:
    """A line about files or places; what git does not track is listed in the common colour."""
    return Row(line) if not line or line.startswith(("Untracked files:", "  ")) else Row(line, "muted")


def _cut(rows: list[Row], limit: int | None) -> list[Row]:
    if limit is None or len(rows) <= limit:
        return rows
    return [*rows[:limit], Row(f"… {len(rows) - limit:,} lines not shown", "muted")]


def _parts(
    tool: str, arguments: Mapping[str, JsonValue], lines: Sequence[int], before: str | None
) -> Iterator[Hunk | str]:
    """Hunks, and what is said between them."""
    match tool, arguments:
        case "edit_file", _:
            edits = arguments.get("edits")
            text, numbers = before, iter(lines)
            for edit in (dict(arguments), *(edits if isinstance(edits, list) else ())):
                match edit:
                    case {"old_string": str(old), "new_string": str(new)} if old or new:
                        everywhere = edit.get("replace_all") is True
                        yield from ("everywhere in the file:",) if everywhere else ()
                        yield from _edit(old, new, next(numbers, None), text)
                        text = text and text.replace(old, new, -1 if everywhere else 1)
                    case _:
                        pass
        case "write_file", {"content": str(content)}:
            yield from hunks(_split(before or ""), _split(content), first=1, context=3)
        case _:
            pass


def _edit(old: str, new: str, first: int | None, text: str | None) -> list[Hunk]:
    """One edit; with the lines around it where the text that it changes is known."""
    at = text.find(old) if text is not None and old else -1
    if text is None or at < 0:
        return hunks(old.split("\n"), new.split("\n"), first=first)
    return hunks(_split(text), _split(text[:at] + new + text[at + len(old) :]), first=1, context=3)


def _split(text: str) -> list[str]:
    """Lines, without an empty one at the end."""
    return text.removesuffix("\n").split("\n") if text else []


def _rows(parts: Sequence[Hunk | str]) -> Iterator[Row]:
    width = _width(line for part in parts if not isinstance(part, str) for line in part)
    between = False
    for part in parts:
        if isinstance(part, str):
            yield Row(part, "muted")
        else:
            yield from (Row(f"{' ' * (2 * width)}  …", "muted"),) if between else ()
            yield from (_row(line, width) for line in part)
        between = not isinstance(part, str)


def _width(lines: Iterable[DiffLine]) -> int:
    """Cells of a column of line numbers, its space included; 0 where none is known."""
    most = max((number for line in lines for number in (line.old, line.new) if number is not None), default=0)
    return len(str(most)) + 1 if most else 0


def _row(line: DiffLine, width: int, *, gap: str = " ") -> Row:
    text, marks = _shown(line)
    kind, start = _KINDS[line.sign], len(line.sign + gap)
    spans = tuple(Span(start + a, start + b, f".lines--{kind}-mark") for a, b in marks)
    numbers = ("" if number is None else str(number) for number in (line.old, line.new))
    first = "".join(f"{number:>{width - 1}} " for number in numbers) if width else ""
    return Row(f"{line.sign}{gap}{text}", kind, spans, first, " " * (2 * width))


def _shown(line: DiffLine) -> tuple[str, Sequence[tuple[int, int]]]:
    """The text as it is shown, and the marks in it."""
    text = visible_line(line.text)
    if text == line.text:
        return text, line.marks
    return text, [tuple(len(visible_line(line.text[:at])) for at in mark) for mark in line.marks]  # pyright: ignore
