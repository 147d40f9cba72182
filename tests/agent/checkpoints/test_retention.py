"""How long states of files are kept, and that what is put together or let go does no harm."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_desk import Desk, done
from deepagent.agent.checkpoints import retention
from deepagent.agent.checkpoints.retention import Keep, forget, tidy
from deepagent.agent.git.objects import MissingError, Objects, object_id
from deepagent.context.control import CannotDo

Make = Callable[..., Desk]


def loose(at: Desk) -> int:
    """Objects that have a file each."""
    return sum(len(path.parent.name) == 2 for path in (at.store.folder / "objects").rglob("*") if path.is_file())


def pack(at: Desk, monkeypatch: pytest.MonkeyPatch, keep: Keep | None = None) -> None:
    """Puts together at once, what is young included."""
    monkeypatch.setattr(retention, "_LOOSE", 0)
    monkeypatch.setattr(retention, "_YOUNG", 0)
    tidy(at.store, keep)


def test_what_was_put_together_is_still_all_there(desk: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    at = desk()
    before = at.state()
    at.write("a.txt", "tool\n")
    at.shell("echo command >> a.txt; echo b > b.txt; chmod 600 b.txt; ln -s a.txt l")
    after = at.state()
    diff = at.files.changes("turn").diff
    pack(at, monkeypatch)
    assert loose(at) == 0
    assert at.files.changes("turn").diff == diff
    at.files.undo()
    assert at.state() == before
    pack(at, monkeypatch)
    at.files.redo()
    assert at.state() == after
    at.shell("echo c > c.txt")
    assert at.keeper.news == []


def test_what_is_too_old_goes_and_is_said_to_be_gone(desk: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    at = desk()
    at.write("a.txt", "one turn\n")
    old = time.time() - 40 * 86_400
    for ref in at.store.refs():
        os.utime(ref, (old, old))
    at.turn("second")
    at.shell("echo second > a.txt")
    pack(at, monkeypatch)
    assert at.files.undo().written == ("a.txt",)
    with pytest.raises(CannotDo, match="is no longer kept"):
        at.files.undo()
    assert (at.folder / "a.txt").read_text() == "one turn\n"


@pytest.mark.parametrize("keep", [Keep(sets=1), Keep(bytes=1)], ids=["number", "room"])
def test_the_room_has_a_bound(desk: Make, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    at = desk()
    for number in range(3):
        at.turn(f"turn {number}")
        at.write("a.txt", f"{number}\n" * 1000)
        os.utime(next(iter(at.store.folder.glob("refs/checkpoints/*/*"))), (number, number))
    tidy(at.store, keep, now=10)
    assert len(at.store.refs()) == 1


def test_a_torn_ref_or_a_second_process_harms_nothing(desk: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    at = desk()
    at.shell("echo b > b.txt")
    folder = at.store.refs()[0].parent
    (folder / ("0" * 40)).write_text("")
    (folder / "draft.lock").write_text("x")
    pack(at, monkeypatch)
    assert len(list(folder.iterdir())) == 1
    assert done(at.files.undo()) == ((), ("b.txt",), {})


def test_nothing_is_made_where_nothing_was_kept(desk: Make) -> None:
    at = desk()
    tidy(at.store)
    forget(at.store.folder, "session")
    assert not at.store.folder.exists()


def test_states_are_for_their_owner_alone(desk: Make) -> None:
    at = desk()
    at.write("b.txt", "b")
    assert at.store.folder.stat().st_mode & 0o077 == 0
    assert at.store.folder.parent.stat().st_mode & 0o077 == 0


def test_damaged_contents_are_told_from_whole_ones(tmp_path: Path) -> None:
    with Objects(tmp_path) as objects:
        oid = objects.write("blob", b"content")
        assert objects.read(oid, 100) == ("blob", b"content")
        with pytest.raises(MissingError, match="too long"):
            objects.read(oid, 3)
        path = tmp_path / "objects" / oid[:2] / oid[2:]
        path.chmod(0o600)
        for data in (b"", b"no zlib", path.read_bytes()[:-2]):
            path.write_bytes(data)
            with pytest.raises(MissingError):
                objects.read(oid, 100)
        other = objects.write("blob", b"other")
        path.write_bytes((tmp_path / "objects" / other[:2] / other[2:]).read_bytes())
        with pytest.raises(MissingError, match="damaged"):
            objects.read(oid, 100)


def test_a_file_whose_content_is_gone_is_left(desk: Make) -> None:
    at = desk()
    at.write("a.txt", "two\n")
    oid = object_id("blob", b"one\n")
    (at.store.folder / "objects" / oid[:2] / oid[2:]).unlink()
    assert done(at.files.undo()) == ((), (), {"a.txt": "its earlier content is no longer kept"})
    assert (at.folder / "a.txt").read_text() == "two\n"
