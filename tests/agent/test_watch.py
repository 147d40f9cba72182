"""Values that are made anew only when a file has changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from deepagent.agent.watch import Watched


class Reader:
    """Reads a file, and counts how often."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.times = 0

    def __call__(self) -> tuple[str | None, list[Path]]:
        self.times += 1
        return (self.path.read_text() if self.path.is_file() else None), [self.path, self.path.parent]


def settle(*paths: Path) -> None:
    """Makes files old enough to be believed."""
    time.sleep(0.06)
    for path in paths:
        os.utime(path, ns=(0, time.time_ns() - 10**9))
    time.sleep(0.06)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    path = tmp_path / "a.txt"
    path.write_text("one")
    settle(path)
    return Reader(path)


def test_what_has_not_changed_is_read_once(reader: Reader) -> None:
    watched = Watched[str | None]()
    assert [watched.get("k", reader) for _ in range(5)] == ["one"] * 5
    assert reader.times == 1
    watched.get("another key", reader)
    assert reader.times == 2


@pytest.mark.parametrize("change", ["write", "replace", "remove", "same size and time"])
def test_every_kind_of_change_is_seen(reader: Reader, change: str) -> None:
    watched = Watched[str | None]()
    watched.get(None, reader)
    path = reader.path
    match change:
        case "write":
            path.write_text("two!")
        case "replace":
            other = path.with_name("b.txt")
            other.write_text("two")
            other.replace(path)
        case "remove":
            path.unlink()
        case _:
            stat = path.stat()
            path.write_text("two")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert watched.get(None, reader) == (path.read_text() if path.exists() else None) != "one"


def test_what_was_written_just_now_is_looked_at_again(reader: Reader) -> None:
    """Its stamp may stay the same when it is written once more within the clock's step."""
    watched = Watched[str | None]()
    reader.path.write_text("new")
    watched.get(None, reader)
    watched.get(None, reader)
    assert reader.times == 2


def test_what_is_missing_is_seen_when_it_comes(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "later" / "a.txt")
    watched = Watched[str | None]()
    assert watched.get(None, reader) is watched.get(None, reader) is None
    assert reader.times == 1
    reader.path.parent.mkdir()
    reader.path.write_text("here")
    assert watched.get(None, reader) == "here"
