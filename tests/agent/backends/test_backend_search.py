"""Searching through the backend: what is counted, limited, ended."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.backends.protocol import BackendError, Found, Search
from hard_inputs import hard_input

MakeBackend = Callable[..., LocalBackend]
WITHOUT_RIPGREP = {**os.environ, "PATH": "/nowhere"}
ENGINES = [
    pytest.param("python", id="python"),
    pytest.param(
        "ripgrep", id="ripgrep", marks=pytest.mark.skipif(not shutil.which("rg"), reason="ripgrep is not installed")
    ),
]


@pytest.fixture(params=ENGINES)
def backend(request: pytest.FixtureRequest, make_backend: MakeBackend) -> LocalBackend:
    return make_backend(environ=os.environ if request.param == "ripgrep" else WITHOUT_RIPGREP)


async def _grep(backend: LocalBackend, pattern: str, path: str = ".", limit: int = 100) -> Found:
    return await backend.grep(Search(pattern=pattern, limit=limit), path)


def _many(folder: Path, number: int) -> None:
    for at in range(number):
        if at % 500 == 0:
            (folder / str(at // 500)).mkdir(parents=True)
        (folder / str(at // 500) / f"{at}.js").write_bytes(b"hit\n")


async def test_a_limit_is_told(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "a").write_text("hit\n" * 10)
    found = await _grep(backend, "hit", limit=4)
    assert [match.line for match in found.matches] == [1, 2, 3, 4]
    assert found.incomplete == "there are more than 4 lines"
    assert (await _grep(backend, "hit", limit=10)).incomplete is None


@hard_input("Search", "a heap of dependencies beside one hit", "is not walked")
async def test_a_big_heap_of_dependencies_is_passed_over(backend: LocalBackend, workspace: Path) -> None:
    _many(workspace / "node_modules", 2_000)
    (workspace / "src").mkdir()
    (workspace / "src/a.js").write_text("hit\n")
    began = time.monotonic()
    found = await _grep(backend, "hit")
    assert [match.path for match in found.matches] == ["src/a.js"]
    assert time.monotonic() - began < 5
    assert (await backend.glob("*.js", "node_modules", limit=3)).total == 2_000


@hard_input("Search", "200,000 files under `node_modules`, one hit elsewhere", "found in under 2 seconds")
@pytest.mark.long
async def test_two_hundred_thousand_files_are_passed_over(backend: LocalBackend, workspace: Path) -> None:
    _many(workspace / "node_modules", 200_000)
    (workspace / "src").mkdir()
    (workspace / "src/a.js").write_text("hit\n")
    began = time.monotonic()
    assert [match.path for match in (await _grep(backend, "hit")).matches] == ["src/a.js"]
    assert (await backend.glob("*.js", ".", limit=3)).paths == ("src/a.js",)
    print(f"{time.monotonic() - began:.2f} s for grep and glob")
    assert time.monotonic() - began < 2
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    listed = await backend.glob("*.js", "node_modules", limit=3)
    assert (listed.total, len(listed.paths)) == (200_000, 3)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{time.monotonic() - began:.2f} s to list them all by age, {growth / 1024:.0f} MB")
    assert growth < 50_000


async def test_the_newest_file_comes_first(backend: LocalBackend, workspace: Path) -> None:
    for age, name in enumerate(["new.py", "older.py", "oldest.py"]):
        (workspace / name).write_text("")
        os.utime(workspace / name, (1_000_000 - age, 1_000_000 - age))
    listed = await backend.glob("*.py", ".", limit=2)
    assert (listed.paths, listed.total, listed.incomplete) == (("new.py", "older.py"), 3, None)


@hard_input("Search", "an expression that takes for ever", "is ended, and that is said")
async def test_a_search_that_takes_too_long_is_ended(make_backend: MakeBackend, workspace: Path) -> None:
    (workspace / "a").write_text("a" * 40 + "!\n")
    backend = make_backend(environ=WITHOUT_RIPGREP, search_seconds=0.5)
    began = time.monotonic()
    found = await _grep(backend, "(a+)+$")
    assert found.incomplete == "the time of 0.5 s was up"
    assert time.monotonic() - began < 3
    assert not _engines()


@hard_input("Search", "a search that is cancelled", "ends at once and leaves nothing running")
async def test_a_search_never_holds_the_loop(make_backend: MakeBackend, workspace: Path) -> None:
    (workspace / "a").write_text("a" * 40 + "!\n")
    backend = make_backend(environ=WITHOUT_RIPGREP)
    search = asyncio.create_task(_grep(backend, "(a+)+$"))
    longest, last = 0.0, time.monotonic()
    for _ in range(25):
        await asyncio.sleep(0.02)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert not search.done()
    cancelled = time.monotonic()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert time.monotonic() - cancelled < 0.2
    while _engines():
        assert time.monotonic() - cancelled < 1
        await asyncio.sleep(0.01)
    assert longest < 1  # it would be for ever


def _engines() -> list[int]:
    return [child.pid for child in psutil.Process().children() if "backends.scan" in _command(child)]


def _command(process: psutil.Process) -> str:
    """Empty for a process that has ended meanwhile, or was not waited for yet."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


async def test_a_module_of_the_workspace_is_not_imported(make_backend: MakeBackend, workspace: Path) -> None:
    for name in ("re.py", "json.py", "deepagent.py", "sitecustomize.py"):
        (workspace / name).write_text("open('ran', 'w')\nhit = 1\n")
    found = await _grep(make_backend(environ=WITHOUT_RIPGREP), "hit")
    assert len(found.counts) == 4
    assert not (workspace / "ran").exists()


@hard_input("Search", "a program named `rg` in the project", "is not run")
async def test_a_program_of_the_workspace_is_not_run(make_backend: MakeBackend, workspace: Path) -> None:
    for name in ("rg", "bash"):
        (workspace / name).write_text("#!/bin/sh\ntouch ran\n")
        (workspace / name).chmod(0o755)
    backend = make_backend(environ={**os.environ, "PATH": f".:{workspace}:{os.environ['PATH']}"})
    assert len((await _grep(backend, "touch")).counts) == 2
    assert (await backend.execute("echo hi", limit=5, on_output=None)).output == b"hi\n"
    assert not (workspace / "ran").exists()


@pytest.mark.parametrize("pattern", ["", "a\nb", "a\0b"])
async def test_a_pattern_is_one_line(pattern: str, backend: LocalBackend) -> None:
    with pytest.raises(BackendError, match="one line"):
        await _grep(backend, pattern)


async def test_a_pattern_that_looks_like_an_option(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "-e").write_text("--files\n")
    assert [match.path for match in (await _grep(backend, "--files")).matches] == ["-e"]
    assert [match.path for match in (await _grep(backend, "--files", "-e")).matches] == ["-e"]


async def test_a_named_binary_file_is_told(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"hit\0")
    found = await _grep(backend, "hit", "a")
    assert (found.matches, found.binary, found.skipped) == ((), 1, 0)


async def test_a_missing_place_is_an_error(backend: LocalBackend) -> None:
    with pytest.raises(BackendError, match="does not exist"):
        await _grep(backend, "x", "nowhere")
    with pytest.raises(BackendError, match="does not exist"):
        await backend.glob("*", "nowhere", limit=1)


@hard_input("Search", "a hit in a line of five megabytes", "its surroundings are shown, with the place")
async def test_a_line_of_five_megabytes(backend: LocalBackend, workspace: Path) -> None:
    before, after = "[" + "1," * 1_300_000, ",2" * 1_200_000 + "]"
    (workspace / "data.json").write_text(before + "needle" + after)
    found = await _grep(backend, "needle")
    [match] = found.matches
    assert match.line == 1
    assert match.cut
    start = match.column - 1
    assert (before + "needle" + after)[start:].startswith(match.text)
    assert "needle" in match.text
    assert len(match.text) <= 400


SCRIPT = """
import asyncio, ctypes, os, sys
from pathlib import Path
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.backends.protocol import Search
if os.geteuid() == 0:  # what this process starts is no longer above permissions
    for capability in (1, 2):
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0
async def main():
    root = Path(sys.argv[1])
    path = os.environ["PATH"] if sys.argv[2] == "ripgrep" else "/nowhere"
    backend = LocalBackend(root, root, data=root / ".deepagents", environ={"PATH": path})
    found = await backend.grep(Search(pattern="hit"), ".")
    print([match.path for match in found.matches], found.skipped)
asyncio.run(main())
"""


@hard_input("Search", "folders and files without the right to read", "are counted and said; the rest is found")
@pytest.mark.parametrize("engine", ENGINES)
def test_what_cannot_be_read_is_counted(engine: str, workspace: Path) -> None:
    (workspace / "shut").mkdir()
    (workspace / "shut/a.txt").write_text("hit\n")
    (workspace / "b.txt").write_text("hit\n")
    (workspace / "shut").chmod(0)
    command = [sys.executable, "-c", SCRIPT, str(workspace), engine]
    ran = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    (workspace / "shut").chmod(0o755)
    assert ran.stdout.strip() == "['b.txt'] 1", ran.stderr
