"""Sockets of other programs in the file system: doors that a read-only mount does not close.

Through one of them a program outside would act for a command: a container service, a session bus, a terminal
multiplexer, an agent that holds keys.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from .places import HOME_SOCKETS, SERVICE_SOCKETS

_TABLE = Path("/proc/net/unix")
_PATH_FIELD = 7


def outside_sockets(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The sockets with a path that this process could knock at, as real paths.

    The kernel tells those of this network namespace, so none that a command without network has made.
    """
    named = (*_known_to_the_kernel(), *map(Path, SERVICE_SOCKETS), *_at_home(environ))
    found = {path.resolve() for path in named if _is_door(path)}
    return tuple(sorted(found))


def _known_to_the_kernel() -> Iterator[Path]:
    try:
        lines = _TABLE.read_bytes().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split(maxsplit=_PATH_FIELD)
        if len(fields) > _PATH_FIELD and fields[_PATH_FIELD].startswith(b"/"):
            yield Path(os.fsdecode(fields[_PATH_FIELD]))


def _at_home(environ: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environ.get("HOME", "/"))
    yield from (home / name for name in HOME_SOCKETS)
    for value in (environ.get("SSH_AUTH_SOCK", ""), environ.get("DOCKER_HOST", "").removeprefix("unix://")):
        if value.startswith("/"):
            yield Path(value)


def _is_door(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode) and os.access(path, os.W_OK, effective_ids=True)
    except (OSError, ValueError):
        return False
