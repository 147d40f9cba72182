"""A result that goes to its file while it comes: masked, counted, and with an end to how much is stored.

Which file that is, the context layer says (`Offloader.begin`); what the model is shown of it, too.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from ..context.messages import clean
from ..context.storage import AppendFile, StorageError
from ..context.stored import Stored
from .secrets import Masker

LIMIT = 2 * 1024 * 1024 * 1024
"""Bytes that one result may store."""
SPARE = 256 * 1024 * 1024
"""Bytes that are left free on the disk."""
_EDGE = 64 * 1024
"""Characters of the beginning, and of the end, that are kept at hand."""
_CHECKED = 16 * 1024 * 1024
"""Bytes after which the room on the disk is looked at again."""


class ResultFile:
    """Implements `backends.output.Sink`."""

    def __init__(self, path: str, file: AppendFile, masker: Masker, disk: Path) -> None:
        """`path` is for the model; `disk` is a folder on the file system that is being filled."""
        self.path = path
        self._file = file
        self._masker = masker
        self._disk = disk
        self._held = ""
        """The end of the text: the beginning of a secret may be in it."""
        self._hash = hashlib.sha256()
        self._bytes = self._lines = self._looked = 0
        self._ends_line = True
        self._head = self._tail = ""
        self._lost = ""
        self._stored: Stored | None = None

    @property
    def tail(self) -> str:
        """How it ends so far."""
        return (self._tail + self._masker.mask(self._held))[-_EDGE:]

    def add(self, text: str) -> None:
        """Takes the next piece; what cannot be stored is told in the end."""
        text = self._masker.mask(self._held + clean(text))
        cut = max(0, len(text) - self._masker.longest + 1)
        self._held = text[cut:]
        self._take(text[:cut])

    def close(self) -> Stored:
        """What has become of it. Further calls say the same."""
        if self._stored is None:
            text, self._held = self._held, ""
            self._take(text)
            try:
                self._file.sync()
            except StorageError as error:
                self._lost = self._lost or str(error)
            self._file.close()
            self._stored = Stored(
                path=self.path,
                bytes=self._bytes,
                lines=self._lines + (not self._ends_line),
                sha256=self._hash.hexdigest(),
                head=self._head,
                tail=self._tail,
                lost=self._lost,
            )
        return self._stored

    def _take(self, text: str) -> None:
        if not text:
            return
        if len(self._head) < _EDGE and not self._lost:
            self._head += text[: _EDGE - len(self._head)]
        self._tail = (self._tail + text[-_EDGE:])[-_EDGE:]
        if not self._lost:
            self._store(text)

    def _store(self, text: str) -> None:
        data = text.encode()
        self._lost = self._no_room(len(data))
        if not self._lost:
            try:
                self._file.append(data)
            except StorageError as error:
                self._lost = str(error)
        if not self._lost:
            self._hash.update(data)
            self._bytes += len(data)
            self._lines += text.count("\n")
            self._ends_line = text.endswith("\n")

    def _no_room(self, size: int) -> str:
        """Why no more should be stored, or empty."""
        if self._bytes + size > LIMIT:
            return f"only the first {LIMIT:,} bytes are stored"
        if self._bytes >= self._looked:
            self._looked = self._bytes + _CHECKED
            if shutil.disk_usage(self._disk).free < SPARE:
                return "the disk is nearly full"
        return ""
