"""What stands in the input, kept on disk while it is written: a crash loses half a second of typing.

A workspace has a slot for each screen that is open on it, held by a lock that ends with the process; a draft in a slot
that nobody holds was left behind, and is offered. Files are replaced whole; there is no fsync, since it is the process
that may die at any time. When to write is the business of `prompt`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from .pastes import clean

_SLOTS = 8
"""Screens on one workspace whose drafts are kept."""
_READ = 64 * 1024 * 1024
"""Bytes of the largest draft that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What was written and not sent."""

    text: str = ""
    """As it stands in the input, pastes folded."""
    pastes: Mapping[str, str] = field(default_factory=dict[str, str])
    """The folded pastes by their tokens."""
    queued: tuple[str, ...] = ()
    """Prompts that waited for the run to end, oldest first."""

    def __bool__(self) -> bool:
        return bool(self.text.strip() or self.queued)


class Drafts:
    """The draft of one screen on one workspace."""

    def __init__(self, folder: Path, workspace: Path, mask: Callable[[str], str] = str) -> None:
        """`mask` takes known secrets out of what is written."""
        self._folder = folder
        self._name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
        self._mask = mask
        self._path: Path | None = None
        self._slot: int | None = None
        self._writing = threading.Lock()
        self._wanted = self._written = Draft()

    def take(self) -> Draft | None:
        """Takes a slot, and what a screen that is gone left in it. Without a slot, nothing is ever written."""
        free = [(fd, path) for n in range(_SLOTS) if (path := self._at(n)) and (fd := _locked(path)) is not None]
        left = [(fd, path, draft) for fd, path in free if (draft := _read(path))]
        chosen = left[0][:2] if left else free[0] if free else (None, None)
        self._slot, self._path = chosen
        for fd, _ in free:
            if fd != self._slot:
                os.close(fd)
        draft = left[0][2] if left else None
        self._wanted = self._written = draft or Draft()
        return draft

    def keep(self, draft: Draft) -> None:
        """Has a draft written, or the file removed if there is nothing to keep; a thread does it."""
        if not draft == self._wanted == self._written:
            self._wanted = draft
            threading.Thread(target=self._write, daemon=True).start()

    def close(self, draft: Draft) -> None:
        """Writes a last draft, which stays for the next start, and gives the slot back."""
        self._wanted = draft
        self._write()
        with self._writing:
            if self._slot is not None:
                os.close(self._slot)
            self._slot = self._path = None

    def _write(self) -> None:
        with self._writing, suppress(OSError):
            draft = self._wanted
            if self._path is None or draft is self._written:
                return
            if draft:
                _replace(self._path, self._encoded(draft))
            else:
                self._path.unlink(missing_ok=True)
            self._written = draft

    def _at(self, slot: int) -> Path:
        return self._folder / f"{self._name}{f'-{slot}' if slot else ''}.json"

    def _encoded(self, draft: Draft) -> bytes:
        pastes = {token: self._mask(text) for token, text in draft.pastes.items()}
        queued = [self._mask(text) for text in draft.queued]
        return json.dumps({"text": self._mask(draft.text), "pastes": pastes, "queued": queued}).encode()


def _locked(path: Path) -> int | None:
    """The lock of a slot, or None if another screen holds it, or it cannot be made."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
    fresh.replace(path)


def _read(path: Path) -> Draft | None:
    """The draft in a file, cleaned; None if there is none, or it is none of ours."""
    try:
        if not path.is_file() or path.stat().st_size > _READ:
            return None
        value: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    fields = cast(dict[str, object], value) if isinstance(value, dict) else {}
    text, pastes, queued = fields.get("text"), fields.get("pastes"), fields.get("queued")
    if not isinstance(text, str) or not isinstance(pastes, dict) or not isinstance(queued, list):
        return None
    return (
        Draft(
            text=clean(text),
            pastes={str(k): clean(str(v)) for k, v in cast(dict[object, object], pastes).items()},
            queued=tuple(clean(str(one)) for one in cast(list[object], queued)),
        )
        or None
    )
