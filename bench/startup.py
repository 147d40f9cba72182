"""How long starting takes: `--version`, `--help`, and the way to the first request, against a bare `python -c pass`.

Run it with the project's interpreter: `.venv/bin/python bench/startup.py -n 9`. Ratios of one run can be compared
between machines; seconds cannot.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from loopback import Answer, Server, serve

MODEL = "openai/gpt-4.1"
PROGRAM = str(Path(sys.executable).with_name("deepagent"))
BARE = "python -c pass"


def environment(home: Path, server: Server, *, lane: str) -> dict[str, str]:
    """What the program sees: an empty home, the server, nothing of the caller's settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "OPENAI_API_KEY": "bench-key-without-value",
        "OPENAI_BASE_URL": server.url,
        "DEEPAGENT_PROVIDER_LANE": lane,
    }


def run(command: list[str], cwd: Path, env: Mapping[str, str]) -> tuple[float, float]:
    """Runs a command that has to succeed. When it began and when it ended."""
    began = perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    ended = perf_counter()
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return began, ended


def measures(cwd: Path, server: Server) -> dict[str, Callable[[], float]]:
    """What is measured, by its name: each gives seconds."""

    def whole(*command: str) -> float:
        began, ended = run(list(command), cwd, environment(cwd, server, lane="auto"))
        return ended - began

    def first_request(lane: str) -> float:
        server.exchanges.clear()
        command = [PROGRAM, "-p", "Say hello.", "-m", MODEL, "--context-window", "128000"]
        began, _ = run(command, cwd, environment(cwd, server, lane=lane))
        if not server.exchanges:
            sys.exit("the program ended well without a request")
        return server.exchanges[0].arrived - began

    return {
        BARE: lambda: whole(sys.executable, "-c", "pass"),
        "--version": lambda: whole(PROGRAM, "--version"),
        "--help": lambda: whole(PROGRAM, "--help"),
        "first request, lean lane": lambda: first_request("lean"),
        "first request, litellm lane": lambda: first_request("litellm"),
    }


def report(times: Mapping[str, list[float]]) -> None:
    """Prints medians in seconds and as ratios."""
    bare = median(times[BARE])
    print(f"{'':30}{'median, s':>10}{'ratio':>8}")
    for name, seconds in times.items():
        print(f"{name:30}{median(seconds):10.3f}{median(seconds) / bare:8.1f}")


def main() -> None:
    """Runs all measures in turn, so that a busy moment touches them alike; the first round only warms up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=5, help="rounds (default 5)")
    rounds = parser.parse_args().n
    with TemporaryDirectory() as folder, serve(lambda _request, _number: Answer(text="Hello.")) as server:
        todo = measures(Path(folder), server)
        times: dict[str, list[float]] = {name: [] for name in todo}
        for number in range(rounds + 1):
            for name, measure in todo.items():
                seconds = measure()
                if number:
                    times[name].append(seconds)
    report(times)


if __name__ == "__main__":
    main()
