"""Our files in the project and their twins: what survives cleaning, crashes, clones and full disks."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from deepagent.agent.storage import DiskStorage
from deepagent.context.storage import Locked, StorageError

NAME = "sessions/s.jsonl"


def read_both(storage: DiskStorage, name: str = NAME) -> bytes:
    """A file's content, the same under both names."""
    data = storage.read(name)
    assert storage.path(name).read_bytes() == data
    return data


def create_empty(storage: DiskStorage, name: str) -> None:
    storage.create(name, b"")


ACTS = (DiskStorage.open, DiskStorage.read, create_empty)


def write(storage: DiskStorage, *pieces: bytes, name: str = NAME) -> None:
    file = storage.open(name)
    for piece in pieces:
        file.append(piece)
    file.sync()
    file.close()


@pytest.fixture
def linked(tmp_path: Path) -> DiskStorage:
    """Project and home on one file system."""
    return DiskStorage(tmp_path / "work" / ".deepagents", tmp_path / "home" / "twins", prefix=".deepagents")


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[DiskStorage]:
    """Project and home on two file systems, where nothing can be linked."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    other = Path(tempfile.mkdtemp(prefix="deepagent-test-", dir=memory))
    yield DiskStorage(other / "work" / ".deepagents", tmp_path / "home" / "twins", prefix=".deepagents")
    shutil.rmtree(other)


@pytest.fixture(params=["linked", "copied"])
def storage(request: pytest.FixtureRequest) -> DiskStorage:
    """Each of the two."""
    return request.getfixturevalue(request.param)


def test_what_is_appended_is_under_both_names_and_its_place_is_told(storage: DiskStorage) -> None:
    file = storage.open(NAME)
    assert [file.append(piece) for piece in (b"one\n", b"", b"two\n")] == [0, 4, 4]
    file.sync()
    file.close()
    again = storage.open(NAME)
    assert again.append(b"three\n") == 8
    again.close()
    assert read_both(storage) == b"one\ntwo\nthree\n"


def test_where_links_work_there_is_one_file(linked: DiskStorage) -> None:
    write(linked, b"x")
    linked.create("large/1.txt", b"y")
    for name in (NAME, "large/1.txt"):
        assert linked.path(name).samefile(linked.mirror / name)


def test_where_links_do_not_work_there_are_two(copied: DiskStorage) -> None:
    write(copied, b"x")
    assert not copied.path(NAME).samefile(copied.mirror / NAME)
    assert read_both(copied) == b"x"


def test_files_and_every_folder_made_are_the_users_alone(storage: DiskStorage) -> None:
    before = os.umask(0o002)
    try:
        write(storage, b"x")
        storage.create("a/b/c/1.txt", b"y")
    finally:
        os.umask(before)
    for base in (storage.root, storage.mirror):
        for path in (base, *base.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_git_clean_loses_nothing(storage: DiskStorage) -> None:
    work = storage.root.parent
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", work], check=True)
    file = storage.open(NAME)
    file.append(b"before\n")
    storage.create("large_tool_results/s/1-execute.txt", b"result")
    subprocess.run(["git", "-C", work, "clean", "-fdxq"], check=True)
    assert not storage.root.exists()
    file.append(b"after\n")
    file.close()
    storage.restore_all("s")
    assert read_both(storage) == b"before\nafter\n"
    assert read_both(storage, "large_tool_results/s/1-execute.txt") == b"result"
    write(storage, b"more\n")
    assert read_both(storage) == b"before\nafter\nmore\n"


def test_restoring_one_session_leaves_the_others_alone(storage: DiskStorage) -> None:
    write(storage, b"x", name="sessions/aaa.jsonl")
    write(storage, b"y", name="sessions/bbb.jsonl")
    shutil.rmtree(storage.root)
    storage.restore_all("aaa")
    assert [path.name for path in storage.root.rglob("*.jsonl")] == ["aaa.jsonl"]


def test_of_a_copy_that_a_crash_cut_the_rest_is_written_again(copied: DiskStorage) -> None:
    write(copied, b"one\n", b"two\n")
    copied.path(NAME).write_bytes(b"one\ntw")
    write(copied, b"three\n")
    assert read_both(copied) == b"one\ntwo\nthree\n"
    assert list(copied.path(NAME).parent.iterdir()) == [copied.path(NAME)]


def test_a_project_file_that_is_not_ours_is_set_aside(storage: DiskStorage) -> None:
    write(storage, b"ours\n")
    path = storage.path(NAME)
    path.unlink()
    path.write_bytes(b"theirs\n")
    assert storage.read(NAME) == b"ours\n"
    write(storage, b"more\n")
    assert read_both(storage) == b"ours\nmore\n"
    assert path.with_name("s.jsonl.foreign-1").read_bytes() == b"theirs\n"


def test_a_project_file_without_a_twin_is_never_gone_on_with(storage: DiskStorage) -> None:
    path = storage.path(NAME)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"came with a clone\n")
    with pytest.raises(FileNotFoundError):
        storage.read(NAME)
    assert storage.names("sessions") == ()
    write(storage, b"ours\n")
    assert read_both(storage) == b"ours\n"
    assert path.with_name("s.jsonl.foreign-1").read_bytes() == b"came with a clone\n"


def test_no_link_is_written_through(storage: DiskStorage, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    for name in (NAME, "large/1.txt"):
        storage.path(name).parent.mkdir(parents=True)
        storage.path(name).symlink_to(target)
    write(storage, b"ours\n")
    with pytest.raises(FileExistsError):
        storage.create("large/1.txt", b"ours")
    assert target.read_bytes() == b"precious"
    assert read_both(storage) == b"ours\n"
    assert not storage.path(NAME).is_symlink()


@pytest.mark.parametrize("place", ["root", "mirror"])
def test_a_taken_name_is_not_written_over(storage: DiskStorage, place: str) -> None:
    taken: Path = getattr(storage, place) / "large/1.txt"
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"there before")
    with pytest.raises(FileExistsError):
        storage.create("large/1.txt", b"new")
    assert taken.read_bytes() == b"there before"
    storage.create("large/2.txt", b"new")
    assert read_both(storage, "large/2.txt") == b"new"


@pytest.mark.parametrize("place", ["root", "mirror"])
def test_a_file_where_a_folder_should_be_is_an_error_that_names_it(storage: DiskStorage, place: str) -> None:
    base: Path = getattr(storage, place)
    base.mkdir(parents=True)
    (base / "large").write_bytes(b"")
    with pytest.raises(StorageError, match=f"cannot write {base}/large") as caught:
        storage.create("large/1.txt", b"new")
    assert not isinstance(caught.value, FileExistsError)
    with pytest.raises(StorageError, match="large"):
        storage.open("large/x/2.txt")
    assert storage.names("large") == ()


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a\0b"])
def test_a_name_that_leads_out_is_refused(storage: DiskStorage, name: str) -> None:
    for act in (*ACTS, DiskStorage.names):
        with pytest.raises(StorageError, match="no name of a file of ours"):
            act(storage, name)
    assert not storage.root.exists()
    assert not storage.mirror.exists()


def test_a_name_that_is_too_long_is_an_error_of_ours(storage: DiskStorage) -> None:
    for act in ACTS:
        with pytest.raises(StorageError, match="cannot"):
            act(storage, "x" * 300)


def test_names_and_paths_as_people_and_models_see_them(linked: DiskStorage) -> None:
    for name in ("b/2", "b/1", "a/x/y"):
        linked.create(name, b"")
    assert linked.names("b") == ("b/1", "b/2")
    assert linked.names(".") == ("a/x/y", "b/1", "b/2")
    assert linked.names("nothing") == ()
    assert linked.shown("b/1") == ".deepagents/b/1"
    assert linked.path("b/1") == linked.root / "b/1"


HOLD = """
import sys
from pathlib import Path
from deepagent.agent.storage import DiskStorage
root, mirror, name = sys.argv[1:]
file = DiskStorage(Path(root), Path(mirror), prefix="").open(name, lock=True)
print("held", flush=True)
sys.stdin.read()
file.append(b"from the other process\\n")
file.close()
"""


@pytest.fixture
def holder(storage: DiskStorage) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the file's lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(storage.root), str(storage.mirror), NAME]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.communicate()


def test_a_lock_holds_though_the_projects_file_is_removed(storage: DiskStorage, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(Locked, match=r"s\.jsonl is open in another process"):
        storage.open(NAME, lock=True)
    shutil.rmtree(storage.root)
    with pytest.raises(Locked):
        storage.open(NAME, lock=True)
    assert storage.read(NAME) == b""
    holder.communicate()
    file = storage.open(NAME, lock=True)
    file.append(b"mine\n")
    file.close()
    assert read_both(storage) == b"from the other process\nmine\n"


def test_a_lock_ends_with_its_file_and_with_a_failed_opening(linked: DiskStorage) -> None:
    linked.open(NAME, lock=True).close()
    linked.open(NAME, lock=True).close()
    linked.path(NAME).unlink()
    linked.path(NAME).parent.rmdir()
    linked.path(NAME).parent.write_bytes(b"in the way")
    with pytest.raises(StorageError):
        linked.open(NAME, lock=True)
    linked.path(NAME).parent.unlink()
    linked.open(NAME, lock=True).close()


def test_a_log_that_cannot_be_in_the_project_leaves_no_twin(linked: DiskStorage) -> None:
    linked.root.mkdir(parents=True)
    (linked.root / "sessions").write_bytes(b"in the way")
    with pytest.raises(StorageError, match="sessions"):
        linked.open(NAME, lock=True)
    assert linked.names("sessions") == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_project_is_an_error_that_says_so(linked: DiskStorage) -> None:
    linked.root.mkdir(parents=True)
    linked.root.chmod(0o500)
    with pytest.raises(StorageError, match=r"cannot write .*: Permission denied"):
        linked.open(NAME)
    linked.root.chmod(0o700)
