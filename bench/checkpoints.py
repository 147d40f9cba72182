"""What checkpoints cost in a tree of 20,000 files, as ratios to `git status` and `git add --all` in the same run.

    .venv/bin/python bench/checkpoints.py [FILES]

Medians of nine; of three for what happens once in a workspace.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from deepagent.agent.checkpoints.keeper import Keeper
from deepagent.agent.checkpoints.places import Places
from deepagent.agent.checkpoints.store import Store
from deepagent.agent.git.shadow import Shadow

FILES = 20_000
ONCE, OFTEN = 3, 9


def main() -> None:
    """Makes a tree, measures, and prints a table."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    with tempfile.TemporaryDirectory(prefix="deepagent-bench-") as scratch:
        os.environ["HOME"] = scratch
        root, states = Path(scratch) / "tree", Path(scratch) / "states"
        grow(root, number)
        add = timed(lambda: git(root, "add", "--all"), ONCE, before=lambda: begin(root))
        git(root, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "first")
        status = timed(lambda: git(root, "status", "--short"), OFTEN)
        shadow = Shadow(states, root)
        rows = {
            "first snapshot": timed(shadow.snapshot, ONCE, before=lambda: shutil.rmtree(states, ignore_errors=True)),
            "next, nothing changed": timed(shadow.snapshot, OFTEN),
            "next, one file changed": timed(shadow.snapshot, OFTEN, before=lambda: touch(root)),
        }
        keeper = Keeper(store=Store(states), places=Places(root), root=root, open_shadow=lambda: shadow)
        rows["around a command that changes a file"] = timed(lambda: around(keeper, None, root), OFTEN)
        rows["around a file tool"] = timed(lambda: around(keeper, "touched.txt", root), OFTEN)
        print(f"{number:,} files; git status {status * 1000:.0f} ms, git add --all {add * 1000:.0f} ms")
        print(f"{'':<40}{'ms':>8}{'x status':>10}{'x add':>8}")
        for name, seconds in rows.items():
            print(f"{name:<40}{seconds * 1000:>8.1f}{seconds / status:>10.2f}{seconds / add:>8.3f}")
        print(f"states {size(states) / 1e6:.1f} MB for {size(root, skip='.git') / 1e6:.1f} MB of files")


def grow(root: Path, number: int) -> None:
    """A tree of source files, about 1.7 KB each."""
    choice = random.Random(1)
    for index in range(number):
        folder = root / f"p{index % 40}" / f"m{index // 40 % 25}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (f"x{choice.random()} = {index}\n" for _ in range(60))
        (folder / f"f{index}.py").write_text(f"# {index}\n" + "".join(lines))


def begin(root: Path) -> None:
    """An empty repository, whatever was there."""
    shutil.rmtree(root / ".git", ignore_errors=True)
    git(root, "init", "--quiet")


def touch(root: Path) -> None:
    """Changes one file."""
    (root / "touched.txt").write_text(f"{time.time_ns()}\n")


def around(keeper: Keeper, path: str | None, root: Path) -> None:
    """What a call of a tool has around it."""
    before = keeper.before(path)
    assert before is not None
    touch(root)
    assert keeper.keep(keeper.after(before), "bench")


def git(root: Path, *args: str) -> None:
    """Runs git as a user would."""
    subprocess.run(("git", *args), cwd=root, check=True, stdout=subprocess.DEVNULL)


def timed(work: Callable[[], object], times: int, before: Callable[[], object] = lambda: None) -> float:
    """The median of the seconds that `work` takes; what is done `before` each time does not count."""
    taken: list[float] = []
    for _ in range(times):
        before()
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken)


def size(folder: Path, skip: str = "") -> int:
    """Bytes of the files below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and not (skip and skip in path.parts))
    return sum(path.stat().st_size for path in files)


if __name__ == "__main__":
    main()
