"""A shadow: a repository of our own whose work tree is somebody else's folder, to take down the states of its files.

The user's repository, its index and refs are never touched, and nothing of it is run: what ignores files counts,
attributes and filters do not, so every content is kept byte for byte. Files that are ignored, too large or unreadable,
and nested repositories are not taken down; which they are is said. What states are good for is the business of
`agent.checkpoints`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from .objects import Item, make_folder, make_ready
from .process import Answer, GitError, environment, run
from .repository import DIFF_BYTES, DIFF_SECONDS, PLAIN

LIST_BYTES = 64 * 1024 * 1024
"""Bytes of names that one listing may have."""
_BATCH = 5_000
"""Files that git takes down in one go: after each, what was done is kept."""
_PRIVATE = 10_000
"""Files of which is remembered who may read them."""
_READABLE = 0o044
_SETTINGS = {
    "core.bigFileThreshold": "1",  # all go to one pack: a file each would take twice the time and six times the room
    "core.compression": "1",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.attributesFile": "/dev/null",
    "core.protectNTFS": "false",
    "core.protectHFS": "false",
    "gc.auto": "0",
}
_ATTRIBUTES = b"* -text -eol -crlf -filter -ident -working-tree-encoding\n"
"""Above every `.gitattributes`: contents are kept as they are, and no filter runs."""
_CLOSED = re.compile(r"could not open directory '(.*)/': ")


class TooMuchError(GitError):
    """The folder has more than may be taken down; the text says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be taken down. Beyond the first three nothing is, beyond the last one file is not."""

    files: int = 100_000
    """Files that are new or changed."""
    bytes: int = 512 * 1024 * 1024
    """Bytes of them."""
    seconds: float = 10.0
    file_bytes: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """A file that is not taken down."""

    why: str
    stamp: tuple[int, ...] = ()
    """Differs when the file has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The states of all files at one moment."""

    tree: str
    omitted: Mapping[bytes, Omitted]
    unseen: tuple[bytes, ...]
    """Folders into which was not looked: nested repositories, and those that cannot be read. Each ends with a slash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file that differs between two snapshots; None where it is not there."""

    name: bytes
    before: Item | None
    after: Item | None


@dataclass(slots=True)
class _Sorted:
    """What was listed, by what is to be done about it."""

    take: list[bytes] = field(default_factory=list[bytes])
    """To be taken down as they are now, or as gone."""
    drop: list[bytes] = field(default_factory=list[bytes])
    """Not to be kept any longer."""
    omitted: dict[bytes, Omitted] = field(default_factory=dict[bytes, Omitted])
    unseen: list[bytes] = field(default_factory=list[bytes])
    bytes: int = 0


class Shadow:
    """The shadow of the folder `root`, kept in `folder`."""

    def __init__(
        self,
        folder: Path,
        root: Path,
        *,
        ignored: Sequence[str] = (),
        excludes: Path | None = None,
        also: Sequence[bytes] = (),
        limits: Limits | None = None,
    ) -> None:
        """`ignored` are patterns of what is never taken down, `excludes` is a further ignore file, `also` names files
        that are taken down though they are ignored."""
        self.folder = folder
        self._root = root
        self._ignored = ignored
        self.excludes = excludes
        self._also = also
        self._limits = limits or Limits()
        self._tree: str | None = None
        """The newest snapshot's tree, while the index is known to be what it was made of."""
        self._end = 0.0
        self._private: dict[str, int] = {}

    def snapshot(self) -> Snapshot:
        """Takes down the states of all files. Raises `GitError`, or `TooMuchError`, its kind for what has no bounds."""
        self._end = time.monotonic() + self._limits.seconds
        with locked(self.folder, self._end):
            try:
                self._prepare()
                return self._snapshot()
            except GitError:
                if not self._index_is_broken():
                    raise
                (self.folder / "index").unlink()  # it can be made again from the files
                return self._snapshot()
            except OSError as error:
                raise GitError(f"states of files cannot be kept in {self.folder}: {error.strerror}") from error

    def differences(self, before: str, after: str) -> list[Difference]:
        """What differs between two trees. Raises `GitError`."""
        if before == after:
            return []
        self._end = time.monotonic() + self._limits.seconds
        said = self._ask("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after, limit=LIST_BYTES)
        return list(self._read_raw(self._whole(said).out))

    def _prepare(self) -> None:
        """Makes the repository, or what is missing of it; a lock that a crash left behind goes."""
        if not (self.folder / "objects").is_dir():
            (self.folder / "index").unlink(missing_ok=True)  # it speaks of contents that are gone
        ignored = "".join(f"{pattern}\n" for pattern in self._ignored).encode()
        make_ready(self.folder, {"info/attributes": _ATTRIBUTES, "info/exclude": ignored})
        (self.folder / "index.lock").unlink(missing_ok=True)
        with suppress(OSError, ValueError):
            self._private = cast(dict[str, int], json.loads((self.folder / "private").read_bytes()))

    def _snapshot(self) -> Snapshot:
        known = self._stamp()
        also = (f"--exclude-from={self.excludes}",) if self.excludes else ()
        command = ("ls-files", "-z", "-t", "--others", "--modified", "--exclude-standard", *also)
        said = self._whole(self._ask(*command, limit=LIST_BYTES))
        found = self._sort(said)
        if found.take or found.drop:
            self._tree = None
        self._update(found.drop, "--force-remove")
        for start in range(0, len(found.take), _BATCH):
            for name in self._take(found.take[start : start + _BATCH]):
                found.omitted[name] = Omitted(why="it cannot be read")
        if self._tree is None or known != self._indexed:
            said = self._whole(self._ask("write-tree", "--missing-ok", limit=4096))
            self._tree = said.out.decode().strip()
        self._indexed = self._stamp()
        return Snapshot(tree=self._tree, omitted=found.omitted, unseen=tuple(found.unseen))

    _indexed: tuple[int, ...] = ()
    """The index that the newest tree was made of: another process may have gone on with it."""

    def _stamp(self) -> tuple[int, ...]:
        with suppress(FileNotFoundError):
            status = (self.folder / "index").stat()
            return status.st_ino, status.st_size, status.st_mtime_ns
        return ()

    def _sort(self, said: Answer) -> _Sorted:
        """What is to be done about each file that was listed, and about those that are taken down all the same."""
        found = _Sorted(unseen=[os.fsencode(f"{name}/") for name in _CLOSED.findall(said.err)])
        names = {line[2:]: line[:1] for line in said.out.split(b"\0") if line}
        if len(names) > self._limits.files:
            raise TooMuchError(f"the workspace has more than {self._limits.files:,} new or changed files")
        for name in self._also if self._tree is None else ():
            names.setdefault(name, b"C")
        through_links: dict[bytes, bool] = {}
        private = dict(self._private)
        for name, tag in names.items():
            if name.endswith(b"/"):
                found.unseen.append(name)
            elif tag != b"?" and self._behind_link(os.path.dirname(name), through_links):  # noqa: PTH120 - bytes
                found.drop.append(name)
            else:
                self._sort_file(name, tag != b"?", found)
        if found.bytes > self._limits.bytes:
            size = self._limits.bytes // 1024 // 1024
            raise TooMuchError(f"the workspace has more than {size:,} MB in new or changed files")
        if private != self._private:
            (self.folder / "private").write_text(json.dumps(self._private))
        return found

    def _sort_file(self, name: bytes, indexed: bool, found: _Sorted) -> None:
        path = os.path.join(os.fsencode(self._root), name)  # noqa: PTH118 - bytes
        why = ""
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            found.take.append(name)
            return
        except OSError:
            found.omitted[name] = Omitted(why="it cannot be read")
            found.drop += [name] * indexed
            return
        if stat.S_ISREG(status.st_mode):
            self._remember_mode(name, status.st_mode)
            if status.st_size > self._limits.file_bytes:
                why = f"it is larger than {self._limits.file_bytes // 1024 // 1024} MB"
            elif not os.access(path, os.R_OK):
                why = "it cannot be read"
            found.bytes += 0 if why else status.st_size
        elif stat.S_ISDIR(status.st_mode):
            found.drop.append(name)
            return
        elif not stat.S_ISLNK(status.st_mode):
            why = "it is no regular file"
        if why:
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            found.omitted[name] = Omitted(why=why, stamp=stamp)
            found.drop += [name] * indexed
        else:
            found.take.append(name)

    def _remember_mode(self, name: bytes, mode: int) -> None:
        """Git keeps no more than the executable bit; a file that was for few must not come back for all."""
        key = os.fsdecode(name)
        if mode & _READABLE != _READABLE and (key in self._private or len(self._private) < _PRIVATE):
            self._private[key] = stat.S_IMODE(mode)
        else:
            self._private.pop(key, None)

    def _behind_link(self, folder: bytes, known: dict[bytes, bool]) -> bool:
        """Whether a folder is reached through a link: what git then finds there lies somewhere else."""
        if not folder:
            return False
        if folder not in known:
            path = os.path.join(os.fsencode(self._root), folder)  # noqa: PTH118 - bytes
            known[folder] = self._behind_link(os.path.dirname(folder), known) or os.path.islink(path)  # noqa: PTH114, PTH120
        return known[folder]

    def _take(self, names: Sequence[bytes]) -> list[bytes]:
        """Takes down files and returns those that git refuses. It stops at the first, so they are found by halving."""
        if self._update(names, "--add", "--remove", "--replace"):
            return []
        if len(names) == 1:
            self._update(names, "--force-remove")
            return list(names)
        half = len(names) // 2
        return [*self._take(names[:half]), *self._take(names[half:])]

    def _update(self, names: Sequence[bytes], *options: str) -> bool:
        """Changes the index; whether git would. Raises `TooMuchError` when the time is up."""
        if not names:
            return True
        data = b"".join(name + b"\0" for name in names)
        said = self._ask("update-index", "-z", *options, "--stdin", limit=1024 * 1024, data=data)
        if said.code is None:
            self._check_time()
            raise GitError("git was ended")
        return said.code == 0

    def _index_is_broken(self) -> bool:
        index = self.folder / "index"
        return index.is_file() and self._ask("ls-files", "-z", "--", ":(literal)\x01", limit=4096).code not in (0, None)

    def _read_raw(self, data: bytes) -> Iterator[Difference]:
        """The output of `diff-tree --raw -z`: facts and name by turns."""
        words = iter(data.split(b"\0"))
        for facts, name in zip(words, words, strict=False):
            old_mode, new_mode, old, new, _ = facts.removeprefix(b":").split(b" ")
            yield Difference(name=name, before=self._item(name, old_mode, old), after=self._item(name, new_mode, new))

    def _item(self, name: bytes, mode: bytes, oid: bytes) -> Item | None:
        number = int(mode, 8)
        if not number:
            return None
        private = self._private.get(os.fsdecode(name)) if stat.S_ISREG(number) else None
        if private is not None:
            number = stat.S_IFREG | (private & ~0o111) | (number & 0o111 & private)
        return Item(mode=number, oid=oid.decode())

    def _ask(self, *args: str, limit: int, data: bytes = b"") -> Answer:
        settings = (word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))
        places = {"GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self._root)}
        environ = {**environment(), **places}
        return run(self._root, (*settings, *args), environ, end=self._end, limit=limit, data=data)

    def _check_time(self) -> None:
        if time.monotonic() >= self._end:
            raise TooMuchError(f"its files cannot be looked at within {self._limits.seconds:g} s")

    def _whole(self, said: Answer) -> Answer:
        """An answer that is complete. Raises `GitError`."""
        if said.code == 0 and not said.cut:
            return said
        self._check_time()
        if said.cut:
            raise TooMuchError("its files cannot be listed: their names are too long together")
        raise GitError(said.reason)


def diff_of(folder: Path, before: str, after: str) -> str:
    """What differs between two trees of ours, as git shows it; at most 2 MB. Raises `GitError`."""
    make_ready(folder)
    environ = {**environment(), "GIT_DIR": str(folder)}
    command = ("diff-tree", "-r", "-p", "--no-renames", *PLAIN, before, after)
    said = run(folder, command, environ, end=time.monotonic() + DIFF_SECONDS, limit=DIFF_BYTES)
    if said.code and not said.cut:
        raise GitError(said.reason)
    cut = "\n… cut here: the diff is longer than 2 MB" if said.cut else ""
    return said.out.decode("utf-8", "replace").rstrip("\n") + cut


@contextmanager
def locked(folder: Path, end: float, *, wait: bool = True) -> Generator[None]:
    """Holds the shadow for this process alone. Raises `GitError` if another has it until `end` (monotonic)."""
    try:
        make_folder(folder)
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise GitError(f"states of files cannot be kept in {folder}: {error.strerror}") from error
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait or time.monotonic() > end:
                    raise GitError("another process is taking down the states of files") from None
                time.sleep(0.02)
            else:
                break
        yield
    finally:
        os.close(fd)
