"""What a search engine says of the lines that it finds, read while it runs; both engines speak as `rg --json` does.

How an engine is run and ended is told in `search`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from .excerpt import excerpt

_CHUNK = 256 * 1024
_RECORD = 64 * 1024 * 1024
"""Bytes of one line or message of an engine; what is longer is passed over."""
_MATCH = b'{"type":"match"'
"""How the message of a match begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line that matched, or stands near one: where it is, and what of it to show (see `protocol.Match`)."""

    path: str
    line: int
    column: int
    text: str
    cut: bool
    context: bool = False


@dataclass(slots=True, kw_only=True)
class Lines:
    """Collects hits."""

    limit: int
    """Matches, or files with matches, to collect at most."""
    around: int
    """Lines before and after each match that the engine tells, too."""
    files: bool
    """Only files and their number of matches are wanted."""
    wanted: Callable[[str], bool]
    """Whether the matches in a file count."""
    target: str
    """What was searched; if it is a file that is no text, that is told without a match, too."""
    hits: list[Hit] = field(default_factory=list[Hit])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    binary: set[str] = field(default_factory=set[str])
    """Files that are no text: those with matches, and the target."""
    more: bool = False
    """There is more than `limit`."""
    summed_up: bool = False
    """The engine has said that it is through."""
    _path: str = ""
    """The file at hand."""
    _skip: bool = False
    """It is not wanted."""
    _file: list[Hit] = field(default_factory=list[Hit])
    """What was found in it: whether it is binary is said at its end."""
    _number: int = 0
    """Lines of it that match."""
    _total: int = 0
    """Lines that match in all files."""

    def take(self, stream: IO[bytes], enough: Callable[[], None]) -> None:
        """Reads until the stream ends; calls `enough` when nothing more is wanted."""
        for record in records(stream, b"\n"):
            if self.files and record.startswith(_MATCH):  # that it is one is enough to know, and told fast
                self._count()
            else:
                self._message(json.loads(record))
            if self.more:
                enough()
        self._keep()

    def _message(self, message: Mapping[str, Any]) -> None:
        match message["type"]:
            case "begin":
                self._path = decoded(_bytes(message["data"]["path"]))
                self._skip = not self.wanted(self._path)
            case "match" | "context" if not self.more and not self._skip:
                self._line(message["data"], context=message["type"] == "context")
            case "end":
                self._end(message["data"])
            case "summary":
                self.summed_up = True
            case _:
                pass

    def _count(self) -> None:
        """One more match in the file at hand, unless it would be too many."""
        if self._skip or self.more:
            return
        full = not self._number and len(self.counts) >= self.limit if self.files else self._total >= self.limit
        if full:
            self.more = True
        else:
            self._number += 1
            self._total += 1

    def _line(self, data: Mapping[str, Any], *, context: bool) -> None:
        if not context:
            self._count()
        if not self.more:
            self._file.append(_hit(self._path, data, context=context))

    def _end(self, data: Mapping[str, Any]) -> None:
        if data["binary_offset"] is None:
            self._keep()
            return
        path = decoded(_bytes(data["path"]))
        if self._number or path == self.target:
            self.binary.add(path)
        self._total -= self._number
        self._file, self._number = [], 0

    def _keep(self) -> None:
        """Takes over what was found in the file at hand, without lines around a match that is not told."""
        if self._number:
            self.counts[self._path] = self._number
            matches = {hit.line for hit in self._file if not hit.context}
            last = max(matches, default=0) + self.around
            self.hits += [h for h in self._file if not h.context or (h.line <= last and h.line not in matches)]
        self._file, self._number = [], 0


def _hit(path: str, data: Mapping[str, Any], *, context: bool) -> Hit:
    line = _bytes(data["lines"]).removesuffix(b"\n").removesuffix(b"\r")
    begin, text = excerpt(line, data["submatches"][0]["start"] if data["submatches"] else 0)
    return Hit(
        path=path,
        line=data["line_number"],
        column=int(data.get("offset", 0)) + begin + 1,
        text=text.decode("utf-8", "replace"),
        cut=begin + len(text) < len(line),
        context=context,
    )


def _bytes(value: Mapping[str, str]) -> bytes:
    """Text as ripgrep writes it into JSON: as it is, or in base64 where it is no UTF-8."""
    return value["text"].encode("utf-8", "surrogateescape") if "text" in value else base64.b64decode(value["bytes"])


def decoded(path: bytes) -> str:
    """A path as Python writes it."""
    return path.decode("utf-8", "surrogateescape")


def records(stream: IO[bytes], separator: bytes) -> Iterator[bytes]:
    """What stands before each separator; a record that is too long is passed over."""
    pending: list[bytes] = []
    size = 0
    while chunk := stream.read(_CHUNK):
        first, *rest = chunk.split(separator)
        pending.append(first)
        size += len(first)
        if not rest:
            if size > _RECORD:
                pending.clear()
            continue
        if size <= _RECORD:
            yield b"".join(pending)
        yield from rest[:-1]
        pending, size = [rest[-1]], len(rest[-1])
