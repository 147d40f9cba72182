"""What the system prompt says of the skills: a line for each, within a budget, and how many did not fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .read import MAX_DESCRIPTION
from .skill import Skill

LIMIT = 8_000
"""Characters; about 2,000 tokens."""
_LENGTHS = (MAX_DESCRIPTION, 400, 200, 100)
"""How long descriptions may be, tried in this order until all skills fit."""
_HEAD = """\
## Skills

A skill is a folder of instructions for one kind of task. Before you start on a task that a description below matches,
read the skill's file with read_file and follow it. Paths in it are relative to its folder.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The prompt's part about skills."""

    text: str
    """Empty where there are no skills."""
    hidden: int = 0
    """Skills without a line, for lack of room."""
    shortened: bool = False
    """Descriptions were cut to make room."""


def catalogue(skills: tuple[Skill, ...], *, base: Path, limit: int = LIMIT) -> Catalogue:
    """At most `limit` characters about `skills`. Paths below `base`, the working directory, are relative to it."""
    if not skills:
        return Catalogue(text="")
    for length in _LENGTHS:
        text = "\n".join((_HEAD, *(_line(skill, base, length) for skill in skills)))
        if len(text) <= limit:
            return Catalogue(text=text, shortened=any(len(s.description) > length for s in skills))
    return _part(skills, tuple(_line(skill, base, _LENGTHS[-1]) for skill in skills), limit)


def _part(skills: tuple[Skill, ...], lines: tuple[str, ...], limit: int) -> Catalogue:
    """As many lines as fit, and a last one that says how many are left out and where they lie."""
    roots = sorted({str(skill.path.parent.parent) for skill in skills})[:4]
    room = limit - len(_HEAD) - len(_more(len(skills), roots))
    shown = 0
    while shown < len(lines) and (room := room - len(lines[shown]) - 1) >= 0:
        shown += 1
    hidden = len(skills) - shown
    return Catalogue(text="\n".join((_HEAD, *lines[:shown], _more(hidden, roots))), hidden=hidden, shortened=True)


def _more(hidden: int, roots: list[str]) -> str:
    return f"- {hidden} more are not shown here; list them with ls in {', '.join(roots)}"


def _line(skill: Skill, base: Path, length: int) -> str:
    text = skill.description
    if len(text) > length:
        text = text[: length - 1] + "…"
    path = skill.path.relative_to(base) if skill.path.is_relative_to(base) else skill.path
    return f"- {skill.name}: {text} ({path})"
