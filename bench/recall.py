"""What recall costs: making the index of a large project, and searching it.

    .venv/bin/python bench/recall.py [--megabytes 100]

Sessions with so many megabytes of logs are written to a temporary folder. The aim is a search in under 100 ms once the
files are indexed; the first search makes the index.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from deepagent.agent.storage import DiskStorage
from deepagent.context.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage, new_id, timestamp
from deepagent.context.recall import Recall
from deepagent.context.recall_query import Mode, Query
from deepagent.context.recall_store import INDEX_NAME
from deepagent.context.session import Session

_WORDS = 20_000
_RESULT = 600
"""Words of a result."""
_SESSION = 10_000_000
"""Bytes of one session, about."""
_ROUNDS = 9
_SEARCHES: tuple[tuple[str, Mode], ...] = (
    ("needle haystack", "words"),
    ("the needle", "literal"),
    ("word17 word4711", "words"),
    ("word123 word", "literal"),
    ("nowhere_to_be_found", "literal"),
)


def write_session(storage: DiskStorage, chance: random.Random, vocabulary: list[str], *, needle: bool) -> int:
    """Writes one session and gives its size in bytes."""
    session = Session.start(storage, workspace="/w", cwd="/w")
    size = 0
    while size < _SESSION:
        call = ToolCall(id=new_id(), name="execute", arguments={"command": "make"})
        text = " ".join(chance.choices(vocabulary, k=_RESULT))
        if needle and size > _SESSION // 2:
            text, needle = f"{text} the needle in the haystack", False
        result = ToolMessage(id=new_id(), time=timestamp(), call_id=call.id, tool=call.name, content=(Text(text=text),))
        for message in (
            UserMessage(id=new_id(), time=timestamp(), content=(Text(text="go on"),)),
            AssistantMessage(id=new_id(), time=timestamp(), content=(call,), model="bench", stop="tool_calls"),
            result,
        ):
            session.say(message)
        size += len(text)
    session.close()
    return size


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    wanted = parser.parse_args().megabytes * 1_000_000
    chance = random.Random(1)
    vocabulary = [f"word{number}" for number in range(_WORDS)]
    with tempfile.TemporaryDirectory() as folder:
        storage = DiskStorage(Path(folder) / "work", Path(folder) / "home", prefix=".deepagents")
        size = 0
        while size < wanted:
            size += write_session(storage, chance, vocabulary, needle=not size)
        began = perf_counter()
        Recall(storage).search(Query(text="needle"), seconds=600)
        print(f"{size / 1e6:.0f} MB of text; index made in {perf_counter() - began:.1f} s", end=", ")
        print(f"{storage.own(INDEX_NAME).stat().st_size / 1e6:.0f} MB on disk")
        for text, mode in _SEARCHES:
            times: list[float] = []
            found = 0
            for _ in range(_ROUNDS):
                began = perf_counter()
                found = Recall(storage).search(Query(text=text, mode=mode)).total
                times.append((perf_counter() - began) * 1_000)
            print(f"  {mode:8} {text:22} {found:>6,} hits  {statistics.median(times):7.1f} ms")


if __name__ == "__main__":
    main()
