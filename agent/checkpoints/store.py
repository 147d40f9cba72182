"""Where the states of files are kept: contents, and for each set of changes one object that names them all.

A set is a folder with the folders `before`, `after` (and the same for files outside the workspace) and `left`, so git
itself can show it as a diff. A ref for each set keeps its contents alive; which refs stay is decided in `retention`.
"""

from __future__ import annotations

import stat
from pathlib import Path
from secrets import token_hex

from ..git.objects import Item, MissingError, Objects, make_folder
from ..git.process import GitError
from .places import LeftAlone
from .states import FILE_BYTES, Change, Changes, Name

_SIDES = (b"before/", b"after/")
_OUTSIDE = b"outside-"
_LEFT = b"left/"
TREE_BYTES = 64 * 1024 * 1024
MOST_LEFT = 1_000
"""Files that cannot be brought back which one set names."""


class Store:
    """The states that one workspace's sessions keep in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = Objects(folder)

    def keep(self, changes: Changes, session: str) -> str:
        """Keeps a set of changes and returns its name. The contents are there already. Raises `OSError`."""
        oid = self.write(changes)
        ref = self.folder / "refs" / "checkpoints" / session / oid
        make_folder(ref.parent)
        draft = ref.with_name(f"{token_hex(8)}.lock")  # git passes over names that end so
        try:
            draft.write_text(f"{oid}\n")
            draft.replace(ref)
        finally:
            draft.unlink(missing_ok=True)
        return oid

    def write(self, changes: Changes) -> str:
        """The same for a set that need not last. Raises `OSError`."""
        files: dict[bytes, Item] = {}
        for name, change in changes.files.items():
            for side, item in zip(_SIDES, (change.before, change.after), strict=True):
                if item is not None:
                    files[_place(side, name)] = item
        for name, why in list(changes.left.items())[:MOST_LEFT]:
            files[_place(_LEFT, name)] = Item(mode=stat.S_IFREG | 0o644, oid=self.objects.write("blob", why.encode()))
        return self.objects.write_tree(files)

    def changes(self, oid: str) -> Changes:
        """A set by its name. Raises `MissingError` if it is not kept any longer."""
        before: dict[Name, Item] = {}
        after: dict[Name, Item] = {}
        left: dict[Name, str] = {}
        for path, item in self.objects.files(oid, TREE_BYTES):
            side, name = _read_place(path)
            if side == _LEFT:
                left[name] = self.objects.read(item.oid, 4096)[1].decode("utf-8", "replace")
            else:
                (before if side == _SIDES[0] else after)[name] = item
        names = dict.fromkeys((*before, *after))
        return Changes(
            files={name: Change(before=before.get(name), after=after.get(name)) for name in names}, left=left
        )

    def sides(self, oid: str) -> tuple[str, str]:
        """The names of the folders `before` and `after` of a set. Raises `MissingError`, `OSError`."""
        inner = {name: item.oid for name, item in self.objects.tree(oid, TREE_BYTES)}
        nothing = self.objects.write_tree({})
        return inner.get(b"before", nothing), inner.get(b"after", nothing)

    def content(self, item: Item) -> bytes:
        """The content of a file. Raises `LeftAlone` if it is not kept any longer."""
        try:
            return self.objects.read(item.oid, FILE_BYTES)[1]
        except MissingError as error:
            raise LeftAlone("its earlier content is no longer kept") from error
        except GitError as error:
            raise LeftAlone(f"its earlier content cannot be read: {error}") from error

    def refs(self) -> list[Path]:
        """The files of all refs."""
        return [path for path in (self.folder / "refs" / "checkpoints").glob("*/*") if path.is_file()]


def _place(side: bytes, name: Name) -> bytes:
    return _OUTSIDE + side + name[1:] if name.startswith(b"/") else side + name


def _read_place(path: bytes) -> tuple[bytes, Name]:
    first, _, name = path.partition(b"/")
    if first.startswith(_OUTSIDE):
        return first.removeprefix(_OUTSIDE) + b"/", b"/" + name
    return first + b"/", name
