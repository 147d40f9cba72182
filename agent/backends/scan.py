"""The search engine for machines without ripgrep; run as a process of its own, and speaks what ripgrep speaks.

A process, because an expression that never ends holds the interpreter: this one can be ended from outside. The request
is a JSON object in the first argument. Found lines go to standard output as `rg --json` writes them, files with a NUL
after each; what cannot be read goes to standard error, a line each; exit code 2 says that the pattern is no expression.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader, TextIOWrapper

from .ignore import PASSED_OVER, Level, ignored, level
from .patterns import matcher
from .sought import Sought, sought_in

_LINE = 1024 * 1024
"""Bytes of a line that are searched at once; a longer one is searched in pieces."""
_AT_ONCE = 8 * 1024 * 1024
"""Bytes of a file up to which it is looked through before its lines are searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to search for, and where."""

    base: str
    """The served folder: ignore files above it do not count."""
    target: str
    """An absolute path in `base`."""
    pattern: str | None
    """None lists files."""
    literal: bool = False
    ignore_case: bool = False
    names: tuple[str, ...] = ()
    """Globs for the names of files to search; none takes all."""
    context: int = 0
    """Lines before and after each match."""
    files: bool = False
    """It is enough to say that a line matches, not which one."""
    everything: bool = False
    """Ignore files do not count."""
    hidden: tuple[str, ...] = ()
    """Folders to pass over, relative to `base`."""


def walk(request: Request) -> Iterator[str]:
    """Files at or below the target, sorted name by name within each folder."""
    if not os.path.isdir(request.target):  # noqa: PTH112
        yield request.target
        return
    levels: list[Level] = []
    if not request.everything:
        folder = request.base
        for part in ("", *os.path.relpath(request.target, request.base).split("/")):
            folder = os.path.normpath(f"{folder}/{part}")
            if not levels or levels[0].folder != folder.rstrip("/"):
                levels.insert(0, level(folder))
    yield from _below(request.target.rstrip("/"), tuple(levels), request)


def _below(folder: str, levels: tuple[Level, ...], request: Request) -> Iterator[str]:
    for name, kind in _entries(folder):
        path = f"{folder}/{name}"
        is_folder = kind == stat.S_IFDIR
        if name in _passed_over(request) or path[len(request.base.rstrip("/")) + 1 :] in request.hidden:
            continue
        if levels and ignored(levels, path, is_folder):
            continue
        if is_folder:
            yield from _below(path, (level(path), *levels) if levels else (), request)
        elif kind == stat.S_IFREG:
            yield path


def _passed_over(request: Request) -> frozenset[str]:
    return frozenset({".git"}) if request.everything else PASSED_OVER


def _entries(folder: str) -> list[tuple[str, int]]:
    """Names and kinds (a file, a folder, 0 for all else and for links) in a folder, sorted."""
    try:
        with os.scandir(folder) as scan:
            return sorted((entry.name, _kind(entry)) for entry in scan)
    except OSError as error:
        complain(folder, error)
        return []


def _kind(entry: os.DirEntry[str]) -> int:
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    return stat.S_IFREG if entry.is_file(follow_symlinks=False) else 0


def complain(path: str, error: OSError) -> None:
    """Says on standard error what could not be read."""
    sys.stderr.write(f"{json.dumps(path)}: {error.strerror}\n")


def search(path: str, expression: re.Pattern[str], request: Request, sought: Sought) -> Iterator[Mapping[str, object]]:
    """What a file has to say: each line that matches, those around it, then its end. A file with a NUL is binary."""
    binary, found, after = False, 0, 0
    before: deque[tuple[int, str]] = deque(maxlen=request.context)
    with _open(path) as raw, _decoded(raw) as file:
        if file.encoding != "utf-16" and not _may_have(raw, sought):
            return
        for number, offset, text in _pieces(file):
            if "\0" in text:
                binary = True
                break
            match = None if number == found else expression.search(text.removesuffix("\n").removesuffix("\r"))
            if match:
                if not found:
                    yield {"type": "begin", "data": {"path": _raw(path)}}
                yield from (_said("context", path, line, piece) for line, piece in before if line != number)
                yield {"type": "match"} if request.files else _match(path, number, offset, text, match.start())
                before.clear()
                found, after = number, request.context
            elif number == found or offset:
                continue
            elif after:
                yield _said("context", path, number, text)
                after -= 1
            else:
                before.append((number, text))
    if found or binary:
        yield {"type": "end", "data": {"path": _raw(path), "binary_offset": 0 if binary else None}}


def _open(path: str) -> BufferedReader:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _decoded(file: BufferedReader) -> TextIOWrapper:
    """The file's text: UTF-16 if it says so, else UTF-8; bytes that are no text become lone surrogates."""
    start = file.peek(3)[:3]
    encoding = "utf-8-sig" if start == b"\xef\xbb\xbf" else "utf-8"
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else encoding
    return TextIOWrapper(file, encoding=encoding, errors="surrogateescape", newline="\n")


def _may_have(file: BufferedReader, sought: Sought) -> bool:
    """Whether a file is worth being read line by line: to look through a small one at once is fast."""
    if not sought.data or os.fstat(file.fileno()).st_size > _AT_ONCE:
        return True
    found = sought.within(file.read())
    file.seek(0)
    return found


def _pieces(file: TextIOWrapper) -> Iterator[tuple[int, int, str]]:
    """Lines, long ones in pieces: number, bytes of the line before the piece, text."""
    number, offset = 1, 0
    while text := file.readline(_LINE):
        yield number, offset, text
        ended = text.endswith("\n")
        number += ended
        offset = 0 if ended else offset + len(text.encode("utf-8", "surrogateescape"))


def _match(path: str, number: int, offset: int, text: str, start: int) -> Mapping[str, object]:
    """As ripgrep says it; `offset` (bytes before a piece of a long line) is an addition of ours."""
    before = len(text[:start].encode("utf-8", "surrogateescape"))
    return _said("match", path, number, text, submatches=[{"start": before}], offset=offset)


def _said(kind: str, path: str, number: int, text: str, **more: object) -> Mapping[str, object]:
    line = {"path": _raw(path), "lines": _raw(text), "line_number": number}
    return {"type": kind, "data": {**line, "submatches": [], **more}}


def _raw(text: str) -> dict[str, str]:
    raw = text.encode("utf-8", "surrogateescape")
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(raw).decode()}


def run(request: Request) -> int:
    """Answers a request; returns the exit code."""
    expression = None
    if request.pattern is not None:
        pattern = re.escape(request.pattern) if request.literal else request.pattern
        try:
            expression = re.compile(pattern, re.IGNORECASE if request.ignore_case else 0)
        except (re.error, OverflowError, RecursionError) as error:
            sys.stderr.write(f"regex parse error: {error}\n")
            return 2
    names = [matcher(name) for name in request.names]
    sought = sought_in(request.pattern or "", literal=request.literal, ignore_case=request.ignore_case)
    for path in walk(request):
        if names and path != request.target and not any(n.fullmatch(path.rpartition("/")[2]) for n in names):
            continue
        if expression is None:
            sys.stdout.buffer.write(os.fsencode(path) + b"\0")
        else:
            _say(path, expression, request, Sought() if path == request.target else sought)
    return 0


def _say(path: str, expression: re.Pattern[str], request: Request, sought: Sought) -> None:
    try:
        for message in search(path, expression, request, sought):
            sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    except OSError as error:
        complain(path, error)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)  # folders are walked by recursion, and a path may have 2,000 of them
    sys.exit(run(Request(**json.loads(sys.argv[1]))))
