"""The bounds that commands have unless something else is granted: what a project's work needs, and no more.

The places stand in `places` as data, those of git in `repository`; how bounds are kept is the engines' business.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from ..workspace import Workspace
from .bounds import Bounds, enclosing
from .places import CACHES, HIDDEN_AT_HOME, HIDDEN_BY_VARIABLE, HIDDEN_IN_SYSTEM, OBEYED_AT_HOME, Cache
from .repository import git_places

_NPM_SETTINGS = ".npmrc"
_MAX_SETTINGS = 64 * 1024
_BASES = {"cache": ("XDG_CACHE_HOME", ".cache"), "data": ("XDG_DATA_HOME", ".local/share")}


def standard_bounds(workspace: Workspace, environ: Mapping[str, str], extra: Iterable[Path] = ()) -> Bounds:
    """What commands in `workspace` may reach; `extra` are further folders that are worked in.

    Looks at the disk (a few milliseconds), so that a repository or a secret that came since counts as well. A folder
    that holds the home folder is never writable as a whole: started there, each write has to be granted.
    """
    home = Path(environ.get("HOME") or os.path.expanduser("~")).resolve()  # noqa: PTH111 - raises nothing
    wide = {home, *home.parents}
    worked_in = [path for path in (workspace.root, *(path.resolve() for path in extra)) if path not in wide]
    git = git_places(workspace.root) if workspace.root in worked_in else None
    temporary = {Path(folder).resolve() for folder in ("/tmp", "/var/tmp", environ.get("TMPDIR", "/tmp"))}  # noqa: S108
    writable = (*worked_in, *temporary - {Path("/")}, *_caches(home, environ), *(git.writable if git else ()))
    ours = (workspace.root / ".deepagents", workspace.user, workspace.data, home, *_obeyed(home))
    there = (path.parent.resolve() / path.name for path in ours if os.path.lexists(path))
    closed = (*(git.read_only if git else ()), *there)
    return Bounds(
        writable=tuple(dict.fromkeys(writable)),
        read_only=tuple(path for path in dict.fromkeys(closed) if path not in worked_in),
        hidden=tuple(_hidden(home, workspace, environ)),
    )


def _obeyed(home: Path) -> Iterator[Path]:
    """What shells, editors and desktops obey: closed also where all of the home folder is granted."""
    return (path for name in OBEYED_AT_HOME if os.path.lexists(path := home / name))


def _caches(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """The caches of tools that are there, also those that their tool would make."""
    installed = _installed(environ.get("PATH", os.defpath))
    for each in CACHES:
        path = (_base(each, home, environ) / each.below).absolute()
        if (each.tool in installed or path.is_dir()) and path.resolve() not in {home, *home.parents}:
            yield path.resolve()


@cache
def _installed(search_path: str) -> frozenset[str]:
    """Which tools with a cache there are. Looked up once: that takes longer than all else."""
    return frozenset(each.tool for each in CACHES if shutil.which(each.tool, path=search_path))


def _base(place: Cache, home: Path, environ: Mapping[str, str]) -> Path:
    if named := environ.get(place.variable, "") if place.variable else "":
        return Path(named)
    variable, usual = _BASES.get(place.base, ("", ""))
    return Path(environ.get(variable) or home / usual) / place.folder


def _hidden(home: Path, workspace: Workspace, environ: Mapping[str, str]) -> Iterator[Path]:
    """What is there of the secrets; one that the workspace lies in is no secret to those who work there."""
    named = [Path(part) for name in HIDDEN_BY_VARIABLE for part in environ.get(name, "").split(os.pathsep)]
    places = [
        *(home / name for name in HIDDEN_AT_HOME),
        *map(Path, HIDDEN_IN_SYSTEM),
        *(path for path in named if path.is_absolute()),
        workspace.user / "credentials.toml",
        *([home / _NPM_SETTINGS] if has_npm_login(home) else ()),
    ]
    found = {path.resolve() for path in places if os.path.lexists(path)}
    needed = {home, *home.parents, workspace.root, *workspace.root.parents, Path(os.devnull)}
    found = {path for path in found if path not in needed}
    yield from sorted(path for path in found if not enclosing(tuple(found), path.parent))


def has_npm_login(home: Path) -> bool:
    """Whether npm's settings hold a key. Without one they are left readable: npm does not work without them."""
    try:
        with (home / _NPM_SETTINGS).open("rb") as stream:
            return b"_auth" in (content := stream.read(_MAX_SETTINGS)) or b"_password" in content
    except OSError:
        return False
