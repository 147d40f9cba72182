"""What a confined command's environment has and has not: no ways to programs outside, no vain attempts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .bounds import Bounds
from .places import DOOR_VARIABLES, WITHOUT_RETRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Changes of an environment."""

    unset: tuple[str, ...] = ()
    set: Mapping[str, str] = field(default_factory=dict[str, str])


def variables(bounds: Bounds, environ: Mapping[str, str]) -> Variables:
    """The changes for a command with these bounds, whose environment comes from `environ`."""
    changed: dict[str, str] = {} if bounds.network else dict(WITHOUT_RETRIES)
    if bounds.hides(Path(environ.get("HOME", "/")).resolve() / ".npmrc"):
        changed["npm_config_userconfig"] = os.devnull  # npm ends where its settings cannot be read
    if os.geteuid() == 0:
        changed["TAR_OPTIONS"] = "--no-same-owner"  # what is unpacked as root cannot be given to others here
    return Variables(unset=tuple(name for name in DOOR_VARIABLES if name in environ), set=changed)
