"""What a turn costs beside the model: time from the end of an answer to the next request, memory, tokens sent.

A run of `deepagent` reads one file a turn; a bare loop then posts the very same bodies with `http.client`. Run it with
the project's interpreter: `.venv/bin/python bench/turns.py`. Ratios of one run can be compared between machines;
milliseconds cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from loopback import BYTES_PER_TOKEN, Answer, Exchange, Server, serve

PROGRAM = str(Path(sys.executable).with_name("deepagent"))
WORDS = (
    "the",
    "time",
    "value",
    "reads",
    "every",
    "line",
    "that",
    "first",
    "number",
    "with",
    "table",
    "and",
    "of",
    "state",
)
AROUND = 5
"""Turns before and after the one that is asked for: the median of all of them is given."""

LAUNCH = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""
"""Runs a command and writes down its peak memory; from a small process, because a child begins with its parent's."""

BARE = """
import http.client, pathlib, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]))
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    connection.request("POST", "/v1/chat/completions", path.read_bytes(), {"Content-Type": "application/json"})
    connection.getresponse().read()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run left behind."""

    exchanges: Sequence[Exchange]
    peak: float
    """MiB."""


def write_files(folder: Path, *, count: int, tokens: int) -> None:
    """Files of common words: a token for each, and one for each line of twelve."""
    chance = random.Random(1)
    for number in range(count):
        words = chance.choices(WORDS, k=tokens * 12 // 13)
        lines = (" ".join(words[start : start + 12]) for start in range(0, len(words), 12))
        (folder / file_name(number)).write_text("\n".join(lines) + "\n")


def file_name(number: int) -> str:
    """The file that is read in turn `number`, from 0."""
    return f"part-{number:04}.txt"


def answer(request: Mapping[str, Any], number: int, *, turns: int) -> Answer:
    """Reads the next file; a request without tools wants a summary."""
    if not request.get("tools"):
        return Answer(
            text="## SESSION INTENT\nRead every part.\n\n## SUMMARY\nNothing stands out.\n\n## NEXT STEPS\nOn."
        )
    if number < turns:
        return Answer(tool="read_file", arguments=json.dumps({"path": file_name(number)}))
    return Answer(text="All parts are read.")


def launch(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> float:
    """Runs a command that has to succeed. Its peak memory in MiB."""
    peak = folder / "peak"
    wrapped = [sys.executable, "-c", LAUNCH, str(peak), *command]
    done = subprocess.run(
        wrapped, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return int(peak.read_text()) / (1024 * 1024 if sys.platform == "darwin" else 1024)


def run_agent(folder: Path, server: Server, *, window: int) -> Run:
    """A whole run of the program in `folder`."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "OPENAI_API_KEY": "bench-key-without-value",
        "OPENAI_BASE_URL": server.url,
    }
    (folder / "home").mkdir()
    command = [PROGRAM, "-p", "Read every part.", "--yolo", "-m", "openai/gpt-4.1", "--context-window", str(window)]
    return Run(peak=launch(command, folder, env), exchanges=server.exchanges)


def run_bare(folder: Path, server: Server, bodies: Sequence[bytes]) -> Run:
    """Posts `bodies` one after the other."""
    store = folder / "bodies"
    store.mkdir()
    for number, body in enumerate(bodies):
        (store / f"{number:05}").write_bytes(body)
    port = server.url.split(":")[2].split("/")[0]
    peak = launch([sys.executable, "-c", BARE, str(store), port], folder, {"PATH": os.environ["PATH"]})
    return Run(peak=peak, exchanges=server.exchanges)


def gap(run: Run, turn: int) -> float:
    """Milliseconds between an answer's end and the end of the next request, around `turn` (from 1)."""
    exchanges = run.exchanges
    numbers = [
        number
        for number in range(max(1, turn - AROUND), min(turn + AROUND, len(exchanges) - 1) + 1)
        if exchanges[number].has_tools and exchanges[number - 1].has_tools
    ]
    return 1000 * median(exchanges[number].received - exchanges[number - 1].answered for number in numbers)


def common_prefix(a: bytes, b: bytes) -> int:
    """Bytes that both begin with."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle - 1)
    return low


def report(agent: Run, bare: Run, *, turns: int) -> None:
    """Prints the figures of both runs and their ratios."""
    print(f"{'':24}{'deepagent':>12}{'bare loop':>12}{'ratio':>8}")
    for turn in (10, turns - 10):
        ours, theirs = gap(agent, turn), gap(bare, turn)
        print(f"{f'turn {turn}, ms':24}{ours:12.2f}{theirs:12.2f}{ours / theirs:8.1f}")
    print(f"{'peak memory, MiB':24}{agent.peak:12.1f}{bare.peak:12.1f}{agent.peak / bare.peak:8.1f}")
    bodies = [exchange.body for exchange in agent.exchanges]
    cached = sum(common_prefix(a, b) for a, b in pairwise(bodies))
    sent = sum(map(len, bodies))
    summaries = sum(not exchange.has_tools for exchange in agent.exchanges)
    print(f"{len(bodies)} requests, of them {summaries} for summaries")
    print(f"{sent / BYTES_PER_TOKEN / 1e6:.2f} million prompt tokens sent (estimated)")
    print(f"{(sent - 0.9 * cached) / BYTES_PER_TOKEN / 1e6:.2f} million with the common prefix at a tenth")


def main() -> None:
    """Runs the program, then the bare loop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200, help="files to read (default 200)")
    parser.add_argument("--tokens", type=int, default=3000, help="tokens a file (default 3000)")
    parser.add_argument("--window", type=int, default=128_000, help="the model's window (default 128000)")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, count=options.turns, tokens=options.tokens)
        with serve(lambda request, number: answer(request, number, turns=options.turns)) as server:
            agent = run_agent(folder, server, window=options.window)
        with serve(lambda _request, _number: Answer(text="On.")) as server:
            bare = run_bare(folder, server, [exchange.body for exchange in agent.exchanges])
    report(agent, bare, turns=options.turns)


if __name__ == "__main__":
    main()
