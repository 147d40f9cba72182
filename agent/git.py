"""Git: which branch and how many changes, as the screen shows them, and the repositories that we make.

Looking at a repository never runs what it brings: no hooks, filters, monitors, pagers, diff programs, and no network.
So questions go to the `git` of the search path, each a process with fixed arguments, a time limit and a bound on its
output; nothing stays open between them. GitPython makes repositories; this is the one module that imports it.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from .errors import DeepagentError

STATE_SECONDS = 2.0
"""What `state` may take; a large repository is then told of by its branch alone."""
DIFF_SECONDS = 10.0
DIFF_BYTES = 2 * 1024 * 1024
_STATUS_BYTES = 8 * 1024 * 1024
_STATUS = (
    *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal"),
    *("--no-renames", "--no-ahead-behind", "--ignore-submodules=dirty"),
)
_UNTRACKED = 1_000
"""Names of untracked files that `changes` lists."""
_QUIET = (("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false"), ("commit.gpgsign", "false"))
_SAFE = (*_QUIET, ("core.pager", "cat"), ("core.quotePath", "false"))
_REASON_BYTES = 4_096
_KEPT = ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH")
"""The variables of git that a user's set-up may need; all others would point it somewhere else."""


class GitError(DeepagentError):
    """Git is missing, or cannot say what was asked; the text is git's own reason."""

    kind = "git"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a git process said."""

    code: int | None
    """None: it was ended, for time or for size."""
    out: bytes
    err: str
    cut: bool = False
    """There was more than the bound."""


def make_repository(folder: Path, message: str) -> None:
    """Makes a repository of everything in `folder`, with one commit on `main`."""
    from git import Actor, Repo

    author = Actor("deepagent", "deepagent@localhost")
    with Repo.init(folder, initial_branch="main") as repo:
        with repo.config_writer() as config:
            for key, value in _QUIET:
                section, _, name = key.partition(".")
                config.set_value(section, name, value)
        repo.git.add("--all")
        repo.index.commit(message, author=author, committer=author, skip_hooks=True)


def state(root: Path, *, seconds: float = STATE_SECONDS) -> GitState | None:
    """Branch and changes of the work tree at `root`; None where git does not know one. Raises nothing."""
    end = time.monotonic() + seconds
    try:
        environ = _environment(root, end)
        said = _git(root, _STATUS, environ, end=end - seconds / 4, limit=_STATUS_BYTES)
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
    environ = _environment(root, end)
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=dirty")
    said = _git(root, ("diff", *plain, _base(root, environ, end), "--"), environ, end=end, limit=DIFF_BYTES)
    if said.code and not said.cut:
        raise GitError(_reason(said))
    parts = [said.out.decode("utf-8", "replace")]
    if said.code is None:
        parts.append(f"… cut here: the diff {'is longer than 2 MB' if said.cut else 'takes too long'}")
    names = _untracked(root, environ, end) if untracked else []
    if names:
        parts.append("\n".join(("Untracked files:", *(f"  {name}" for name in names))))
    return "\n".join(part.rstrip("\n") for part in parts if part)


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


def _branch_alone(root: Path, environ: dict[str, str], end: float) -> GitState | None:
    """The branch of a work tree that is too large to be looked through."""
    for question in (("symbolic-ref", "--short", "-q", "HEAD"), ("rev-parse", "--short", "HEAD")):
        said = _git(root, question, environ, end=end, limit=4096)
        if said.code == 0 and (branch := said.out.decode("utf-8", "replace").strip()):
            return GitState(branch=branch, changed=None, untracked=None)
    return None


def _base(root: Path, environ: dict[str, str], end: float) -> str:
    """What a diff begins from: the last commit, or nothing at all where there is none yet."""
    said = _git(root, ("rev-parse", "--verify", "-q", "HEAD"), environ, end=end, limit=4096)
    if said.code == 0:
        return "HEAD"
    if said.code == 1:
        said = _git(root, ("hash-object", "-t", "tree", "--stdin"), environ, end=end, limit=4096)
    if said.code != 0:
        raise GitError(_reason(said))
    return said.out.decode().strip()


def _untracked(root: Path, environ: dict[str, str], end: float) -> list[str]:
    said = _git(root, ("ls-files", "--others", "--exclude-standard", "-z"), environ, end=end, limit=DIFF_BYTES)
    names = [name.replace("\n", "␊") for name in said.out.decode("utf-8", "replace").split("\0") if name]
    more = len(names) - _UNTRACKED
    return [*names[:_UNTRACKED], f"… and {more:,} more"] if more > 0 else names


def _environment(root: Path, end: float) -> dict[str, str]:
    """The environment of all questions to one repository: what it could make git run is switched off by name.

    A filter cannot be switched off in general, so each that the configuration names is made empty.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    environ |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    environ |= {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    said = _git(root, ("config", "-z", "--name-only", "--get-regexp", r"^filter\."), environ, end=end, limit=65_536)
    if said.code is None:
        raise GitError(f"the configuration of the repository {root} cannot be looked through")
    keys = os.fsdecode(said.out).split("\0")
    names = dict.fromkeys(key.rpartition(".")[0] for key in keys if key)
    off = [(f"{name}.{what}", "") for name in names for what in ("clean", "smudge", "process")]
    off += [(f"{name}.required", "false") for name in names]
    environ["GIT_CONFIG_COUNT"] = str(len(off))
    for number, (key, value) in enumerate(off):
        environ |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environ


def _git(root: Path, args: Sequence[str], environ: dict[str, str], *, end: float, limit: int) -> _Answer:
    """Asks git, until `end` (monotonic) and for at most `limit` bytes. Raises `GitError` where it cannot be run."""
    settings = (word for key, value in _SAFE for word in ("-c", f"{key}={value}"))
    command = (_program(), "--no-pager", *settings, *args)
    with TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                cwd=root,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be run in {root}: {error.strerror}") from error
        with process:
            try:
                out = _read(process, end, limit)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        errors.seek(0)
        reason = errors.read(_REASON_BYTES).decode("utf-8", "replace")
    code = process.returncode
    return _Answer(code=None if code < 0 else code, out=out[:limit], err=reason, cut=len(out) > limit)


def _read(process: subprocess.Popen[bytes], end: float, limit: int) -> bytes:
    """What a process writes, until it ends, `end` comes, or there is more than `limit` bytes of it."""
    assert process.stdout is not None
    out = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(out) <= limit and selector.select(max(0.0, end - time.monotonic())):
            piece = os.read(process.stdout.fileno(), 65_536)
            if not piece:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, end - time.monotonic()))
                break
            out += piece
    return bytes(out)


def _program() -> str:
    """The absolute path of git: a `git` in the folder that is looked at must never be run. Raises `GitError`."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder.startswith("/")]
    found = shutil.which("git", path=os.pathsep.join(folders))
    if found is None:
        raise GitError("git is not installed")
    return found


def _reason(said: _Answer) -> str:
    """Git's own words, in one line."""
    lines = [line.strip() for line in said.err.splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ") if lines else "git took too long or failed without a reason"
