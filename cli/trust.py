"""Trust: whether a project's settings may take effect. A decision holds for one folder and one content of its files.

Decisions lie in `trust.toml` in the user's folder, outside any project. What is not trusted is not even parsed.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import cast

from ..agent.errors import ConfigError
from ..agent.small_files import parse_toml, read_small, write_private
from ..agent.workspace import Workspace

FILE = "trust.toml"
PROJECT_FILES = ("deepagent.toml", "deepagent.local.toml")
"""What trust is about, in a project's `.deepagents`: everything there that can do something. Later wins."""
_MAX_FILE = 1024 * 1024


def project_files(workspace: Workspace) -> dict[Path, bytes]:
    """The project's settings files and their content; none in the home folder. Raises `ConfigError`."""
    if workspace.project is None or _same(workspace.project, workspace.user):
        return {}
    found: dict[Path, bytes] = {}
    for name in PROJECT_FILES:
        data = read_settings(workspace.project / name)
        if data is not None:
            found[workspace.project / name] = data
    return found


def read_settings(path: Path) -> bytes | None:
    """The content of a settings file; None where there is none. Raises `ConfigError`."""
    try:
        data, size = read_small(path, _MAX_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if size > _MAX_FILE:
        raise ConfigError(f"{path}: has {size:,} bytes; {_MAX_FILE:,} are the limit")
    return data


def fingerprint(files: dict[Path, bytes]) -> str:
    """A hash over the names and contents of `files`."""
    total = hashlib.sha256()
    for path, data in sorted(files.items()):
        total.update(f"{path.name} {hashlib.sha256(data).hexdigest()}\n".encode())
    return total.hexdigest()


def is_trusted(workspace: Workspace, files: dict[Path, bytes] | None = None) -> bool:
    """Whether the user has trusted this folder with this content. Raises `ConfigError` for files that cannot be read.

    `files` is what `project_files` gave; so the bytes that are judged are the bytes that are used.
    """
    files = project_files(workspace) if files is None else files
    return _decisions(workspace.user).get(str(workspace.root)) == fingerprint(files)


def trust(workspace: Workspace, files: dict[Path, bytes] | None = None) -> None:
    """Remembers that the user trusts this folder as it is now, or with the content `files`. Raises `ConfigError`."""
    files = project_files(workspace) if files is None else files
    _keep(workspace.user, {**_decisions(workspace.user), str(workspace.root): fingerprint(files)})


def distrust(workspace: Workspace) -> None:
    """Forgets the decision on this folder. Raises `ConfigError`."""
    decisions = {path: told for path, told in _decisions(workspace.user).items() if path != str(workspace.root)}
    _keep(workspace.user, decisions)


def _keep(user: Path, decisions: dict[str, str]) -> None:
    import tomli_w

    try:
        write_private(user / FILE, tomli_w.dumps({"trusted": decisions}).encode())
    except OSError as error:
        raise ConfigError(f"{user / FILE}: cannot be written: {error.strerror}") from error


def _decisions(user: Path) -> dict[str, str]:
    """Hashes by folder. Raises `ConfigError` for a damaged file: it is not for us to throw decisions away."""
    data = read_settings(user / FILE)
    table = parse_toml(data, user / FILE).get("trusted") if data else None
    if not isinstance(table, dict):
        return {}
    return {path: value for path, value in cast(dict[str, object], table).items() if isinstance(value, str)}


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
