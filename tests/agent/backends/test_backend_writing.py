"""What belongs to a file stays with it, however its content gets in; a failure or a crash leaves one whole content."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from deepagent.agent.backends import files
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.backends.protocol import BackendError, ChangedError
from hard_inputs import hard_input

MakeBackend = Callable[..., LocalBackend]
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
LIBC = ctypes.CDLL(None)
WRITE = """
import sys
from pathlib import Path
from deepagent.agent.backends import files
from deepagent.agent.backends.protocol import BackendError
try:
    print("written", files.write(Path(sys.argv[1]), b"new content", None)[:8])
except (OSError, BackendError) as error:
    print(type(error).__name__, error)
"""


def _write_without_rights(path: Path, script: str = WRITE) -> str:
    """Writes as this user without root's right to do anything; what the script says."""
    command = (*POWERLESS, sys.executable, "-c", script, str(path))
    if POWERLESS and shutil.which("setpriv") is None:
        pytest.skip("root's rights cannot be given up here: no setpriv")
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout.strip()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# What belongs to a file


@hard_input("Files", "a file with several names (hard links)", "all names see the new content; the link count stays")
async def test_hard_links_stay_links(backend: LocalBackend, workspace: Path) -> None:
    (workspace / "a").write_text("old content that is longer than the new one")
    (workspace / "a").chmod(0o640)
    (workspace / "b").hardlink_to(workspace / "a")
    await backend.write("a", b"new")
    assert (workspace / "b").read_text() == "new"
    status = (workspace / "a").stat()
    assert (status.st_nlink, status.st_ino) == (2, (workspace / "b").stat().st_ino)
    assert stat.S_IMODE(status.st_mode) == 0o640
    await backend.write("b", b"longer than it was before")
    assert (workspace / "a").read_text() == "longer than it was before"
    assert _names(workspace) == ["a", "b"]


@hard_input("Files", "a file with extended attributes or access lists", "keeps them")
async def test_attributes_stay(backend: LocalBackend, workspace: Path) -> None:
    path = workspace / "a"
    path.write_text("old")
    # user:1234:rw-, in the form in which Linux keeps it: version; tag, rights, id of each entry
    entries = ((0x01, 6, -1), (0x02, 6, 1234), (0x04, 4, -1), (0x10, 6, -1), (0x20, 4, -1))
    acl = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + (who & 0xFFFFFFFF).to_bytes(4, "little")
        for tag, rights, who in entries
    )
    kept: dict[str, bytes] = {}
    for name, value in (("user.note", b"mine"), ("system.posix_acl_access", acl)):
        with suppress(OSError):  # not every file system knows both
            os.setxattr(path, name, value)
            kept[name] = os.getxattr(path, name)
    if not kept:
        pytest.skip("this file system has no extended attributes")
    before = path.stat()
    await backend.write("a", b"new")
    assert path.read_text() == "new"
    assert {name: os.getxattr(path, name) for name in kept} == kept
    assert path.stat().st_mode == before.st_mode


@ROOT_ONLY
@hard_input("Files", "a file of another user that we may write", "keeps its owner: it is written in place")
def test_the_owner_stays_where_it_cannot_be_given(workspace: Path) -> None:
    path = workspace / "a"
    path.write_text("old")
    path.chmod(0o666)
    os.chown(path, 1234, 1235)
    inode = path.stat().st_ino
    assert _write_without_rights(path).startswith("written")
    status = path.stat()
    assert (path.read_text(), status.st_uid, status.st_gid, status.st_ino) == ("new content", 1234, 1235, inode)
    assert _names(workspace) == ["a"]


def test_a_draft_of_a_private_file_is_private(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "a").write_text("old")
    (workspace / "a").chmod(0o600)
    modes: list[int] = []
    real_fsync = os.fsync

    def fsync(fd: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
        real_fsync(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    files.write(workspace / "a", b"new", None)
    assert modes == [0o600]
    assert stat.S_IMODE((workspace / "a").stat().st_mode) == 0o600


def test_the_group_of_the_folder_is_not_given_to_the_file(workspace: Path) -> None:
    (workspace / "a").write_text("old")
    group = (workspace / "a").stat().st_gid
    with suppress(PermissionError):
        os.chown(workspace, -1, 1235)
    workspace.chmod(0o2755)
    files.write(workspace / "a", b"new", None)
    assert (workspace / "a").stat().st_gid == group


@ROOT_ONLY
@hard_input("Files", "a file that is a mount of its own", "is written in place")
def test_a_mounted_file_is_written_in_place(workspace: Path) -> None:
    (workspace / "real").write_text("old")
    (workspace / "mounted").touch()
    mount = ("mount", "--bind", str(workspace / "real"), str(workspace / "mounted"))
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        files.write(workspace / "mounted", b"new", None)
        assert (workspace / "real").read_text() == "new"
    finally:
        subprocess.run(("umount", "-l", str(workspace / "mounted")), check=True)
    assert _names(workspace) == ["mounted", "real"]


# Where nothing can be written


@hard_input("Files", "a writable file in a read-only folder", "is written in place")
def test_a_file_in_a_folder_that_takes_no_draft(workspace: Path) -> None:
    (workspace / "shut").mkdir()
    (workspace / "shut/a").write_text("old")
    (workspace / "shut").chmod(0o555)
    said = _write_without_rights(workspace / "shut/a")
    (workspace / "shut").chmod(0o755)
    assert said.startswith("written")
    assert (workspace / "shut/a").read_text() == "new content"


@hard_input("Files", "a read-only file in a writable folder", "is not written; that is said")
def test_a_read_only_file_stays(workspace: Path) -> None:
    (workspace / "a").write_text("old")
    (workspace / "a").chmod(0o444)
    assert _write_without_rights(workspace / "a") == "BackendError It is read-only"
    assert (workspace / "a").read_text() == "old"
    assert _names(workspace) == ["a"]


def test_a_new_file_in_a_read_only_folder(workspace: Path) -> None:
    (workspace / "shut").mkdir()
    (workspace / "shut").chmod(0o555)
    said = _write_without_rights(workspace / "shut/new")
    (workspace / "shut").chmod(0o755)
    assert said.startswith("PermissionError")
    assert _names(workspace / "shut") == []


@pytest.fixture
def immutable(workspace: Path) -> Iterator[Path]:
    path = workspace / "fixed"
    path.write_text("old")
    if os.geteuid() or subprocess.run(("chattr", "+i", str(path)), capture_output=True, check=False).returncode:
        pytest.skip("no file can be made immutable here")
    yield path
    subprocess.run(("chattr", "-i", str(path)), check=True)


@hard_input("Files", "an immutable file (`chattr +i`)", "is not written; that is said")
def test_an_immutable_file_stays(immutable: Path, workspace: Path) -> None:
    with pytest.raises(BackendError, match="It is read-only"):
        files.write(immutable, b"new", None)
    assert immutable.read_text() == "old"
    assert _names(workspace) == ["fixed"]


# Full disks and crashes


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB, mounted by root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder))
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no small file system can be mounted here")
    yield folder
    subprocess.run(("umount", "-l", str(folder)), check=True)


@hard_input(
    "Files", "a disk that gets full during a write, at once or in place", "the old content stays, no draft is left"
)
@pytest.mark.parametrize("links", [1, 2])
async def test_a_full_disk_leaves_the_old_content(links: int, disk: Path, make_backend: MakeBackend) -> None:
    old = b"old content\n" * 9_000
    (disk / "a").write_bytes(old)
    if links == 2:
        (disk / "b").hardlink_to(disk / "a")
    before = _names(disk)
    with pytest.raises(BackendError, match="the disk is full"):
        await make_backend(disk).write("a", b"new content\n" * 30_000)
    assert (disk / "a").read_bytes() == old
    assert _names(disk) == before
    if links == 2:  # in place there is room for what is no longer than before
        await make_backend(disk).write("a", b"x" * len(old))
        assert (disk / "b").read_bytes() == b"x" * len(old)


KILLED = """
import os, sys
from pathlib import Path
from deepagent.agent.backends import files
old, new = b"o" * 8_000_000, b"n" * 8_000_000
print("ready", flush=True)
while True:
    files.write(Path(sys.argv[1]), new, None)
    files.write(Path(sys.argv[1]), old, None)
"""


@hard_input("Files", "the program is killed during a write", "the old or the new content is there whole")
@pytest.mark.parametrize("links", [1, 2])
def test_a_crash_leaves_one_whole_content(links: int, workspace: Path) -> None:
    path = workspace / "a"
    path.write_bytes(b"o" * 8_000_000)
    if links == 2:
        (workspace / "b").hardlink_to(path)
    for after in (0.04, 0.11):
        process = subprocess.Popen((sys.executable, "-c", KILLED, str(path)), stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        contents = [found.read_bytes() for found in (path, *workspace.glob(".deepagent-*.tmp"))]
        whole = [len(content) == 8_000_000 and len(set(content)) == 1 for content in contents]
        assert whole[0] if links == 1 else any(whole), "in place, the draft beside it has the new content"
        for draft in workspace.glob(".deepagent-*.tmp"):
            draft.unlink()
        path.write_bytes(b"o" * 8_000_000)


# Somebody else at the same moment


@hard_input("Files", "a file that somebody makes while it is created", "is not overwritten")
def test_a_file_that_appears_in_the_last_moment_stays(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_link = os.link

    def link(*args: object, **kwargs: object) -> None:
        (workspace / "a").write_text("theirs")
        real_link(*args, **kwargs)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(ChangedError, match="made by someone else"):
        files.write(workspace / "a", b"mine", "")
    assert (workspace / "a").read_text() == "theirs"
    assert _names(workspace) == ["a"]


async def test_a_new_file_where_there_are_no_hard_links(
    backend: LocalBackend, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    await backend.write("a", b"new", expected="")
    assert (workspace / "a").read_text() == "new"
    assert _names(workspace) == ["a"]


@hard_input(
    "Files", "a folder that is swapped for a link outside while a tool works in it", "nothing outside is touched"
)
async def test_a_folder_that_turns_into_a_link(make_backend: MakeBackend, workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "a").write_text("secret")
    (workspace / "sub").mkdir()
    (workspace / "sub/a").write_text("mine")
    (workspace / "link").symlink_to(outside)
    backend, done = make_backend(), threading.Event()

    def swap() -> None:
        while not done.is_set():
            assert LIBC.renameat2(-100, b"sub", -100, b"link", 2) == 0  # both change places, neither is ever gone
            time.sleep(0)

    swapper = threading.Thread(target=swap)
    swapper.start()
    read: set[bytes] = set()
    try:
        for number in range(400):
            with suppress(BackendError):
                read.add(await backend.read("sub/a"))
            with suppress(BackendError):
                await backend.write("sub/a", b"mine")
            with suppress(BackendError):
                await backend.write(f"sub/new{number % 3}", b"mine")
    finally:
        done.set()
        swapper.join()
    assert read == {b"mine"}  # each attempt finds the folder, or fails
    assert _names(outside) == ["a"]
    assert (outside / "a").read_text() == "secret"
