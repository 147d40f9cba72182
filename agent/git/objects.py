"""Contents and folders in a repository of ours, by their hash: written in git's own form, read with or without git.

What is written lies in a file each until git packs it; packed objects are read by one `git cat-file` that lives as long
as the `with` block of who reads. Which objects are worth keeping is the business of `agent.checkpoints`.
"""

from __future__ import annotations

import hashlib
import os
import selectors
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from stat import S_ISDIR
from typing import Literal, cast

from ..small_files import write_private
from .process import GitError, environment, started

Kind = Literal["blob", "tree", "commit", "tag"]

_HEADER = 64
"""Bytes of the longest beginning of an object: kind and size."""
_PATIENCE = 10.0
"""Seconds in which git must say something."""
_FOLDER = 0o040000
_HEAD = b"ref: refs/heads/none\n"
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"


class MissingError(GitError):
    """An object is not there (any more), or is not what its name says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What a tree says of one file."""

    mode: int
    """As `stat` has it: kind and permissions."""
    oid: str


def object_id(kind: Kind, data: bytes) -> str:
    """The name of an object."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, each for the user alone. Raises `OSError`."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def make_ready(folder: Path, more: Mapping[str, bytes] | None = None) -> None:
    """Makes `folder` a repository to git, or puts right what is missing of it; `more` are further files.

    Raises `OSError`.
    """
    for name in ("objects", "refs", "info"):
        make_folder(folder / name)
    for name, data in {"HEAD": _HEAD, "config": _CONFIG, **(more or {})}.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            write_private(path, data)


class Objects:
    """The objects of the repository `folder`, which needs no more than a folder `objects`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._helpers: dict[str, _Helper] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_helpers()

    def write(self, kind: Kind, data: bytes) -> str:
        """Keeps an object and returns its name. Raises `OSError`."""
        oid = object_id(kind, data)
        path = self._path(oid)
        if not path.exists():
            make_folder(path.parent)
            draft = path.with_name(f"tmp_obj_{token_hex(6)}")
            try:
                with os.fdopen(
                    os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400), "wb"
                ) as file:
                    file.write(zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, 1))
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
        return oid

    def read(self, oid: str, limit: int) -> tuple[Kind, bytes]:
        """An object of at most `limit` bytes. Raises `GitError`, or `MissingError`, its kind for what is not there."""
        kind, data = self._loose(oid, limit) or self._packed(oid, limit)
        if object_id(kind, data) != oid:
            raise MissingError(f"the stored content {oid} is damaged")
        return kind, data

    def write_tree(self, files: Mapping[bytes, Item]) -> str:
        """Keeps the folders that `files` lie in; the names have slashes. Returns the name of the topmost."""
        here: list[tuple[bytes, int, str]] = []
        below: dict[bytes, dict[bytes, Item]] = {}
        for name, item in files.items():
            first, slash, rest = name.partition(b"/")
            if slash:
                below.setdefault(first, {})[rest] = item
            else:
                here.append((first, item.mode, item.oid))
        here += [(name, _FOLDER, self.write_tree(inner)) for name, inner in below.items()]
        here.sort(key=lambda entry: entry[0] + (b"/" if S_ISDIR(entry[1]) else b""))
        return self.write("tree", b"".join(b"%o %s\0%s" % (mode, name, bytes.fromhex(oid)) for name, mode, oid in here))

    def tree(self, oid: str, limit: int) -> Iterator[tuple[bytes, Item]]:
        """The entries of one folder. Raises as `read` does."""
        _, data = self.read(oid, limit)
        at = 0
        while at < len(data):
            space, end = data.index(b" ", at), data.index(b"\0", at)
            yield data[space + 1 : end], Item(mode=int(data[at:space], 8), oid=data[end + 1 : end + 21].hex())
            at = end + 21

    def files(self, oid: str, limit: int, before: bytes = b"") -> Iterator[tuple[bytes, Item]]:
        """Every file below a folder, with slashes in its name. Raises as `read` does."""
        for name, item in self.tree(oid, limit):
            if S_ISDIR(item.mode):
                yield from self.files(item.oid, limit, before + name + b"/")
            else:
                yield before + name, item

    def has(self, oid: str) -> bool:
        """Whether an object is there."""
        if self._path(oid).exists():
            return True
        try:
            return self._helper("--batch-check").ask(oid) is not None
        except GitError:
            return False

    def _path(self, oid: str) -> Path:
        return self._folder / "objects" / oid[:2] / oid[2:]

    def _loose(self, oid: str, limit: int) -> tuple[Kind, bytes] | None:
        """An object that has a file of its own."""
        unpack = zlib.decompressobj()
        try:
            raw = unpack.decompress(self._path(oid).read_bytes(), limit + _HEADER)
        except FileNotFoundError:
            return None
        except (OSError, zlib.error) as error:
            raise MissingError(f"the stored content {oid} cannot be read: {error}") from error
        head, _, data = raw.partition(b"\0")
        if not unpack.eof or len(data) > limit:
            raise MissingError(f"the stored content {oid} is damaged or too long")
        return cast(Kind, head.split(b" ")[0].decode("ascii", "replace")), data

    def _packed(self, oid: str, limit: int) -> tuple[Kind, bytes]:
        """An object that git has packed."""
        contents = self._helper("--batch")
        found = contents.ask(oid)
        if found is None:
            raise MissingError(f"the stored content {oid} is gone")
        kind, size = found
        if size > limit:
            self._end_helpers()  # nobody is going to read it
            raise MissingError(f"the stored content {oid} is too long")
        return kind, contents.take(size + 1)[:-1]

    def _helper(self, what: str) -> _Helper:
        if what not in self._helpers:
            self._make_ready()
            environ = {**environment(), "GIT_DIR": str(self._folder)}
            begin = started(self._folder, ("cat-file", what), environ, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self._helpers[what] = _Helper(self._stack.enter_context(begin))
        return self._helpers[what]

    def _make_ready(self) -> None:
        try:
            make_ready(self._folder)
        except OSError as error:
            raise GitError(f"{self._folder} cannot be written: {error.strerror}") from error

    def _end_helpers(self) -> None:
        self._helpers.clear()
        with suppress(OSError):  # of a pipe, where git has ended already
            self._stack.close()


class _Helper:
    """A `git cat-file` that answers questions, one at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._ahead = b""
        """What it has written and nobody has read yet."""

    def ask(self, oid: str) -> tuple[Kind, int] | None:
        """Kind and size of an object; None if it is not there. With `--batch`, its bytes and a newline follow."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{oid}\n".encode())
            self._process.stdin.flush()
        except OSError as error:
            raise GitError(f"git does not say what is stored: {error.strerror}") from error
        words = self._line().split()
        return (cast(Kind, words[1].decode()), int(words[2])) if len(words) == 3 else None

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        pieces, have = [self._ahead], len(self._ahead)
        while have < size:
            pieces.append(self._more())
            have += len(pieces[-1])
        data = b"".join(pieces)
        self._ahead = data[size:]
        return data[:size]

    def _line(self) -> bytes:
        while b"\n" not in self._ahead:
            self._ahead += self._more()
        line, _, self._ahead = self._ahead.partition(b"\n")
        return line

    def _more(self) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            ready = selector.select(_PATIENCE)
        piece = os.read(self._process.stdout.fileno(), 1024 * 1024) if ready else b""
        if not piece:
            raise GitError("git does not say what is stored")
        return piece
