"""The user's repositories: which branch, how many changes, the diff of them; and the repositories that we make.

Questions go to the `git` of the search path, each a process of its own (`process`); nothing stays open between them.
GitPython makes repositories; this is the one module that imports it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .process import QUIET, GitError, run, unfiltered

STATE_SECONDS = 2.0
"""What `state` may take; a large repository is then told of by its branch alone."""
DIFF_SECONDS = 10.0
DIFF_BYTES = 2 * 1024 * 1024
PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")
"""Options of a diff that runs nothing and is for reading."""
_STATUS_BYTES = 8 * 1024 * 1024
_STATUS = (
    *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal"),
    *("--no-renames", "--no-ahead-behind", "--ignore-submodules=dirty"),
)
_UNTRACKED = 1_000
"""Names of untracked files that `changes` lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitState:
    """Where a repository stands."""

    branch: str
    """The branch, also one without a commit yet; the short hash where none is checked out."""
    changed: int | None = 0
    """Tracked files that differ from the last commit, staged or not; None where counting takes too long."""
    untracked: int | None = 0
    """Untracked files; a folder in which all is untracked counts as one."""

    @property
    def label(self) -> str:
        """`main +3 ~2`: three untracked, two changed."""
        counts = (("+", self.untracked), ("~", self.changed))
        return " ".join((self.branch, *(f"{sign}{number}" for sign, number in counts if number)))


def make_repository(folder: Path, message: str) -> None:
    """Makes a repository of everything in `folder`, with one commit on `main`."""
    from git import Actor, Repo

    author = Actor("deepagent", "deepagent@localhost")
    with Repo.init(folder, initial_branch="main") as repo:
        with repo.config_writer() as config:
            for key, value in QUIET:
                section, _, name = key.partition(".")
                config.set_value(section, name, value)
        repo.git.add("--all")
        repo.index.commit(message, author=author, committer=author, skip_hooks=True)


def state(root: Path, *, seconds: float = STATE_SECONDS) -> GitState | None:
    """Branch and changes of the work tree at `root`; None where git does not know one. Raises nothing."""
    end = time.monotonic() + seconds
    try:
        environ = unfiltered(root, end)
        said = run(root, _STATUS, environ, end=end - seconds / 4, limit=_STATUS_BYTES)
        if said.code == 0 or said.cut:
            return _read_status(said.out)
        return _branch_alone(root, environ, end) if said.code is None else None
    except (GitError, OSError):
        return None


def changes(root: Path, *, untracked: bool = True) -> str:
    """What the work tree at `root` has that the last commit has not: a diff without colours, at most 2 MB.

    The names of untracked files stand below it. Raises `GitError`.
    """
    end = time.monotonic() + DIFF_SECONDS
    environ = unfiltered(root, end)
    command = ("diff", *PLAIN, "--no-renames", "--ignore-submodules=dirty", _base(root, environ, end), "--")
    said = run(root, command, environ, end=end, limit=DIFF_BYTES)
    if said.code and not said.cut:
        raise GitError(said.reason)
    parts = [said.out.decode("utf-8", "replace")]
    if said.code is None:
        parts.append(f"… cut here: the diff {'is longer than 2 MB' if said.cut else 'takes too long'}")
    names = _untracked(root, environ, end) if untracked else []
    if names:
        parts.append("\n".join(("Untracked files:", *(f"  {name}" for name in names))))
    return "\n".join(part.rstrip("\n") for part in parts if part)


def excludes(root: Path, *, seconds: float = STATE_SECONDS) -> Path | None:
    """The user's own ignore file of the repository at `root`, `.git/info/exclude`; None where there is none."""
    end = time.monotonic() + seconds
    try:
        said = run(root, ("rev-parse", "--git-path", "info/exclude"), unfiltered(root, end), end=end, limit=16_384)
    except (GitError, OSError):
        return None
    path = root / said.out.decode("utf-8", "surrogateescape").removesuffix("\n")
    return path if said.code == 0 and path.is_file() else None


def tracked_though_ignored(root: Path, *, seconds: float = STATE_SECONDS) -> tuple[bytes, ...]:
    """Files that the repository at `root` has in spite of its ignore rules, at most as many as fit in 1 MB of names."""
    end = time.monotonic() + seconds
    command = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    try:
        said = run(root, command, unfiltered(root, end), end=end, limit=1024 * 1024)
    except (GitError, OSError):
        return ()
    return tuple(said.out.split(b"\0")[:-1])


def _read_status(data: bytes) -> GitState:
    """The state in the output of `status --porcelain=v2 --branch -z`."""
    lines = data.decode("utf-8", "replace").split("\0")
    heads = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    branch, commit = heads.get("branch.head", "?"), heads.get("branch.oid", "")
    return GitState(
        branch=commit[:7] if branch == "(detached)" else branch,
        changed=sum(line[:2] in ("1 ", "2 ", "u ") for line in lines),
        untracked=sum(line[:2] == "? " for line in lines),
    )


def _branch_alone(root: Path, environ: Mapping[str, str], end: float) -> GitState | None:
    """The branch of a work tree that is too large to be looked through."""
    for question in (("symbolic-ref", "--short", "-q", "HEAD"), ("rev-parse", "--short", "HEAD")):
        said = run(root, question, environ, end=end, limit=4096)
        if said.code == 0 and (branch := said.out.decode("utf-8", "replace").strip()):
            return GitState(branch=branch, changed=None, untracked=None)
    return None


def _base(root: Path, environ: Mapping[str, str], end: float) -> str:
    """What a diff begins from: the last commit, or nothing at all where there is none yet."""
    said = run(root, ("rev-parse", "--verify", "-q", "HEAD"), environ, end=end, limit=4096)
    if said.code == 0:
        return "HEAD"
    if said.code == 1:
        said = run(root, ("hash-object", "-t", "tree", "--stdin"), environ, end=end, limit=4096)
    if said.code != 0:
        raise GitError(said.reason)
    return said.out.decode().strip()


def _untracked(root: Path, environ: Mapping[str, str], end: float) -> list[str]:
    command = ("ls-files", "--others", "--exclude-standard", "-z")
    said = run(root, command, environ, end=end, limit=DIFF_BYTES)
    names = [name.replace("\n", "␊") for name in said.out.decode("utf-8", "replace").split("\0") if name]
    more = len(names) - _UNTRACKED
    return [*names[:_UNTRACKED], f"… and {more:,} more"] if more > 0 else names
