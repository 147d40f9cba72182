"""Files in their places: the last look before something is replaced, and names that lead elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from deepagent.agent.checkpoints.places import LeftAlone, Places
from deepagent.agent.git.objects import Item, object_id

OLD, NEW = b"old\n", b"new\n"


def item(data: bytes, mode: int = 0o100644) -> Item:
    return Item(mode=mode, oid=object_id("blob", data))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_not_as_expected_any_more_is_not_touched(tmp_path: Path) -> None:
    places, path = Places(tmp_path), tmp_path / "a"
    path.write_bytes(b"mine\n")
    for expected in (item(OLD), None):
        with pytest.raises(LeftAlone, match="somebody has changed it in this moment"):
            places.put(b"a", item(NEW), NEW, expected=expected)
    with pytest.raises(LeftAlone, match="somebody has changed it in this moment"):
        places.remove(b"a", expected=item(OLD))
    os.link(path, tmp_path / "b")
    with pytest.raises(LeftAlone, match="somebody has changed it in this moment"):
        places.put(b"a", item(NEW), NEW, expected=item(OLD))
    assert path.read_bytes() == b"mine\n"
    assert names(tmp_path) == ["a", "b"], "no draft stays"


@pytest.mark.parametrize("name", [b"../x", b"a/../../x", b"", b"a//b", b"./a", b"a\0b", b"/".join([b"d"] * 300)])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: bytes) -> None:
    places = Places(tmp_path / "root")
    (tmp_path / "root").mkdir()
    for work in (lambda: places.look(name), lambda: places.put(name, item(NEW), NEW, expected=None)):
        with pytest.raises(LeftAlone):
            work()
    assert not (tmp_path / "x").exists()


def test_what_may_read_and_write_stays_and_the_executable_bit_follows(tmp_path: Path) -> None:
    places, path = Places(tmp_path), tmp_path / "a"
    path.write_bytes(OLD)
    for before, wanted, after in ((0o600, 0o100755, 0o700), (0o664, 0o100755, 0o775), (0o775, 0o100644, 0o664)):
        path.chmod(before)
        places.put(b"a", item(NEW, wanted), NEW, expected=item(OLD, 0o100000 | before))
        assert stat.S_IMODE(path.stat().st_mode) == after
        path.write_bytes(OLD)


def test_the_folder_that_one_works_in_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "here" / "below").mkdir(parents=True)
    (tmp_path / "here" / "below" / "a").write_bytes(OLD)
    Places(tmp_path, stays=tmp_path / "here").remove(b"here/below/a", expected=item(OLD))
    assert names(tmp_path) == ["here"]
    assert names(tmp_path / "here") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_of_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(OLD)
    os.chown(path, 65534, 65534)
    Places(tmp_path).put(b"a", item(NEW), NEW, expected=item(OLD))
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)
