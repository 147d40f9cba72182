"""What a skill is to the rest of the program: a name, a description, and a file to read when it is needed.

How the file is read is the business of `skills.read`, where it is looked for of `skills.discover`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Level = Literal["project", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRoot:
    """A folder in which skills are looked for."""

    path: Path
    level: Level
    within: tuple[Path, ...] | None = None
    """Folders that the root and links in it may lead into; None lets them lead anywhere (the user's own folders)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A folder with a SKILL.md that can be offered to a model."""

    name: str
    """The folder's name, whatever the front matter says: unique among the skills that are offered."""
    description: str
    """One line, at most 1,024 characters."""
    path: Path
    """The SKILL.md, absolute, by the name under which it was found."""
    folder: Path
    """The folder's real path, links resolved: what reading the skill must be allowed for."""
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillProblem:
    """Something about a skill that a person should know."""

    path: Path
    line: int | None
    """Counts from 1; None where no line is to blame."""
    reason: str
    loaded: bool = False
    """The skill is offered all the same."""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{where}: {self.reason}" if self.loaded else f"{where}: {self.reason}; not loaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadowed:
    """A skill that is not offered because `by` has the same name and comes first."""

    skill: Skill
    by: Skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Skills:
    """All that was found: each folder with a SKILL.md is in exactly one of the three, notices apart."""

    skills: tuple[Skill, ...] = ()
    """Sorted by name."""
    problems: tuple[SkillProblem, ...] = ()
    shadowed: tuple[Shadowed, ...] = ()
    places: tuple[Path, ...] = field(default=(), compare=False)
    """Files and folders that were looked at: while none of them changes, a search finds the same."""
