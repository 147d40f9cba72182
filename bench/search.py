"""What the search tools cost on a large tree, against ripgrep itself; and what it takes to read in huge files.

    .venv/bin/python bench/search.py [--files 50000] [-n 5]

`rg` is called as a person would, with its output read; the tools are called as the agent calls them, with ripgrep and
with our own engine. Medians of a warm tree, as ratios to `rg` in the same run. Each huge file is read in a process of
its own, whose memory is compared with that of one that reads a small file.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.backends.protocol import Search

Work = Callable[[LocalBackend], Coroutine[Any, Any, object]]
_WORDS = [f"word{number}" for number in range(5_000)]
_LINES = 60
_FOLDER = 100
"""Files of a folder."""
_EXPRESSION = r"(word1\d+ word2\d+ word3\d+ word4711|needle)$"
_SEARCHES: dict[str, tuple[Search, list[str]]] = {
    "a rare word": (Search(pattern="needle"), ["needle"]),
    "a rare word, ignoring case": (Search(pattern="NEEDLE", ignore_case=True), ["-i", "NEEDLE"]),
    "an expression": (Search(pattern=_EXPRESSION), [_EXPRESSION]),
    "in files of a kind": (Search(pattern="needle", kind="py"), ["-tpy", "needle"]),
    "a common word, 100 hits": (Search(pattern="word123"), ["--sort", "path", "word123"]),
    "5,000 files with a common word": (
        Search(pattern="word123", files=True, limit=5_000),
        ["--sort", "path", "--count", "word123"],
    ),
}
_READ = """
import asyncio, resource, sys
from pathlib import Path
from time import perf_counter
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.runtime import ToolRuntime
from deepagent.agent.tools.read import read_file
folder = Path(sys.argv[1])
backend = LocalBackend(folder, folder, data=folder / ".deepagents", environ={})
runtime = ToolRuntime(context=None, backend=backend, session=None, call_id="c", result_limit=20_000, on_output=len)
began = perf_counter()
result = asyncio.run(read_file.run({"path": sys.argv[2], "offset": int(sys.argv[3])}, runtime))
seconds = perf_counter() - began
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, result.text.split("\\n")[0][:60], sep="\\t")
"""


def make_tree(root: Path, files: int) -> int:
    """Writes `files` files of a few kilobytes, and as many below `node_modules`; gives their bytes."""
    chance = random.Random(1)
    texts = ["\n".join(" ".join(chance.choices(_WORDS, k=8)) for _ in range(_LINES)).encode() for _ in range(200)]
    size = 0
    for top in ("src", "node_modules"):
        for number in range(files):
            folder = root / top / f"d{number // _FOLDER // 20}" / f"e{number // _FOLDER}"
            if number % _FOLDER == 0:
                folder.mkdir(parents=True)
            data = texts[number % len(texts)] + (b"\nneedle\n" if number % (files // 20) == 7 else b"\n")
            (folder / f"f{number}.{('py', 'ts', 'md')[number % 3]}").write_bytes(data)
            size += len(data) if top == "src" else 0
    (root / ".gitignore").write_text("node_modules/\n*.log\n")
    (root / ".git").mkdir()
    return size


def timed(rounds: int, work: Callable[[], object]) -> float:
    """The median of `rounds`, in seconds."""
    times: list[float] = []
    for _ in range(rounds):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return median(times)


def run_plain(program: str, command: list[str], root: Path) -> None:
    """Runs ripgrep and reads what it says."""
    subprocess.run([program, *command], cwd=root, capture_output=True, check=False)


def call(work: Work, backend: LocalBackend) -> None:
    """Calls a backend as the agent does."""
    asyncio.run(work(backend))


def compare(root: Path, rounds: int) -> None:
    """Prints the ratios."""
    rg = shutil.which("rg")
    engines = {"with ripgrep": dict(os.environ), "without": {**os.environ, "PATH": "/nowhere"}}
    if rg is None:
        del engines["with ripgrep"]
    backends = {n: LocalBackend(root, root, data=root / ".deepagents", environ=e) for n, e in engines.items()}
    print(f"{'':32}{'rg':>10}" + "".join(f"{name:>18}" for name in backends))

    def row(name: str, command: list[str], work: Work) -> None:
        plain = timed(rounds, partial(run_plain, rg, command, root)) if rg else 0.0
        text = f"{name:32}{plain * 1000:>7.0f} ms"
        for backend in backends.values():
            seconds = timed(rounds, partial(call, work, backend))
            text += f"{seconds * 1000:>8.0f} ms {seconds / plain if plain else 0:>5.1f}×"
        print(text)

    for name, (search, command) in _SEARCHES.items():
        row(name, command, lambda backend, search=search: backend.grep(search, "."))
    row("glob *.py, 200 newest", ["--files", "--glob", "*.py"], lambda backend: backend.glob("*.py", ".", limit=200))
    row("glob of one name", ["--files", "--glob", "f77.ts"], lambda backend: backend.glob("f77.ts", ".", limit=200))


def read_huge(folder: Path) -> None:
    """Prints time and memory of reading in huge files."""
    (folder / "small").write_bytes(b"line\n")
    for gigabytes in (1, 3):
        for name, start in (("binary", b""), ("text", b"a line of text\n" * 100_000)):
            with (folder / f"{name}-{gigabytes}").open("wb") as file:
                file.write(start)
                file.truncate(gigabytes * 1024**3)
    with (folder / "lines-1").open("wb") as file:
        for _ in range(1024):
            file.write(b"sixty-four bytes of text, which make a line, and so on and on...\n" * 16_132)
    cases = [("small", 1), ("binary-1", 1), ("text-1", 1), ("text-1", 90_000), ("lines-1", 16_000_000)]
    cases += [("binary-3", 1), ("text-3", 1), ("text-3", 90_000)]
    least = 0
    for name, offset in cases:
        done = subprocess.run(
            [sys.executable, "-c", _READ, str(folder), name, str(offset)], capture_output=True, text=True, check=True
        )
        seconds, memory, head = done.stdout.rstrip("\n").split("\t")
        least = least or int(memory)
        more = (int(memory) - least) / 1024
        print(f"{name:12} line {offset:>10,}{float(seconds) * 1000:>8.0f} ms{more:>+8.1f} MB  {head}")


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("-n", type=int, default=5)
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        root = Path(name).resolve() / "tree"
        size = make_tree(root, given.files)
        print(f"{given.files:,} files, {size / 1e6:.0f} MB, and as many that are ignored; medians of {given.n}")
        compare(root, given.n)
        huge = Path(name).resolve() / "huge"
        huge.mkdir()
        read_huge(huge)


if __name__ == "__main__":
    main()
