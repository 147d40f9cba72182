"""Confining on macOS: a profile in the language of `sandbox-exec`. Not tested on a machine; its text is.

Later rules count before earlier ones, so inner places come after outer ones.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .bounds import Bounds, EngineName, depth
from .engine import Command, SandboxError, Wrapped, make_places
from .variables import variables

_PROGRAM = "/usr/bin/sandbox-exec"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")
_SERVICES = (
    *(
        "com.apple.coreservices.launchservicesd",
        "com.apple.lsd.open",
        "com.apple.securityd.xpc",
        "com.apple.SecurityServer",
    ),
    *("com.apple.pasteboard.1", "com.apple.tccd", "com.apple.appleeventsd"),
)
"""Services that would act for a command: start programs, hand out keys, press keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seatbelt:
    """The engine that works through `sandbox-exec`."""

    name: EngineName = field(default="seatbelt", init=False)

    def title(self) -> str:
        if sys.platform != "darwin" or not Path(_PROGRAM).exists():
            raise SandboxError("there is no sandbox-exec")
        return "sandbox-exec"

    def wrap(self, command: Command) -> Wrapped:
        bounds = make_places(command.bounds)
        changed = variables(bounds, command.environ)
        settings = dict(changed.set)
        if command.private:
            settings["TMPDIR"] = tempfile.mkdtemp(prefix="deepagent-")
            bounds = Bounds(writable=(Path(settings["TMPDIR"]).resolve(),), hidden=bounds.hidden)
        environment = [*(part for name in changed.unset for part in ("-u", name))]
        environment += [f"{name}={value}" for name, value in settings.items()]
        return Wrapped(
            argv=(_PROGRAM, "-p", profile(bounds, command.environ), "/usr/bin/env", *environment, *command.argv)
        )

    def lacks(self, bounds: Bounds) -> tuple[str, ...]:
        return (
            "settings of git repositories that a command makes in the workspace: git obeys them when run there by you",
            "services of the system that it does not know of",
        )


def profile(bounds: Bounds, environ: Mapping[str, str]) -> str:
    """The profile for these bounds."""
    return "\n".join(_rules(bounds, environ)) + "\n"


def _rules(bounds: Bounds, environ: Mapping[str, str]) -> Iterator[str]:
    yield "(version 1)"
    yield "(allow default)"
    yield "(deny file-write*)"
    yield f"(allow file-write* {' '.join(f'(literal {_quoted(path)})' for path in _DEVICES)})"
    places = [
        *((depth(path), 0, path) for path in bounds.writable),
        *((depth(path), 1, path) for path in bounds.read_only),
    ]
    for _, closed, path in sorted(places):
        yield f"({'deny' if closed else 'allow'} file-write* (subpath {_quoted(path)}))"
        if closed:  # nor can a folder around it be put aside
            yield from (f"(deny file-write-unlink (literal {_quoted(folder)}))" for folder in _between(bounds, path))
    for path in bounds.hidden:
        yield f"(deny file-read* file-write* (subpath {_quoted(path)}))"
    yield f"(deny mach-lookup {' '.join(f'(global-name {_quoted(name)})' for name in _SERVICES)})"
    yield "(deny appleevent-send)"
    yield "(deny signal (target others))"
    if not bounds.network:
        yield "(deny network*)"
        yield '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))'
    elif agent := environ.get("SSH_AUTH_SOCK"):
        yield f"(deny network-outbound (literal {_quoted(os.path.realpath(agent))}))"


def _between(bounds: Bounds, path: Path) -> Iterator[Path]:
    for folder in path.parents:
        if folder in bounds.writable:
            return
        yield folder


def _quoted(path: Path | str) -> str:
    """A string of the profile's language."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
