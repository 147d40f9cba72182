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
from .small_files import read_small, write_private
from .storage import DiskStorage

DATA_FOLDERS = ("sessions", "conversation_history", "large_tool_results", "checkpoints")
"""Folders below `.deepagents/` that are ours."""
_IGNORE_HEAD = "# Written by deepagent: its data stays out of version control."
_FOLDER = ".deepagents"
_IGNORED = (*(f"/{name}/" for name in DATA_FOLDERS), "/deepagent.local.toml", "/.gitignore", "/..gitignore.*")
"""The last one: a draft of the ignore file, which a crash may leave behind."""
_MAX_IGNORE = 64 * 1024


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

    @property
    def checkpoints(self) -> Path:
        """Where states of this workspace's files are kept: out of reach of what works in it."""
        return self.user / "checkpoints" / _hash(self.root)

    @property
    def subagents(self) -> tuple[Path, ...]:
        """Folders with files of sub-agents, the project's first."""
        return (*((self.project / "agents",) if self.project else ()), self.user / "agents")

    def storage(self) -> DiskStorage:
        """The storage for this workspace's sessions; its folders are kept out of git once there are some."""
        return DiskStorage(self.data, self.mirror, prefix=self.prefix, prepare=self.keep_out_of_git)

    def keep_out_of_git(self) -> None:
        """Makes `git status` stay clean, whatever is in our folders. Raises `OSError`."""
        if self.project is not None and self.data == self.project:
            _keep_out_of_git(self.project)


def find_workspace(cwd: Path, *, environ: Mapping[str, str]) -> Workspace:
    """The places for a run that starts in `cwd`. Raises `ConfigError` if that is no folder."""
    try:
        cwd = cwd.resolve(strict=True)
    except OSError as error:
        raise ConfigError(f"cannot work in {cwd}: {error.strerror}") from error
    if not cwd.is_dir():
        raise ConfigError(f"cannot work in {cwd}: not a folder")
    home = Path(environ.get("HOME") or os.path.expanduser("~")).resolve()  # noqa: PTH111 - raises nothing
    user = _user_folder(environ)
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


def _user_folder(environ: Mapping[str, str]) -> Path:
    try:
        return user_folder(environ)
    except RuntimeError as error:
        raise ConfigError("it is not known where your home folder is: set HOME or DEEPAGENT_HOME") from error


def _git_root(cwd: Path, home: Path) -> Path | None:
    """The nearest folder upwards with a `.git`; a repository that is the home folder counts only when started there."""
    for folder in (cwd, *cwd.parents):
        if os.path.exists(folder / ".git"):  # noqa: PTH110 - raises nothing where a folder above cannot be entered
            return None if folder == home and cwd != home else folder
    return None


def _hash(path: Path) -> str:
    return hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _why_not(project: Path | None) -> str | None:
    """Why data cannot go to the project, or None."""
    if project is None:
        return None
    for place in (project, *(project / name for name in DATA_FOLDERS)):
        if place.is_symlink():
            return f"{place} is a link"
        if os.path.lexists(place) and not place.is_dir():
            return f"{place} is no folder"
    made = [place for place in (project, *(project / name for name in DATA_FOLDERS)) if place.is_dir()]
    closed = next((place for place in made or [project.parent] if not os.access(place, os.W_OK | os.X_OK)), None)
    return f"{closed} cannot be written" if closed else None


def _keep_out_of_git(project: Path) -> None:
    """One ignore file of ours, or one in each data folder beside somebody else's."""
    ignore = project / ".gitignore"
    if not os.path.lexists(ignore):
        write_private(ignore, "\n".join([_IGNORE_HEAD, *_IGNORED, ""]).encode())
    elif not set(_IGNORED) <= set(_lines(ignore)):
        for name in DATA_FOLDERS:
            if not os.path.lexists(project / name / ".gitignore"):
                write_private(project / name / ".gitignore", b"*\n")


def _lines(path: Path) -> list[str]:
    try:
        return read_small(path, _MAX_IGNORE)[0].decode("utf-8", "replace").splitlines()
    except OSError:
        return []
