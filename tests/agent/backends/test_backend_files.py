"""Reading and writing real files."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deepagent.agent.backends import files
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.backends.protocol import BackendError, ChangedError
from hard_inputs import hard_input

MakeBackend = Callable[..., LocalBackend]
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_ranges_are_bytes(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"0123456789")
    assert await backend.read("a", start=3, size=4) == b"3456"
    assert await backend.read("a", start=8) == b"89"
    assert await backend.read("a", start=99, size=4) == b""


@hard_input("Files", "a pipe, a socket, a device, a folder instead of a file", "refused at once, never opened")
async def test_what_is_no_file_is_not_opened(make_backend: MakeBackend, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "folder").mkdir()
    backend = make_backend(extra=(Path("/dev"),))
    began = time.monotonic()
    for path, what in [("pipe", "a pipe"), ("/dev/zero", "a device"), ("folder", "a directory")]:
        for work in (backend.read(path), backend.fingerprint(path), backend.write(path, b"x")):
            with pytest.raises(BackendError, match=what):
                await work
    assert time.monotonic() - began < 2


@hard_input("Files", "a part of a huge file", "only that part is read")
async def test_a_part_of_a_huge_file_costs_little(backend: LocalBackend, workspace: Path) -> None:
    with (workspace / "huge").open("wb") as file:
        file.truncate(3 * 1024**3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    assert await backend.read("huge", start=2 * 1024**3, size=10) == bytes(10)
    assert await backend.fingerprint("huge")
    assert time.monotonic() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


async def test_a_new_file_and_its_folders_follow_the_umask(backend: LocalBackend, workspace: Path) -> None:
    old = os.umask(0o027)
    try:
        await backend.write("new/deep/a.txt", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((workspace / "new/deep/a.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE((workspace / "new").stat().st_mode) == 0o750


@hard_input("Files", "an executable script", "keeps its mode")
async def test_the_mode_stays(backend: LocalBackend, workspace: Path) -> None:
    script = workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o4755)
    await backend.write("run.sh", b"new")
    assert (script.read_text(), stat.S_IMODE(script.stat().st_mode)) == ("new", 0o4755)


@ROOT_ONLY
async def test_the_owner_stays(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "a").write_text("old")
    os.chown(workspace / "a", 1234, 1235)
    await backend.write("a", b"new")
    status = (workspace / "a").stat()
    assert (status.st_uid, status.st_gid) == (1234, 1235)


@hard_input("Files", "a file reached through a link", "its target is written, the link stays one")
async def test_a_link_stays_a_link(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "real.txt").write_text("old")
    (workspace / "link.txt").symlink_to("real.txt")
    (workspace / "to-new").symlink_to("made.txt")
    await backend.write("link.txt", b"new")
    await backend.write("to-new", b"made")
    assert (workspace / "link.txt").is_symlink()
    assert (workspace / "real.txt").read_text() == "new"
    assert (workspace / "to-new").is_symlink()
    assert (workspace / "made.txt").read_text() == "made"


@hard_input("Files", "a reader during a write", "sees the old content or the new, never a part")
async def test_a_write_replaces_the_file_at_once(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "a").write_text("old")
    with (workspace / "a").open() as reader:
        await backend.write("a", b"new")
        assert reader.read() == "old"
    assert _names(workspace) == ["a"]


@hard_input("Files", "a write that fails", "leaves the old file and no draft")
async def test_nothing_is_left_of_a_write_that_fails(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "a").write_text("old")
    with pytest.raises(ChangedError):
        await backend.write("a", b"new", expected="something else")
    with pytest.raises(BackendError, match="not a directory"):
        await backend.write("a/b", b"new")
    assert _names(workspace) == ["a"]
    assert (workspace / "a").read_text() == "old"


@hard_input("Files", "a write that the system cuts off (full disk, limit)", "leaves the old file")
async def test_a_write_that_the_system_cuts_off_leaves_nothing(backend: LocalBackend, workspace: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(BackendError, match="cannot be written"):
            await backend.write("a", bytes(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert _names(workspace) == []


async def test_expectations(backend: LocalBackend, workspace: Path) -> None:
    first = await backend.write("a", b"one", expected="")
    assert first == await backend.fingerprint("a")
    with pytest.raises(ChangedError):
        await backend.write("a", b"two", expected="")
    second = await backend.write("a", b"two", expected=first)
    (workspace / "a").write_bytes(b"six")
    with pytest.raises(ChangedError):
        await backend.write("a", b"new", expected=second)
    (workspace / "a").unlink()
    with pytest.raises(ChangedError):
        await backend.write("a", b"new", expected=second)
    assert await backend.fingerprint("a") is None


@hard_input("Files", "a foreign change that keeps size and time", "is seen: content is compared")
@pytest.mark.parametrize("size", [100, files.HASH_LIMIT + 1])
async def test_a_change_that_keeps_size_and_time_is_seen(size: int, backend: LocalBackend, workspace: Path) -> None:
    path = workspace / "a"
    path.write_bytes(b"x" * size)
    status = path.stat()
    before = await backend.fingerprint("a")
    await asyncio.sleep(0.02)  # the clock of the file system ticks in steps
    with path.open("r+b") as file:
        file.write(b"y")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert await backend.fingerprint("a") != before


async def test_a_listing(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "b").mkdir()
    (workspace / "b/x").write_text("")
    (workspace / "a.txt").write_text("four")
    (workspace / ".git").mkdir()
    (workspace / "c").symlink_to("a.txt")
    (workspace / "d").symlink_to("nowhere")
    os.mkfifo(workspace / "e")
    listed = [(e.path, e.kind, e.size, e.link) for e in await backend.list(".")]
    assert listed == [
        (".git", "directory", 0, False),
        ("a.txt", "file", 4, False),
        ("b", "directory", 1, False),
        ("c", "file", 4, True),
        ("d", "other", 0, True),
        ("e", "other", 0, False),
    ]
    with pytest.raises(BackendError, match="not a directory"):
        await backend.list("a.txt")


async def test_stat(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub/a").write_text("abc")
    folder, file = await backend.stat("sub"), await backend.stat("sub/a")
    assert folder and (folder.path, folder.kind, folder.size) == ("sub", "directory", 1)
    assert file and (file.path, file.kind, file.size) == ("sub/a", "file", 3)
    assert await backend.stat("sub/b") is None
    assert await backend.stat("sub/a/b") is None
