"""Where "always" is kept: in the project's local file, or in the user's where there is no project layer.

The file is the user's, with comments and an order of its own: rules are put into its text, and nothing else of it
changes. In a folder that is not trusted nothing is kept beyond the session, and what others write never becomes trusted
by a write of ours.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..agent.config import find_problems
from ..agent.errors import ConfigError
from ..agent.small_files import parse_toml, read_small, write_private
from ..agent.workspace import Workspace
from .trust import PROJECT_FILES, follow, is_own, is_trusted, project_files, read_settings

USER_FILE = "deepagent.toml"
LOCAL_FILE = PROJECT_FILES[-1]
_LOCK = "rules.lock"
_IGNORES = frozenset({f"/{LOCAL_FILE}", LOCAL_FILE, "*"})
_LONGEST_IGNORE = 64 * 1024
_HEADER = re.compile(r"^[ \t]*\[[ \t]*permissions[ \t]*\][^\n]*(?:\n|\Z)", re.MULTILINE)
_LIST = re.compile(r"^[ \t]*(?:permissions[ \t]*\.[ \t]*)?allow[ \t]*=[ \t]*\[", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where rules are kept."""

    path: Path | None = None
    """None: only in the session."""
    shown: str = ""
    """The path, for people."""
    why: str = ""
    """Why only in the session, as half a sentence."""

    @property
    def text(self) -> str:
        """Where, as half a sentence."""
        return f"kept in {self.shown}" if self.path else f"in this session only: {self.why}"


def place_of(workspace: Workspace) -> Place:
    """Where a rule would be kept."""
    project = workspace.project
    if project is None or os.path.realpath(project) == os.path.realpath(workspace.user):
        path = workspace.user / USER_FILE
        return Place(path=path, shown=f"{path}, for all projects")
    path = project / LOCAL_FILE
    try:
        why = _why_not(workspace, path)
    except ConfigError as error:
        why = str(error)
    return Place(why=why) if why else Place(path=path, shown=str(path.relative_to(workspace.root)))


def keep(workspace: Workspace, rules: Sequence[str]) -> Place:
    """Keeps rules, and says where. Raises `ConfigError` if the file cannot be written or takes no rule."""
    try:
        with _locked(workspace.user):
            place = place_of(workspace)
            if place.path is not None:
                _add(workspace, place.path, rules)
            return place
    except OSError as error:
        raise ConfigError(f"{error.filename or workspace.user}: cannot be written: {error.strerror}") from error


def with_rules(data: bytes, rules: Sequence[str], path: Path) -> bytes:
    """The content of a settings file with more rules under `permissions.allow`; all else stays. Raises `ConfigError`.

    `path` is only named.
    """
    tree = parse_toml(data, path)
    if problems := find_problems(tree):
        raise ConfigError(f"{path}: {problems[0].key}: {problems[0].reason}")
    new = [rule for rule in dict.fromkeys(rules) if rule not in _allowed(tree)]
    if not new:
        return data
    wanted = _with(tree, new)
    text = data.decode("utf-8")
    for candidate in _candidates(text, new, "\r\n" if "\r\n" in text else "\n"):
        try:
            if parse_toml(candidate.encode(), path) == wanted:
                return candidate.encode()
        except ConfigError:
            continue  # it was not the right place
    raise ConfigError(f"{path}: no place was found in it for another rule under permissions.allow")


def _add(workspace: Workspace, path: Path, rules: Sequence[str]) -> None:
    if path.name != LOCAL_FILE:
        write_private(path, with_rules(read_settings(path) or b"", rules, path))
        return
    before = project_files(workspace)
    after = {**before, path: with_rules(before.get(path, b""), rules, path)}
    if not (is_trusted(workspace, before) or is_own(workspace, before)):
        raise ConfigError(f"{path} was changed by somebody else in this moment")
    if after != before:
        workspace.keep_out_of_git()
        write_private(path, after[path])
        follow(workspace, before, after)


def _why_not(workspace: Workspace, path: Path) -> str:
    """Why nothing is kept in the project, or empty. Raises `ConfigError`."""
    if workspace.data != workspace.project:
        return "the project's .deepagents cannot be written"
    if path.is_symlink():
        return f"{LOCAL_FILE} is a link"
    files = project_files(workspace)
    if not (is_trusted(workspace, files) or is_own(workspace, files)):
        return "this folder is not trusted"
    if workspace.git and not _is_ignored(path.with_name(".gitignore")):
        return f"git would see {LOCAL_FILE}: .deepagents/.gitignore does not name it"
    return ""


def _is_ignored(ignore: Path) -> bool:
    """Whether our local file stays out of git: the ignore file is ours, will be, or says so."""
    if not os.path.lexists(ignore):
        return True
    try:
        lines = read_small(ignore, _LONGEST_IGNORE)[0].decode("utf-8", "replace").splitlines()
    except OSError:
        return False
    return bool(_IGNORES.intersection(line.strip() for line in lines))


def _allowed(tree: dict[str, object]) -> list[str]:
    permissions = cast(dict[str, object], tree.get("permissions", {}))
    return cast(list[str], permissions.get("allow", []))


def _with(tree: dict[str, object], rules: Sequence[str]) -> dict[str, object]:
    wanted = deepcopy(tree)
    permissions = cast(dict[str, object], wanted.setdefault("permissions", {}))
    permissions["allow"] = [*rules, *_allowed(tree)]
    return wanted


def _candidates(text: str, rules: Sequence[str], end: str) -> Iterator[str]:
    """Texts of which one may be right: the rules at the head of the list, below the table's head, or in a new table."""
    items = "".join(f"    {_quoted(rule)},{end}" for rule in rules)
    for found in _LIST.finditer(text):
        tail = text[found.end() :]
        rest = tail.lstrip(" \t")
        yield f"{text[: found.end()]}{end}{items}{rest.removeprefix(end)}"
    table = f"allow = [{end}{items}]{end}"
    for found in _HEADER.finditer(text):
        gap = "" if found[0].endswith("\n") else end
        yield f"{text[: found.end()]}{gap}{table}{text[found.end() :]}"
    gap = "" if not text or text.endswith("\n") else end
    blank = end if text.strip() else ""
    yield f"{text}{gap}{blank}[permissions]{end}{table}"


def _quoted(rule: str) -> str:
    import tomli_w

    return tomli_w.dumps({"x": rule}).partition("=")[2].strip()


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Waits until no other process of ours writes rules."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
