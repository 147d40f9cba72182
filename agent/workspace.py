"""Where things lie: the workspace, the user's own folder, and the folders for our data.

The workspace is the git root, or the working directory outside git. Data goes to `.deepagents/` in it; where that is
not possible (home folder, read-only project, a data folder that is a link) it goes to the user's folder, with a notice.
What is in the files is the business of `agent.storage` and `context`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .config import user_folder
from .errors import ConfigError
from .storage import DiskStorage

DATA_FOLDERS = ("sessions", "conversation_history", "large_tool_results", "checkpoints")
"""Folders below `.deepagents/` that are ours."""
_IGNORE_HEAD = "# Written by deepagent: its data stays out of version control."
_FOLDER = ".deepagents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The places of one run."""

    root: Path
    cwd: Path
    user: Path
    """The user's own folder, `~/.deepagents` unless `DEEPAGENT_HOME` moves it."""
    data: Path
    """Where the data folders lie."""
    prefix: str
    """What leads the paths of our data as the model sees them."""
    project: Path | None
    """The project's `.deepagents`; None in the home folder, where there is no project layer."""
    git: bool
    notices: tuple[str, ...] = ()

    @property
    def mirror(self) -> Path:
        """The user-level twins of this workspace's data."""
        return self.user / "sessions" / _hash(self.root)

    def storage(self) -> DiskStorage:
        """The storage for this workspace's sessions, its folders kept out of version control."""
        storage = DiskStorage(self.data, self.mirror, prefix=self.prefix)
        if self.project is not None and self.data == self.project:
            _keep_out_of_git(self.project)
        return storage


def find_workspace(cwd: Path, *, environ: Mapping[str, str]) -> Workspace:
    """The places for a run that starts in `cwd`. Raises `ConfigError` if that is no folder."""
    try:
        cwd = cwd.resolve(strict=True)
    except OSError as error:
        raise ConfigError(f"cannot work in {cwd}: {error.strerror}") from error
    if not cwd.is_dir():
        raise ConfigError(f"cannot work in {cwd}: not a folder")
    home = Path(environ.get("HOME") or Path.home()).resolve()
    user = user_folder(environ)
    found = _git_root(cwd, home)
    root = found or cwd
    project = None if root == home else root / _FOLDER
    reason = _why_not(project)
    if project is not None and reason is None:
        data, prefix, notices = project, _FOLDER, ()
    else:
        data = user / "projects" / _hash(root)
        prefix = str(data)
        notices = (f"{reason}: conversation data goes to {data}",) if reason else ()
    return Workspace(
        root=root,
        cwd=cwd,
        user=user,
        data=data,
        prefix=prefix,
        project=project,
        git=found is not None,
        notices=notices,
    )


def _git_root(cwd: Path, home: Path) -> Path | None:
    """The nearest folder upwards with a `.git`; a repository that is the home folder counts only when started there."""
    for folder in (cwd, *cwd.parents):
        if (folder / ".git").exists():
            return None if folder == home and cwd != home else folder
    return None


def _hash(path: Path) -> str:
    return hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _why_not(project: Path | None) -> str | None:
    """Why data cannot go to the project, or None."""
    if project is None:
        return None
    if project.is_symlink():
        return f"{project} is a link"
    for name in DATA_FOLDERS:
        if (project / name).is_symlink():
            return f"{project / name} is a link"
    nearest = project if project.is_dir() else project.parent
    return None if os.access(nearest, os.W_OK | os.X_OK) else f"{nearest} cannot be written"


def _keep_out_of_git(project: Path) -> None:
    """Makes `git status` stay clean: one ignore file of ours, or one in each data folder beside somebody else's."""
    project.mkdir(parents=True, exist_ok=True)
    ignore = project / ".gitignore"
    lines = [_IGNORE_HEAD, *(f"/{name}/" for name in DATA_FOLDERS), "/deepagent.local.toml", "/.gitignore"]
    if not ignore.is_symlink() and not ignore.exists():
        ignore.write_text("\n".join(lines) + "\n", "utf-8")
    elif _IGNORE_HEAD not in _first_line(ignore):
        for name in DATA_FOLDERS:
            folder = project / name
            folder.mkdir(mode=0o700, exist_ok=True)
            if not (folder / ".gitignore").exists():
                (folder / ".gitignore").write_text("*\n", "utf-8")


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline(200)
    except OSError:
        return ""
