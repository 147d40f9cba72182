"""Confining with bubblewrap: a command gets namespaces of its own, in which the file system shows what it may reach.

What is mounted where follows from the bounds alone, outer places before inner ones. The first process of the namespace
lives until the last of the command's has ended, also when the shell ended long before, and takes all of them with it
when it is killed.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .bounds import Bounds, EngineName, depth, enclosing
from .engine import Command, SandboxError, Wrapped, make_places
from .seccomp import Sockets, socket_filter
from .sockets import outside_sockets
from .variables import variables

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_OWN = ("--dev", "/dev", "--proc", "/proc")
_NEVER = frozenset(map(Path, ("/", "/dev", "/proc")))
"""Mounted before all else."""
_PRIVATE = "/dev/shm"  # noqa: S108 - of the command's own /dev
_NULL = os.devnull
"""Mounted without the right to be a device, it cannot be opened: what stands below it is hidden."""
_SECONDS = 5.0
_OLDEST = (0, 5)
"""`--perms` came with 0.5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """The engine that works through `bwrap`."""

    program: str | None
    """The absolute path, or None where there is none."""
    name: EngineName = field(default="bubblewrap", init=False)

    def title(self) -> str:
        if self.program is None:
            raise SandboxError("bubblewrap is not installed")
        try:
            command = (self.program, "--version")
            said = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True).stdout.decode().strip()
            version = tuple(int(part) for part in said.split()[-1].split(".")[:2])
        except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
            raise SandboxError(f"{self.program} does not run: {error}") from error
        if version < _OLDEST:
            raise SandboxError(f"{said} is too old: 0.5 is needed")
        return said

    def wrap(self, command: Command) -> Wrapped:
        if self.program is None:
            raise SandboxError("bubblewrap is not installed")
        bounds = make_places(command.bounds)
        changed = variables(bounds, command.environ)
        settings = {**changed.set, **({"TMPDIR": _PRIVATE} if command.private else {})}
        code = socket_filter(platform.machine(), Sockets(internet=True, local=not bounds.network))
        fds = (_in_memory(code),) if code else ()
        options = [
            *_NAMESPACES,
            *(() if bounds.network else ("--unshare-net",)),
            *("--cap-drop", "ALL", "--bind" if Path("/") in bounds.writable else "--ro-bind", "/", "/"),
            *_OWN,
            *(("--remount-ro", "/proc") if os.geteuid() == 0 else ()),  # settings of the kernel are root's there, too
            *_mounts(bounds, command.environ),
            *("--chdir", str(command.cwd)),
            *(part for name in changed.unset for part in ("--unsetenv", name)),
            *(part for name, value in settings.items() for part in ("--setenv", name, value)),
            *(part for fd in fds for part in ("--seccomp", str(fd))),
        ]
        return Wrapped(argv=(self.program, *options, "--", *command.argv), fds=fds)

    def lacks(self, bounds: Bounds) -> tuple[str, ...]:
        links = tuple(path for path in bounds.inner() if path.is_symlink())
        return (
            "settings of git repositories that a command makes in the workspace: git obeys them when run there by you",
            "local sockets that other programs open while a command runs",
            *(f"{path}, which is a link" for path in links),
        )


def _mounts(bounds: Bounds, environ: Mapping[str, str]) -> Iterator[str]:
    """The mounts as options, outer places first; of two at the same place the stricter one comes last."""
    hidden = (*bounds.hidden, *(path for path in outside_sockets(environ) if not bounds.hides(path)))
    closed = [path for path in bounds.read_only if not path.is_symlink()]
    placed = [
        *((depth(path), 0, path) for path in {*bounds.writable, *_anchors(bounds, closed)} - _NEVER),
        *((depth(path), 1, path) for path in set(closed)),
        *((depth(path), 2, path) for path in set(hidden)),
    ]
    for _, kind, path in sorted(placed):
        if kind < 2:
            yield from ("--bind" if kind == 0 else "--ro-bind", str(path), str(path))
        elif path.is_dir():
            yield from ("--perms", "0000", "--tmpfs", str(path), "--remount-ro", str(path))
        else:
            yield from ("--ro-bind", _NULL, str(path))


def _anchors(bounds: Bounds, closed: list[Path]) -> Iterator[Path]:
    """The folders between a closed place and the writable one around it.

    A mount point cannot be renamed or removed, but a folder that holds one can, and another put in its place.
    """
    for path in closed:
        outer = max(enclosing(bounds.writable, path.parent), key=depth)
        between = path.parents[: depth(path) - depth(outer) - 1]
        yield from (folder for folder in between if not enclosing(bounds.read_only, folder))


def _in_memory(content: bytes) -> int:
    """A file without a name, to be read from its start."""
    fd = os.memfd_create("seccomp")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
