"""A gigabyte of output: all of it in a file, none of it in memory, and the loop stays free."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
from collections import deque
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hard_inputs import hard_input

SIZE = 1_000_000_000


@contextlib.asynccontextmanager
async def _lags() -> AsyncGenerator[list[float]]:
    """Notes by how many seconds the loop was late, each few milliseconds."""
    late: list[float] = []

    async def watch() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.005)
            late.append(time.monotonic() - began - 0.005)

    task = asyncio.create_task(watch())
    try:
        yield late
    finally:
        task.cancel()


@hard_input("Commands", "a gigabyte of output", "all of it in a file, a few megabytes of memory, the screen stays free")
@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("y", SIZE),
        ("a line of some forty characters, no more", SIZE),
        ("\033[31mcolours\033[0m and some words", SIZE // 4),
        ("\033[31mred\033[0m\rover", SIZE // 10),
    ],
)
async def test_a_gigabyte_costs_no_memory(line: str, size: int, bench: Any, tmp_path: Path) -> None:
    bench.shown = deque[int](maxlen=1)  # what is shown is not kept
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with _lags() as late:
        command = f"yes '{line}' | head -c {size}; echo; echo the end"
        result = await bench.call("execute", command=command, timeout=600)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.stored is not None
    print(f"{line!r}: {result.stored.bytes:,} bytes, {grown:,} KiB, {result.log['seconds']} s, late {max(late):.3f} s")
    path = tmp_path / "data" / "project" / result.stored.path.removeprefix("kept/")
    assert path.stat().st_size == result.stored.bytes
    assert result.stored.tail.endswith("the end\n")
    assert grown < 50_000
    assert sorted(late)[len(late) * 99 // 100] < 0.1
