"""Which parts of a git repository commands may write: what a commit needs, and nothing that git runs or obeys.

Hooks and settings decide which programs git starts, also for whoever uses the repository later, outside of any
sandbox. Only reads; what it finds written in the workspace is believed only if git's own folder confirms it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MAX_FILE = 64 * 1024
_MAX_INNER = 12
"""Submodules, and linked worktrees, that get walls of their own: each costs a command time. More are closed as one."""
_SHARED = ("objects", "refs", "logs", "reftable", "lfs")
"""What a commit in a linked worktree writes in the repository that it belongs to."""
_EXTENSION = re.compile(rb"^\s*worktreeConfig\b(?!\s*=\s*(false|0|no|off)\b)", re.IGNORECASE | re.MULTILINE)
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPlaces:
    """Parts of a repository, as absolute paths."""

    writable: tuple[Path, ...] = ()
    """Folders outside of the work tree that a commit writes."""
    read_only: tuple[Path, ...] = ()


def git_places(root: Path) -> GitPlaces:
    """The parts of the repository whose work tree is `root`: a checkout, a linked worktree, or a submodule's.

    Raises nothing; where there is no repository, or one that does not belong to `root`, there are no parts.
    """
    dot = root / ".git"
    link = (dot,) if os.path.lexists(dot) and (dot.is_symlink() or not dot.is_dir()) else ()
    if dot.is_dir():
        return GitPlaces(read_only=(*link, *_closed(dot.resolve(), root)))
    folder = _pointed(dot, b"gitdir:")
    if folder is None:
        return GitPlaces(read_only=link)
    common = _pointed(folder / "commondir")
    if common is None:
        mine = _work_tree(folder) == root
        return GitPlaces(writable=(folder,) * mine, read_only=(*link, *_closed(folder, root)))
    if folder.parent != common / "worktrees" or _pointed(folder / "gitdir") != dot:
        return GitPlaces(read_only=link)
    shared = tuple(path for name in _SHARED if (path := common / name).is_dir() and not path.is_symlink())
    own = (folder / "commondir", folder / "gitdir", *_worktree_settings(folder, common), *_modules(folder, root))
    return GitPlaces(writable=(folder, *shared), read_only=(*link, *own, *_obeyed(common)))


def _closed(folder: Path, root: Path) -> Iterator[Path]:
    """What stays closed in a git folder: hooks, settings, attributes, and all that belongs to other work trees."""
    yield from _obeyed(folder)
    yield from _worktree_settings(folder, folder)
    yield from _worktrees(folder)
    yield from _modules(folder, root)


def _obeyed(folder: Path) -> Iterator[Path]:
    """What git obeys in every work tree of a repository."""
    return (_place(folder, name) for name in ("hooks", "config", "info"))


def _worktrees(folder: Path) -> Iterator[Path]:
    """What leads from other work trees to their settings; the rest of them `git gc` has to write."""
    found = _folders(folder / "worktrees")
    if len(found) > _MAX_INNER:
        yield folder / "worktrees"
        return
    for path in found:
        yield from (path / name for name in ("commondir", "gitdir") if os.path.lexists(path / name))
        yield from _worktree_settings(path, folder)


def _modules(folder: Path, root: Path) -> Iterator[Path]:
    """The closed parts of submodules, and the files in `root` by which git finds them."""
    found = list(_git_folders(folder / "modules"))
    if len(found) > _MAX_INNER:
        yield folder / "modules"
        return
    for module in found:
        yield from _closed(module, root)
        tree = _work_tree(module)
        if tree is not None and root in tree.parents and (tree / ".git").is_file():
            yield tree / ".git"


def _git_folders(folder: Path) -> Iterator[Path]:
    """The git folders below, which may have slashes in their names; not those within another."""
    for path in _folders(folder):
        if (path / "HEAD").is_file():
            yield path
        else:
            yield from _git_folders(path)


def _worktree_settings(folder: Path, common: Path) -> Iterator[Path]:
    """`config.worktree`, which git obeys if the repository's settings say so; it is made, so that it can be closed."""
    path = folder / "config.worktree"
    if _EXTENSION.search(_content(common / "config")) and not os.path.lexists(path):
        with suppress(OSError):
            path.touch()
    if os.path.lexists(path):
        yield _place(folder, "config.worktree")


def _place(folder: Path, name: str) -> Path:
    """The entry, or all of the folder if the entry is a link: a link can be replaced, whatever it leads to."""
    return folder if (folder / name).is_symlink() else folder / name


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _pointed(file: Path, head: bytes = b"") -> Path | None:
    """The place that a file of git's names behind `head`; its folder must exist. A `.git` in it stays unresolved."""
    content = _content(file)
    if not content.startswith(head) or not content[len(head) :].strip():
        return None
    path = file.parent / os.fsdecode(content[len(head) :].strip())
    try:
        return path.parent.resolve(strict=True) / path.name if path.name == ".git" else path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None


def _work_tree(folder: Path) -> Path | None:
    """Where the work tree of a submodule is, by its settings."""
    found = _WORKTREE.search(_content(folder / "config").decode("utf-8", "surrogateescape"))
    try:
        return (folder / found[1].strip('"')).resolve(strict=True) if found else None
    except (OSError, RuntimeError, ValueError):
        return None


def _content(file: Path) -> bytes:
    """The start of a regular file, or nothing."""
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as stream:
            return stream.read(_MAX_FILE)
    except OSError:
        return b""
