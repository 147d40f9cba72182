"""Which paths may be reached, and what they are called.

Lexical work and link resolution only: nothing is opened here. A path may be spelled in many ways; a `Place` is what
all of them mean. Our own data folders have a fixed spelling (`.deepagents/sessions/…`), wherever they lie.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePath

from .protocol import BackendError

HOME_NAME = ".deepagents"
DATA_FOLDERS = ("sessions", "conversation_history", "large_tool_results", "checkpoints")
"""Folders of ours: read when named, never written by tools, never met by a search of something else."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path after all links."""

    real: Path
    base: Path
    """The served folder that it lies in."""
    name: str
    """As approvals and the log call it: relative to the workspace, or absolute outside it."""
    shown: str
    """As it is shown to the model, which may give it back."""
    ours: bool
    """It is one of our data folders, or lies in one."""


class Paths:
    """Resolves paths against a workspace, a working directory and a place for our data."""

    def __init__(self, root: Path, cwd: Path, *, extra: tuple[Path, ...], data: Path) -> None:
        self.root, self.cwd = _real(root), _real(cwd)
        self._spelled = tuple({Path(os.path.normpath(p)) / HOME_NAME: None for p in (root, self.root, cwd, self.cwd)})
        self._data = Path(os.path.normpath(data))
        self._data_real = _real(data)
        outside = not _within(self._data, Path(os.path.normpath(root))) and not _within(self._data, self.root)
        self._named = (self.root, *map(_real, extra))
        self.bases = (*self._named, *(self._folders() if outside else ()))

    def resolve(self, path: str) -> Place:
        """The place that `path` means. Raises `BackendError` if it is no path, or lies outside what is served."""
        self._check(path)
        joined = os.path.join(self.cwd, path)  # noqa: PTH118 - pathlib would lose what `..` means after a link
        ours = self._ours(Path(os.path.normpath(joined)))
        real = _real(Path(ours or joined))
        if ours and not any(_within(real, folder) for folder in self._folders()):
            raise BackendError(f"{path} leads out of the folder it lies in")
        return self._place(real, path)

    def at(self, real: Path) -> Place:
        """The place of a file that a search found below a place. `real` has no links but perhaps its last part."""
        return self._place(real, str(real))

    def data_below(self, base: Path) -> tuple[str, ...]:
        """Our data folders within `base`, relative to it with slashes."""
        candidates = [*self._folders(), *(self.root / HOME_NAME / name for name in DATA_FOLDERS)]
        return tuple({folder.relative_to(base).as_posix(): None for folder in candidates if _within(folder, base)})

    def _check(self, path: str) -> None:
        if not path:
            raise BackendError("The path is empty")
        try:
            if b"\0" in os.fsencode(path):
                raise BackendError("The path holds a NUL character")
        except UnicodeEncodeError:
            raise BackendError("The path holds characters that no file name can have") from None
        if (path == "~" or path.startswith("~/")) and not os.path.lexists(self.cwd / path):
            raise BackendError("`~` is not expanded: give an absolute path, or one relative to the working directory")

    def _folders(self) -> tuple[Path, ...]:
        return tuple(self._data_real / name for name in DATA_FOLDERS)

    def _ours(self, lexical: Path) -> Path | None:
        """Where a path that names one of our data folders really leads, or None if it names none."""
        for home in (*self._spelled, self._data, self._data_real):
            if _within(lexical, home) and lexical != home:
                folder, *rest = lexical.relative_to(home).parts
                if folder.casefold() in DATA_FOLDERS:
                    return self._data_real.joinpath(folder.casefold(), *rest)
        return None

    def _place(self, real: Path, spelled: str) -> Place:
        base = next((base for base in self.bases if _within(real, base)), None)
        if base is None:
            served = " and ".join(map(str, self._named))
            raise BackendError(f"{spelled} lies outside the workspace ({served})")
        data = self._data_name(real)
        inside = _within(real, self.root)
        name = data or (real.relative_to(self.root).as_posix() if inside else str(real))
        return Place(real=real, base=base, name=name, shown=data or self._shown(real), ours=data is not None)

    def _data_name(self, real: Path) -> str | None:
        """The fixed spelling of a path in our data folders, else None. File systems may not tell case apart."""
        for home in (self._data_real, self.root / HOME_NAME):
            if _within(_folded(real), _folded(home)) and len(real.parts) > len(home.parts):
                folder, *rest = real.parts[len(home.parts) :]
                if folder.casefold() in DATA_FOLDERS:
                    return str(PurePath(HOME_NAME, folder, *rest))
        return None

    def _shown(self, real: Path) -> str:
        if _within(real, self.cwd):
            return real.relative_to(self.cwd).as_posix()
        return os.path.relpath(real, self.cwd) if _within(real, self.root) else str(real)


def printable(path: str) -> str:
    """A path that fits on a line: control characters and bytes that are no text are written as escapes."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _real(path: Path) -> Path:
    """`path` with every link resolved, as far as it exists; the rest follows as it is written."""
    try:
        return Path(os.path.realpath(path))
    except (RecursionError, OSError):
        raise BackendError(f"{path} goes through too many links") from None


def _within(path: PurePath, folder: PurePath) -> bool:
    return path.parts[: len(folder.parts)] == folder.parts


def _folded(path: Path) -> PurePath:
    return PurePath(str(path).casefold())
