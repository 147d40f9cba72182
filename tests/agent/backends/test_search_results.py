"""What a search tells besides lines: those around them, files and counts, kinds; and what it passes over."""

from __future__ import annotations

import os
import resource
import stat
import time
from pathlib import Path

import pytest
from deepagent.agent.backends.file_types import FILE_TYPES
from deepagent.agent.backends.patterns import name_part
from deepagent.agent.backends.protocol import BackendError, Search
from deepagent.agent.backends.search import Searcher
from hard_inputs import hard_input
from search_calls import ENGINES, NEEDS_RIPGREP, RIPGREP, files_by, found_by, request_for

CONTEXT = {
    "apart": "1\nhit 2\n3\n4\n5\n6\n7\nhit 8\n9\n",
    "overlap": "1\nhit 2\n3\nhit 4\nhit 5\n6\n7\n",
    "edges": "hit 1\n2\nhit 3",
    "crlf": "1\r\nhit 2\r\n3\r\n",
    "alone": "1\n2\n3\n",
    "one": "hit 1",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("around", [1, 2, 9])
async def test_lines_around_a_hit(engine: str | None, around: int, workspace: Path) -> None:
    for name, text in CONTEXT.items():
        (workspace / name).write_text(text, newline="")
    found, _ = await found_by(engine, request_for(workspace), context=around)
    for name, text in CONTEXT.items():
        lines = text.splitlines()
        hits = [number for number, line in enumerate(lines, 1) if "hit" in line]
        near = [n for n in range(1, len(lines) + 1) if any(abs(n - hit) <= around for hit in hits)]
        told = [(hit.line, hit.text, hit.context) for hit in found.hits if Path(hit.path).name == name]
        assert told == [(n, lines[n - 1], n not in hits) for n in near]
    assert sum(found.counts.values()) == sum(text.count("hit") for text in CONTEXT.values())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("limit", range(1, 8))
async def test_a_limit_cuts_off_the_lines_around_what_is_not_told(
    engine: str | None, limit: int, workspace: Path
) -> None:
    for name, text in CONTEXT.items():
        (workspace / name).write_text(text, newline="")
    whole, _ = await found_by(engine, request_for(workspace), context=1)
    found, _ = await found_by(engine, request_for(workspace), context=1, limit=limit)
    hits = [hit for hit in found.hits if not hit.context]
    assert hits == [hit for hit in whole.hits if not hit.context][:limit]
    assert found.more
    last = hits[-1]
    after = [hit for hit in found.hits if (hit.path, hit.line) > (last.path, last.line)]
    assert all(hit.context and hit.path == last.path and hit.line == last.line + 1 for hit in after)


@pytest.mark.parametrize("engine", ENGINES)
async def test_files_are_counted(engine: str | None, tree: Path) -> None:
    lines, _ = await found_by(engine, request_for(tree))
    found, _ = await found_by(engine, request_for(tree), files=True, context=3)
    assert (found.hits, found.more) == ([], False)
    assert found.counts == lines.counts
    assert found.counts[str(tree / "src/app/main.py")] == 2
    some, _ = await found_by(engine, request_for(tree), files=True, limit=4)
    assert (list(some.counts.items()), some.more) == (list(found.counts.items())[:4], True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kind", "glob", "names"),
    [
        ("py", None, {"a.py", "main.py"}),
        ("ts", None, {"page.tsx"}),
        ("js", None, set[str]()),
        (".JS", "docs/**", set[str]()),
        ("make", None, {"Makefile"}),
        ("txt", "src/**", {"important.txt"}),
        ("yaml", None, {"ci.yml"}),
    ],
)
async def test_kinds_offiles_by(engine: str | None, kind: str, glob: str | None, names: set[str], tree: Path) -> None:
    (tree / "Makefile").write_text("hit\n")
    found, _ = await found_by(engine, request_for(tree), kind=kind, glob=glob)
    assert {Path(hit.path).name for hit in found.hits} - {"b.txt", "bom.txt", "utf16.txt", "crlf.txt"} == names


async def test_an_unknown_kind_is_told_with_those_near_it(workspace: Path) -> None:
    with pytest.raises(BackendError, match=r"'pyton' is no type of files that is known; near it are .*. A glob"):
        await found_by(None, request_for(workspace), kind="pyton")


@pytest.mark.parametrize("kind", FILE_TYPES)
def test_patterns_of_kinds_are_plain_enough_for_both_engines(kind: str) -> None:
    assert all(name_part(name) == name or name.startswith("*.") or name.isidentifier() for name in FILE_TYPES[kind])


@hard_input("Search", "binary files among the hits, also such whose NUL comes late", "left out; a named one is told")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("files", [False, True])
async def test_binary_files_are_left_out(engine: str | None, files: bool, tree: Path) -> None:
    (tree / "no-hit").write_bytes(b"\0" * 100)
    (tree / "very-late").write_bytes(b"hit\n" + b"....\n" * 100_000 + b"\0")
    found, skipped = await found_by(engine, request_for(tree), files=files)
    assert skipped == 0
    assert str(tree / "very-late") in found.binary, "an engine that has met a hit before the NUL says so"
    assert found.binary <= {str(tree / name) for name in ("binary", "late-binary", "very-late")}
    assert not {"binary", "late-binary", "very-late", "no-hit"} & {Path(path).name for path in found.counts}
    found, _ = await found_by(engine, request_for(tree, tree / "very-late"), files=files)
    assert (found.binary, found.counts) == ({str(tree / "very-late")}, {})


@hard_input("Search", "pipes, devices, a sparse file of 3 GB, loops of links in the tree", "passed over at once")
@pytest.mark.parametrize("engine", ENGINES)
async def test_what_never_ends_is_not_read(engine: str | None, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    if os.geteuid() == 0:
        os.mknod(workspace / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    (workspace / "socket").symlink_to("/dev/zero")
    (workspace / "loop").symlink_to(".")
    with (workspace / "sparse").open("wb") as file:
        file.truncate(3 * 1024**3)
    (workspace / "z").write_text("hit\n")
    began = time.monotonic()
    found, _ = await found_by(engine, request_for(workspace))
    assert [Path(hit.path).name for hit in found.hits] == ["z"]
    assert await files_by(engine, request_for(workspace)) == ["sparse", "z"]
    assert time.monotonic() - began < 5


@NEEDS_RIPGREP
@hard_input("Search", "a line of 1.2 GB, more than an engine may hold", "our own engine searches it in pieces")
@pytest.mark.long
async def test_a_line_that_ripgrep_cannot_hold(workspace: Path) -> None:
    with (workspace / "line").open("wb") as file:
        for _ in range(1200):
            file.write(b"x" * 1_000_000)
        file.write(b"hit")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, _ = await Searcher(ripgrep=RIPGREP, seconds=60).lines(
        request_for(workspace, pattern="hi[t]"), Search(pattern="hi[t]")
    )
    assert [hit.column for hit in found.hits] == [1_200_000_001 - 120]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
