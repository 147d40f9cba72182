"""Finds skills: every folder with a SKILL.md below the roots, the first of each name, and a report of all others.

Links are followed, each real folder is looked at once, and neither loops nor deep trees hold the search up. Knows no
settings and no agent: the roots are arguments, and `standard_roots` says where they usually are.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from .read import FILE, read_skill
from .skill import Shadowed, Skill, SkillProblem, SkillRoot, Skills

MAX_DEPTH = 4
"""Folders between a root and a skill, the skill's own included: collections may group their skills."""
MAX_FOLDERS = 5_000
"""Folders looked at in one search."""


def standard_roots(*, workspace: Path | None, home: Path, user_folder: Path) -> tuple[SkillRoot, ...]:
    """Where skills lie, first wins: the project's own folders, then the user's.

    `workspace` is None where there is no project layer (no workspace, or it is the home folder). `user_folder` is
    `~/.deepagents` or what stands for it. A project's links may lead into the project or into the user's skills.
    """
    users = (user_folder / "skills", home / ".agents" / "skills")
    found = [SkillRoot(path=path, level="user") for path in users]
    if workspace is not None:
        projects = (workspace / ".deepagents" / "skills", workspace / ".agents" / "skills")
        within = (workspace, *users)
        found = [*(SkillRoot(path=path, level="project", within=within) for path in projects), *found]
    return tuple(found)


def discover(roots: tuple[SkillRoot, ...]) -> Skills:
    """All skills below `roots`; of several with one name the one that comes first. Raises nothing."""
    search = _Search()
    for root in roots:
        search.root(root)
    return Skills(
        skills=tuple(sorted(search.found.values(), key=lambda skill: skill.name)),
        problems=tuple(search.problems),
        shadowed=tuple(search.shadowed),
        places=(*(root.path for root in roots), *map(Path, search.seen), *search.files),
    )


@dataclass(slots=True, kw_only=True)
class _Search:
    found: dict[str, Skill] = field(default_factory=dict[str, Skill])
    problems: list[SkillProblem] = field(default_factory=list[SkillProblem])
    shadowed: list[Shadowed] = field(default_factory=list[Shadowed])
    seen: set[str] = field(default_factory=set[str])
    """Real paths of folders that were looked at."""
    files: list[Path] = field(default_factory=list[Path])
    """The SKILL.md files that were looked at."""

    def root(self, root: SkillRoot) -> None:
        if not os.path.lexists(root.path) or not self._enter(root.path, root):
            return
        if (root.path / FILE).is_file():
            self._report(root.path / FILE, "lies in the skills folder itself; give it a folder of its own")
        self._children(root.path, root, depth=1)

    def _folder(self, folder: Path, root: SkillRoot, depth: int) -> None:
        if not self._enter(folder, root):
            return
        if os.path.lexists(folder / FILE):
            self._skill(folder, root)
        elif depth < MAX_DEPTH:
            self._children(folder, root, depth=depth + 1)
        elif any(not entry.name.startswith(".") and entry.is_dir() for entry in self._entries(folder)):
            self._report(folder, f"has folders {MAX_DEPTH + 1} levels down; skills are looked for in {MAX_DEPTH}")

    def _children(self, folder: Path, root: SkillRoot, depth: int) -> None:
        entries = [entry for entry in self._entries(folder) if not entry.name.startswith(".")]
        for entry in sorted(entries, key=lambda e: (e.is_symlink(), e.name)):  # a folder's own name before a link's
            if entry.is_symlink() or entry.is_dir(follow_symlinks=False):
                self._folder(folder / entry.name, root, depth)

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except OSError as error:
            self._report(folder, f"cannot be read ({error.strerror})")
            return []

    def _enter(self, folder: Path, root: SkillRoot) -> bool:
        """Whether to look into `folder`: it is one, it is new, and it lies where this root's links may lead."""
        try:
            real = _real(folder)
        except OSError as error:
            self._report(folder, f"is a link that leads nowhere ({error.strerror})")
            return False
        if real in self.seen or (folder != root.path and not Path(real).is_dir()):
            return False
        if not Path(real).is_dir():
            self._report(folder, "is not a folder")
        elif not _allowed(real, root):
            self._report(folder, "is a link out of the project; link to your own skills from the user's folder instead")
        elif len(self.seen) >= MAX_FOLDERS:
            self._report(root.path, f"holds too many folders; the search stopped after {MAX_FOLDERS:,}")
        else:
            self.seen.add(real)
            return True
        return False

    def _skill(self, folder: Path, root: SkillRoot) -> None:
        file = folder / FILE
        self.files.append(file)
        try:
            allowed = _allowed(_real(file), root)
        except OSError as error:
            self._report(file, f"cannot be read ({error.strerror})")
            return
        if not folder.name.isprintable():
            self._report(folder, "has a name with control characters")
        elif not allowed:
            self._report(file, "is a link out of the project")
        else:
            skill, problems = read_skill(folder, root.level)
            self.problems.extend(problems)
            if skill is not None:
                self._add(skill)

    def _add(self, skill: Skill) -> None:
        first = self.found.setdefault(skill.name, skill)
        if first is not skill:
            self.shadowed.append(Shadowed(skill=skill, by=first))

    def _report(self, path: Path, reason: str) -> None:
        problem = SkillProblem(path=path, line=None, reason=reason)
        if problem not in self.problems:
            self.problems.append(problem)


def _real(path: Path) -> str:
    """`path` without links. Raises `OSError` for what is missing, and for loops and long chains of links."""
    path.stat()  # first: the kernel follows 40 links, `realpath` as many as the stack holds
    return os.path.realpath(path, strict=True)


def _allowed(real: str, root: SkillRoot) -> bool:
    return root.within is None or any(Path(real).is_relative_to(os.path.realpath(folder)) for folder in root.within)
