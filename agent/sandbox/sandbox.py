"""The sandbox of a session: which engine holds commands here, and what is run instead of a command.

An engine is chosen by a probe that really ran, once; the bounds are asked for before each command, since repositories
and secrets come and go. What the sandbox kept a command from is read from its output in `refusals`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Literal

from ..backends.environment import program
from .bounds import USUAL, Bounds, Grant, Refusal, SandboxState
from .bubblewrap import Bubblewrap
from .engine import Command, Engine, SandboxError, Wrapped
from .landlock import Landlock
from .probe import failure
from .refusals import refusals
from .seatbelt import Seatbelt

SandboxMode = Literal["auto", "off", "strict"]


class Sandbox:
    """Confines commands, from any thread."""

    def __init__(
        self,
        mode: SandboxMode,
        bounds: Callable[[], Bounds],
        *,
        environ: Mapping[str, str],
        workspace: Path,
        engines: Sequence[Engine] | None = None,
    ) -> None:
        """`environ` is the environment that commands are started with; no program in `workspace` is used to confine.

        `engines` are those to choose from, the best one first; None takes those of this system.
        """
        self.mode: SandboxMode = mode
        self._bounds = bounds
        self._environ = environ
        self._engines = _engines(environ, workspace) if engines is None else engines
        self._lock = Lock()
        self._chosen: tuple[Engine | None, SandboxState] | None = None

    def state(self) -> SandboxState:
        """Which sandbox is active, and why. Blocks for some tens of milliseconds the first time. Raises nothing."""
        return self._choice()[1]

    def wrap(self, argv: Sequence[str], cwd: Path, grant: Grant = USUAL) -> Wrapped:
        """What to run instead of `argv`. Blocks; `close` what comes back once it is started.

        Raises `SandboxError` if nothing confines and the mode is strict, or the command was to be held to reading.
        """
        if grant.off:
            return Wrapped(argv=tuple(argv))
        engine, state = self._choice()
        if engine is None:
            if self.mode == "strict" or grant.reading:
                raise SandboxError(f"The command was not run, because it cannot be confined: {state.reason}")
            return Wrapped(argv=tuple(argv))
        bounds = self._bounds().within(grant)
        return engine.wrap(Command(argv=argv, cwd=cwd, bounds=bounds, environ=self._environ, private=grant.reading))

    def refusals(self, output: bytes, exit_code: int | None, grant: Grant, cwd: Path) -> tuple[Refusal, ...]:
        """What the sandbox kept a command from, as far as its output tells; empty if it succeeded. Blocks."""
        if grant.off or exit_code == 0 or self._choice()[0] is None:
            return ()
        return refusals(output, self._bounds().within(grant), cwd)

    def _choice(self) -> tuple[Engine | None, SandboxState]:
        with self._lock:
            if self._chosen is None:
                self._chosen = self._choose()
            return self._chosen

    def _choose(self) -> tuple[Engine | None, SandboxState]:
        if self.mode == "off":
            return None, SandboxState(engine=None, reason="it is switched off")
        bounds = replace(self._bounds(), network=False)
        reasons: list[str] = []
        for engine in self._engines:
            try:
                title = engine.title()
                broken = failure(engine, bounds, self._environ)
            except (OSError, SandboxError) as error:
                reasons.append(str(error))
                continue
            if not broken:
                reason = "; ".join([*reasons, f"{title} ran a probe"])
                return engine, SandboxState(engine=engine.name, reason=reason, lacks=engine.lacks(bounds))
            reasons.append(f"{title} does not work here ({broken})")
        return None, SandboxState(engine=None, reason="; ".join(reasons) or f"there is none for {sys.platform}")


def _engines(environ: Mapping[str, str], workspace: Path) -> tuple[Engine, ...]:
    if sys.platform == "darwin":
        return (Seatbelt(),)
    if sys.platform == "linux":
        return (Bubblewrap(program=program("bwrap", environ, workspace)), Landlock())
    return ()
