"""Runs the real program as a process, in a repository, with a home and an environment of its own."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from deepagent.agent.storage import DiskStorage
from deepagent.agent.workspace import Workspace, find_workspace
from deepagent.cli.main import dispatch
from deepagent.context.entries import Entry, MessageLogged
from deepagent.context.log import LoadedLog, load
from deepagent.context.messages import AssistantMessage, Message, ToolMessage
from deepagent.context.storage import log_name
from deepagent.context.view import build_view

DEEPAGENT = Path(sys.executable).with_name("deepagent")
Json = dict[str, Any]
_PATIENCE = 60
"""Seconds after which a process counts as hanging."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A process that has ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Json]:
        """The objects of standard output; nothing but objects may stand there."""
        return [cast(Json, json.loads(line)) for line in self.out.splitlines()]

    @property
    def result(self) -> Json:
        """The result object, which comes last."""
        last = self.lines[-1]
        assert last["type"] == "result", last
        return last

    def of(self, kind: str) -> list[Json]:
        """The objects of one type."""
        return [line for line in self.lines if line["type"] == kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`deepagent` in `repo`.

    It does not find the tables that come with litellm, which take half the time of a short run: it estimates tokens and
    knows no model of the table. `full` does.
    """

    repo: Path
    home: Path
    scripts: Path
    environ: Mapping[str, str]
    wrapper: tuple[str, ...] = ()
    """What the command line begins with."""

    def script(self, *steps: Mapping[str, object], **more: object) -> str:
        """The model that plays these steps, as `-m` takes it."""
        path = self.scripts / f"{len(list(self.scripts.iterdir()))}.json"
        path.write_text(json.dumps({"steps": steps, **more}))
        return f"scripted:{path}"

    def start(self, *args: str | Path, **options: Any) -> subprocess.Popen[bytes]:
        """A process that runs; `options` are those of `Popen`."""
        given: Any = {"cwd": self.repo, "env": self.environ, "stdin": subprocess.DEVNULL}
        given |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process: Any = subprocess.Popen([*self.wrapper, str(DEEPAGENT), *map(str, args)], **given)
        return process

    def run(self, *args: str | Path, stdin: bytes | None = None, **options: Any) -> Done:
        """A process that has ended. It is not waited for longer than a minute."""
        pipe = {} if stdin is None else {"stdin": subprocess.PIPE}
        with self.start(*args, **{**pipe, **options}) as process:
            return finish(process, stdin)

    def inside(self, *args: str | Path) -> Done:
        """The same in this process, where nothing that is looked at needs another one: it takes a tenth of the time."""
        out, err, stdin = io.StringIO(), io.StringIO(), sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO())
        try:
            with chdir(self.repo), redirect_stdout(out), redirect_stderr(err):
                code = dispatch([str(arg) for arg in args])
        finally:
            sys.stdin = stdin
        return Done(code=code, out=out.getvalue(), err=err.getvalue())

    @property
    def full(self) -> Program:
        """The program with all tables."""
        return replace(self, environ=self.with_env(PYTHONPATH=None))

    def with_env(self, **variables: str | None) -> dict[str, str]:
        """The environment with these variables; None takes one away."""
        changed = {**self.environ, **variables}
        return {name: value for name, value in changed.items() if value is not None}

    def git(self, *args: str) -> str:
        """What git says in the repository."""
        return subprocess.run(("git", *args), cwd=self.repo, check=True, capture_output=True, text=True).stdout

    def commit(self, path: str, text: str) -> None:
        """Makes a file part of the repository, whatever is ignored."""
        (self.repo / path).parent.mkdir(parents=True, exist_ok=True)
        (self.repo / path).write_text(text)
        self.git("add", "--force", path)
        self.git("commit", "--quiet", "--message", f"Add {path}")

    @property
    def status(self) -> str:
        """What `git status` finds to say: nothing, if all is clean."""
        return self.git("status", "--porcelain", "--untracked-files=all")

    @property
    def workspace(self) -> Workspace:
        """The places of a run in the repository."""
        return find_workspace(self.repo, environ=self.environ)

    @property
    def storage(self) -> DiskStorage:
        """The files of a run in the repository; looking at them changes nothing."""
        workspace = self.workspace
        return DiskStorage(workspace.data, workspace.mirror, prefix=workspace.prefix)

    def sessions(self) -> list[str]:
        """The ids of all sessions of the repository, oldest first."""
        return [Path(name).stem for name in self.storage.names("sessions") if name.endswith(".jsonl")]

    def log(self, session: str | None = None) -> LoadedLog:
        """A session's log; the newest one's if none is named."""
        name = log_name(session or self.sessions()[-1])
        return load(name, self.storage.read(name))

    def messages(self, session: str | None = None) -> list[Message]:
        """Every message of a session."""
        return messages_of(self.log(session).entries)

    def end_children(self) -> None:
        """Ends what a killed process left running: whatever has this home, where the system tells."""
        mark, processes = f"HOME={self.home}".encode(), Path("/proc")
        for entry in processes.iterdir() if processes.exists() else ():
            with suppress(OSError):
                if entry.name.isdecimal() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)


def finish(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> Done:
    """Waits for a process, and kills one that hangs."""
    try:
        out, err = process.communicate(stdin, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Done(code=process.returncode, out=(out or b"").decode(), err=(err or b"").decode())


def next_object(process: subprocess.Popen[bytes], kind: str) -> Json:
    """Reads standard output up to the next object of a type."""
    assert process.stdout is not None
    for line in process.stdout:
        found = cast(Json, json.loads(line))
        if found["type"] == kind:
            return found
    raise AssertionError(f"the process ended without {kind!r}")


def still_runs(pid_file: Path) -> bool:
    """Whether a process still runs, whose number is in a file. Who has ended and waits to be collected does not."""
    command = ("ps", "-o", "stat=", "-p", pid_file.read_text().strip())
    state = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return bool(state) and not state.startswith("Z")


def call(name: str, **arguments: object) -> Json:
    """A tool call of a script."""
    return {"name": name, "arguments": arguments}


def messages_of(entries: Sequence[Entry]) -> list[Message]:
    """The messages among entries."""
    return [entry.message for entry in entries if isinstance(entry, MessageLogged)]


def assert_well_formed(log: LoadedLog) -> None:
    """Every message once, every result once and behind its call; what the model is sent has all pairs whole."""
    messages = messages_of(log.entries)
    ids = [message.id for message in messages]
    assert len(set(ids)) == len(ids), "a message is there twice"
    assert_pairs(messages, complete=False)
    assert_pairs(build_view(log.entries).messages, complete=True)


def assert_pairs(messages: Sequence[Message], *, complete: bool) -> None:
    """Each result follows the answer with its call, and is the only one; if `complete`, each call has one."""
    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.call_id in open_calls, f"a result without its call before it: {message.call_id}"
            open_calls.remove(message.call_id)
            continue
        assert not (complete and open_calls), f"calls without results: {open_calls}"
        open_calls = {part.id for part in message.calls} if isinstance(message, AssistantMessage) else set()
    assert not (complete and open_calls), f"calls without results: {open_calls}"


def files_below(folder: Path) -> Iterator[Path]:
    """Folder, folders and files, links not followed."""
    yield folder
    for path in folder.rglob("*"):
        if not path.is_symlink():
            yield path
