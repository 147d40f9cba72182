"""Ignore files: which files and folders a search passes over.

`.rgignore`, `.ignore`, `.gitignore` and `.git/info/exclude` at every level, with the precedence that ripgrep gives
them, also outside git. Walking is done in `scan`; a search of something that is itself ignored knows no rules at all.

pathspec is not used: it decides about files from the top, and so takes `*`, `!*/`, `!*.py` to ignore every folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from .patterns import ignore_rule

PASSED_OVER = frozenset({".git", ".hg", ".svn", ".jj", "node_modules"})
"""Names that a search passes over whatever the ignore files say: what lies there is no one's own work."""
_FILES = (".rgignore", ".ignore", ".gitignore")
_GIT = 2
"""From this kind on the rules belong to git, and end at a repository's top."""

Rules = tuple[tuple[bool, re.Pattern[str], re.Pattern[str]], ...]
"""What an ignore file says, last line first: whether the rule ignores, an expression for files, one for folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The ignore files of one folder."""

    folder: str
    kinds: tuple[Rules, ...]
    """By precedence."""
    repository: bool
    """A git repository begins here: the rules of git further up do not count below."""


def level(folder: str) -> Level:
    """Reads the ignore files of a folder, an absolute path."""
    marker = f"{folder}/.git"
    repository = os.path.lexists(marker)
    kinds = [_rules(f"{folder}/{name}") for name in _FILES]
    kinds.append(_rules(_exclude(marker)) if repository else ())
    return Level(folder=folder.rstrip("/"), kinds=tuple(kinds), repository=repository)


def ignored(levels: Sequence[Level], path: str, folder: bool) -> bool:
    """Whether an entry is ignored by `levels`, which lead from the folder it stands in upwards."""
    for kind in range(len(_FILES) + 1):
        for at in levels:
            verdict = _verdict(at.kinds[kind], path[len(at.folder) + 1 :], folder)
            if verdict is not None:
                return verdict
            if at.repository and kind >= _GIT:
                break
    return False


def _verdict(rules: Rules, path: str, folder: bool) -> bool | None:
    for ignores, files, folders in rules:
        if (folders if folder else files).fullmatch(path):
            return ignores
    return None


def passed_over(base: Path, path: Path) -> bool:
    """Whether a search of `base` would not come to `path`, so that who names it means all of it."""
    levels = [level(str(base))]
    for part in path.relative_to(base).parts:
        step = f"{levels[0].folder}/{part}"
        folder = Path(step).is_dir()
        if part in PASSED_OVER or ignored(levels, step, folder):
            return True
        levels.insert(0, level(step))
    return False


def parents_interfere(base: Path) -> bool:
    """Whether ignore files above `base`, which are no business of its workspace, would be read by ripgrep."""
    names = _FILES[:_GIT] if os.path.lexists(base / ".git") else _FILES
    return any(os.path.lexists(parent / name) for parent in base.parents for name in names)


def _rules(path: str) -> Rules:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - this runs for every folder of a search
            return _parsed(file.read())
    except OSError:
        return ()


@lru_cache(maxsize=4096)
def _parsed(data: bytes) -> Rules:
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    rules = [rule for line in reversed(text.split("\n")) if (rule := ignore_rule(line))]
    found: list[tuple[bool, re.Pattern[str], re.Pattern[str]]] = []
    for ignores, run in groupby(rules, key=lambda rule: rule[0]):
        members = list(run)
        files = [body for _, folders, body in members if not folders]
        found.append((ignores, _any(files), _any([body for *_, body in members])))
    return tuple(found)


def _any(bodies: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{body})" for body in bodies) or "(?!)", re.DOTALL)


def _exclude(marker: str) -> str:
    """Where `info/exclude` of a repository lies: a linked worktree shares that of the repository it came from."""
    git = Path(marker)
    if git.is_file():
        text = git.read_text(encoding="utf-8", errors="surrogateescape")
        git = git.parent / text.removeprefix("gitdir:").strip()
        if (common := git / "commondir").is_file():
            git = git / common.read_text(encoding="utf-8", errors="surrogateescape").strip()
    return str(git / "info" / "exclude")
