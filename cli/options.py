"""What the command line of a run says: one frozen value, made once, from which flags and choices are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

OutputFormat = Literal["text", "json", "stream-json"]

DEMO_SCRIPT = Path(__file__).with_name("demo.yaml")
"""What the model `demo` answers."""
NEWEST = ""
"""The session that `--continue` means."""
PICK = "?"
"""What a bare `--resume` means: let the user choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Everything that flags and arguments of a run say. None is: not said."""

    prompt: str | None = None
    print: bool = False
    """Run without the screen."""
    output: OutputFormat = "text"
    cwd: Path | None = None
    add_dirs: tuple[Path, ...] = ()
    session: str | None = None
    """The session to go on with: an id, `NEWEST`, or `PICK`."""
    fork: bool = False
    persist: bool = True
    trust: bool = False
    debug: Path | None = None
    demo: Path = DEMO_SCRIPT
    """What the model `demo` plays."""
    flags: dict[str, object]
    """Settings by their keys, for `cli.settings`."""
