"""Makes the sandbox of a session from its settings and place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ..config import SandboxSettings
from ..small_files import expand
from ..workspace import Workspace
from .bounds import Bounds
from .sandbox import Sandbox
from .standard import standard_bounds


def open_sandbox(
    settings: SandboxSettings, workspace: Workspace, environ: Mapping[str, str], extra: Iterable[Path] = ()
) -> Sandbox:
    """The sandbox for commands in `workspace`, started with `environ`; `extra` are further folders that are worked in.

    Nothing is looked at yet.
    """
    worked_in = tuple(extra)

    def bounds() -> Bounds:
        usual = standard_bounds(workspace, environ, worked_in)
        return replace(
            usual,
            network=usual.network or settings.network,
            writable=(*usual.writable, *_places(settings.writable, workspace)),
            hidden=(*usual.hidden, *_places(settings.hidden, workspace)),
        )

    return Sandbox(settings.mode, bounds, environ=environ, workspace=workspace.root)


def _places(paths: Iterable[str], workspace: Workspace) -> tuple[Path, ...]:
    return tuple((workspace.root / expand(path)).resolve() for path in paths)
