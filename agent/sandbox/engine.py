"""What the engines have in common: a means of the system that holds a command to its bounds.

```
Sandbox                         chooses an engine by a probe, gives each command its bounds
├── Bubblewrap                  Linux: namespaces and mounts, through the program `bwrap`
├── Landlock                    Linux: file rights and a filter of system calls, through a launcher of ours
└── Seatbelt                    macOS: a profile for `sandbox-exec`
```
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import DeepagentError
from .bounds import Bounds, EngineName


class SandboxError(DeepagentError):
    """A command cannot be confined as it has to be; the text says why."""

    kind = "sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    """What to run instead of a command."""

    argv: tuple[str, ...]
    fds: tuple[int, ...] = ()
    """Files that the process has to inherit under the same numbers (`pass_fds`); `close` them once it is started."""

    def close(self) -> None:
        """Closes what was opened for the process. Twice does no harm."""
        for fd in self.fds:
            with suppress(OSError):
                os.close(fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command and the bounds that it is to be held to."""

    argv: Sequence[str]
    cwd: Path
    bounds: Bounds
    environ: Mapping[str, str]
    private: bool = False
    """It gets a temporary folder of its own, named by `TMPDIR`, that goes with it."""


class Engine(Protocol):
    """One means of confining."""

    @property
    def name(self) -> EngineName: ...

    def title(self) -> str:
        """Its name and version. Raises `SandboxError` where it is not there, with the reason."""
        ...

    def wrap(self, command: Command) -> Wrapped:
        """Raises `SandboxError`."""
        ...

    def lacks(self, bounds: Bounds) -> tuple[str, ...]:
        """What it cannot keep from commands, in a few words each."""
        ...


def make_places(bounds: Bounds) -> Bounds:
    """Makes the folders that are to be writable or closed and are not there; what cannot be made is left out."""

    def there(path: Path) -> bool:
        if not os.path.lexists(path):
            with suppress(OSError):
                path.mkdir(mode=0o700, parents=True)
        return os.path.lexists(path)

    return Bounds(
        writable=tuple(filter(there, bounds.writable)),
        read_only=tuple(filter(there, bounds.inner())),
        hidden=tuple(filter(os.path.lexists, bounds.hidden)),
        network=bounds.network,
    )
