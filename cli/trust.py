"""Trust: whether a project's settings may take effect. A decision holds for one folder and one content of its files.

Decisions lie in `trust.toml` in the user's folder, outside any project. What is not trusted is not even parsed. Where
nothing lies but a local file that we wrote ourselves (`kept_rules`), with what the user said, nothing needs trust.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
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
    return _decisions(workspace.user).trusted.get(str(workspace.root)) == fingerprint(files)


def is_own(workspace: Workspace, files: dict[Path, bytes]) -> bool:
    """Whether `files` are nothing but what we wrote for this user, or nothing at all. Raises `ConfigError`."""
    if not files:
        return True
    local = all(path.name == PROJECT_FILES[-1] for path in files)
    return local and _decisions(workspace.user).own.get(str(workspace.root)) == fingerprint(files)


def trust(workspace: Workspace, files: dict[Path, bytes] | None = None) -> None:
    """Remembers that the user trusts this folder as it is now, or with the content `files`. Raises `ConfigError`."""
    files = project_files(workspace) if files is None else files
    decisions = _decisions(workspace.user)
    decisions.trusted[str(workspace.root)] = fingerprint(files)
    _keep(workspace.user, decisions)


def follow(workspace: Workspace, before: dict[Path, bytes], after: dict[Path, bytes]) -> None:
    """Lets what holds for `before` hold for `after`, which is `before` and a write of ours. Raises `ConfigError`."""
    decisions, trusted = _decisions(workspace.user), is_trusted(workspace, before)
    if trusted:
        decisions.trusted[str(workspace.root)] = fingerprint(after)
    if is_own(workspace, before):
        decisions.own[str(workspace.root)] = fingerprint(after)
    _keep(workspace.user, decisions)


def distrust(workspace: Workspace) -> None:
    """Forgets the decision on this folder, and what we wrote there. Raises `ConfigError`."""
    decisions = _decisions(workspace.user)
    decisions.trusted.pop(str(workspace.root), None)
    decisions.own.pop(str(workspace.root), None)
    _keep(workspace.user, decisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decisions:
    """Fingerprints by folder."""

    trusted: dict[str, str]
    """Of what the user trusts."""
    own: dict[str, str]
    """Of local files that we wrote."""


def _keep(user: Path, decisions: _Decisions) -> None:
    import tomli_w

    tables = {"trusted": decisions.trusted, "own": decisions.own}
    try:
        write_private(user / FILE, tomli_w.dumps({name: rows for name, rows in tables.items() if rows}).encode())
    except OSError as error:
        raise ConfigError(f"{user / FILE}: cannot be written: {error.strerror}") from error


def _decisions(user: Path) -> _Decisions:
    """What was decided. Raises `ConfigError` for a damaged file: it is not for us to throw decisions away."""
    data = read_settings(user / FILE)
    tree = parse_toml(data, user / FILE) if data else {}
    return _Decisions(trusted=_rows(tree.get("trusted")), own=_rows(tree.get("own")))


def _rows(table: object) -> dict[str, str]:
    if not isinstance(table, dict):
        return {}
    return {path: value for path, value in cast(dict[str, object], table).items() if isinstance(value, str)}


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
