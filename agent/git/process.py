"""Running git: fixed arguments, a time limit, a bound on the output, and nothing that outlives the question.

Looking at a repository never runs what it brings: no hooks, filters, monitors, pagers, diff programs, and no network.
What is asked is the business of whoever asks.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from ..errors import DeepagentError

QUIET = (("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false"), ("commit.gpgsign", "false"))
_SAFE = (*QUIET, ("core.pager", "cat"), ("core.quotePath", "false"))
_REASON_BYTES = 4_096
_KEPT = ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH")
"""The variables of git that a user's set-up may need; all others would point it somewhere else."""


class GitError(DeepagentError):
    """Git is missing, or cannot say what was asked; the text is git's own reason."""

    kind = "git"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a git process said."""

    code: int | None
    """None: it was ended, for time or for size."""
    out: bytes
    err: str
    cut: bool = False
    """There was more than the bound."""

    @property
    def reason(self) -> str:
        """Git's own words, in one line."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        return lines[0].removeprefix("fatal: ") if lines else "git took too long or failed without a reason"


def run(
    folder: Path, args: Sequence[str], environ: Mapping[str, str], *, end: float, limit: int, data: bytes = b""
) -> Answer:
    """Asks git in `folder`, until `end` (monotonic) and for at most `limit` bytes; `data` is its standard input.

    Raises `GitError` where it cannot be run.
    """
    with TemporaryFile() as errors, TemporaryFile() as given:
        given.write(data)
        given.seek(0)
        with started(folder, args, environ, stdin=given.fileno(), stderr=errors.fileno()) as process:
            out = _read(process, end, limit)
        errors.seek(0)
        reason = errors.read(_REASON_BYTES).decode("utf-8", "replace")
    code = process.returncode
    return Answer(code=None if code < 0 else code, out=out[:limit], err=reason, cut=len(out) > limit)


@contextmanager
def started(
    folder: Path, args: Sequence[str], environ: Mapping[str, str], *, stdin: int, stderr: int
) -> Generator[subprocess.Popen[bytes]]:
    """A git process in a group of its own, which is gone afterwards. Raises `GitError` where it cannot be run."""
    settings = (word for key, value in _SAFE for word in ("-c", f"{key}={value}"))
    command = (program(), "--no-pager", *settings, *args)
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            umask=0o077,  # what git makes for us is for the user alone
        )
    except OSError as error:
        raise GitError(f"git cannot be run in {folder}: {error.strerror}") from error
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def environment() -> dict[str, str]:
    """Our own environment without what would point git somewhere else, make it ask, or let it fetch."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    environ |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    return environ | {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}


def unfiltered(root: Path, end: float) -> dict[str, str]:
    """The environment of all questions to one repository of the user's. Raises `GitError`.

    A filter cannot be switched off in general, so each that the configuration names is made empty.
    """
    environ = environment()
    said = run(root, ("config", "-z", "--name-only", "--get-regexp", r"^filter\."), environ, end=end, limit=65_536)
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


def program() -> str:
    """The absolute path of git: a `git` in the folder that is looked at must never be run. Raises `GitError`."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder.startswith("/")]
    found = shutil.which("git", path=os.pathsep.join(folders))
    if found is None:
        raise GitError("git is not installed")
    return found


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
