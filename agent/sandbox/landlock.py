"""Confining with Landlock: the kernel holds a command to a list of places, and a filter keeps it from sockets.

For machines without bubblewrap, or where it cannot work (containers, kernels that forbid user namespaces). It needs no
rights at all, but can only grant places, never close one within a granted one, and it knows no modes and owners. The
work is done by `launcher`, which runs as a program of its own.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import launcher
from .bounds import Bounds, EngineName, enclosing
from .engine import Command, SandboxError, Wrapped, make_places
from .seccomp import Sockets, socket_filter
from .variables import variables

_START = (
    f"import sys; sys.path.append({str(Path(launcher.__file__).resolve().parent)!r}); import launcher; launcher.start()"
)
"""As a module the launcher need not be compiled each time."""
_TRUNCATION, _SIGNALS = 3, 6
"""The versions of Landlock from which it rules over these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landlock:
    """The engine that works through the kernel alone."""

    python: str = field(default_factory=lambda: os.path.realpath(sys.executable))
    """The interpreter that runs the launcher; the real one, which no environment in a workspace can replace."""
    name: EngineName = field(default="landlock", init=False)

    def title(self) -> str:
        if sys.platform != "linux" or not (version := launcher.version()):
            raise SandboxError("the kernel has no Landlock")
        if not socket_filter(platform.machine(), Sockets(internet=False, local=False)):
            raise SandboxError(f"Landlock keeps nothing from the network on {platform.machine()}")
        return f"Landlock {version}"

    def wrap(self, command: Command) -> Wrapped:
        bounds = make_places(command.bounds)
        changed = variables(bounds, command.environ)
        code = socket_filter(platform.machine(), Sockets(internet=bounds.network, local=False))
        options = [
            *("--filter", code.hex()),
            *(("--network",) if bounds.network else ()),
            *(("--private",) if command.private else ()),
            *(part for path in bounds.writable for part in ("--write", str(path))),
            *(part for path in bounds.hidden for part in ("--hide", str(path))),
            *(part for name in changed.unset for part in ("--unset", name)),
            *(part for name, value in changed.set.items() for part in ("--set", f"{name}={value}")),
        ]
        return Wrapped(argv=(self.python, "-I", "-S", "-c", _START, *options, "--", *command.argv))

    def lacks(self, bounds: Bounds) -> tuple[str, ...]:
        version = launcher.version()
        open_ones = [path for path in bounds.inner() if enclosing(bounds.writable, path)]
        return (
            *(["what is closed within the workspace: git's hooks and settings, our own data"] if open_ones else []),
            "settings of git repositories that a command makes in the workspace: git obeys them when run there by you",
            "modes, owners and times of files outside",
            "names and sizes of hidden files",
            "which programs run, and their arguments",
            "shared memory and message queues of other programs",
            "priorities of other programs",
            *(["cutting files outside to nothing"] if version < _TRUNCATION else []),
            *(["signals to other programs"] if version < _SIGNALS else []),
        )
