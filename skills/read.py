"""Reads the front matter of one SKILL.md: leniently, and never in silence.

Of the file only the front matter is read; the body is left to the model and its `read_file`. What cannot be understood
is not loaded, since a rule in it might be lost, and is reported with file, line and reason. No reason quotes the file:
a link may have led to something private.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from .skill import Level, Skill, SkillProblem

FILE = "SKILL.md"
MAX_FILE = 10 * 1024 * 1024
"""Bytes; the Agent Skills implementations agree on 10 MiB."""
MAX_HEAD = 64 * 1024
"""Bytes of front matter."""
MAX_DESCRIPTION = 1_024
"""Characters, from the Agent Skills format."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
"""The format's rule for names; with at most 64 characters."""
_PROSE = re.compile(r"^(name|description|license|compatibility):[ \t]+([^\s|>].*(?:\n[ \t]+\S.*)*)$", re.MULTILINE)
"""The fields that are prose, with their continuation lines. `allowed-tools` and its kin are never guessed at."""
_WHOLE = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'', re.DOTALL)


class Broken(Exception):
    """The file is not what it should be; `line` counts from 1."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def read_skill(folder: Path, level: Level) -> tuple[Skill | None, tuple[SkillProblem, ...]]:
    """The skill in `folder`, or None, and what is wrong with it. Raises nothing."""
    path = folder / FILE
    try:
        head, notices = _head(path)
        fields = _fields(head)
        description = _description(head, fields)
    except Broken as error:
        return None, (SkillProblem(path=path, line=error.line, reason=error.reason),)
    except OSError as error:
        return None, (SkillProblem(path=path, line=None, reason=f"cannot be read ({error.strerror or error})"),)
    notices += _name_notices(folder.name, fields.get("name"))
    if len(description) > MAX_DESCRIPTION:
        notices += (f"the description has {len(description):,} characters; the first {MAX_DESCRIPTION:,} are used",)
        description = description[: MAX_DESCRIPTION - 1] + "…"
    skill = Skill(
        name=folder.name, description=description, path=path, folder=Path(os.path.realpath(folder)), level=level
    )
    return skill, tuple(SkillProblem(path=path, line=None, reason=n, loaded=True) for n in notices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file with front matter."""

    fields: dict[object, object]
    description: str
    """In one line, uncut."""
    body: str
    notices: tuple[str, ...]


def read_document(path: Path) -> Document:
    """A whole file with front matter, which must have a description. Raises `Broken` or `OSError`."""
    with _open(path) as file:
        head, notices = _decoded(_between_dashes(file))
        body = file.read(MAX_FILE).decode("utf-8", "replace")
    fields = _fields(head)
    return Document(fields=fields, description=_description(head, fields), body=body.strip(), notices=notices)


def one_line(text: str) -> str:
    """`text` in one line without control and direction characters, which could forge lines of a prompt or a screen."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _open(path: Path) -> BinaryIO:
    """Opens a regular file; a pipe or a device is refused, and never waited for."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise Broken("is not a regular file")
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    size = os.fstat(file.fileno()).st_size
    if size > MAX_FILE:
        file.close()
        raise Broken(f"has {size:,} bytes; {MAX_FILE:,} are the limit")
    return file


def _head(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text between the dashes, its line ends as newlines, and notices."""
    with _open(path) as file:
        return _decoded(_between_dashes(file))


def _decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    if b"\0" in data:
        raise Broken("is no UTF-8 text (it holds NUL bytes)", 1)
    text = data.replace(b"\r\n", b"\n").decode("utf-8", "replace")
    return text, ("is not valid UTF-8; other bytes are shown as �",) if "�" in text and not _is_utf8(data) else ()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _between_dashes(file: BinaryIO) -> bytes:
    first = file.readline(MAX_HEAD)
    if b"\0" in first:
        raise Broken("is no UTF-8 text (it holds NUL bytes)", 1)
    if first.removeprefix(b"\xef\xbb\xbf").rstrip() != b"---":
        raise Broken("does not begin with front matter (a line `---`)", 1)
    head = b""
    while line := file.readline(MAX_HEAD):
        if line.rstrip() == b"---":
            return head
        head += line
        if len(head) > MAX_HEAD:
            raise Broken(f"has front matter of more than {MAX_HEAD:,} bytes", 1)
    raise Broken("has front matter that no line `---` closes", 1)


def _fields(head: str) -> dict[object, object]:
    """The front matter as a mapping. Text that is no YAML is tried again with its prose fields in quotes."""
    try:
        return _mapping(head)
    except Broken:
        with suppress(Broken):
            return _mapping(_PROSE.sub(_quote, head))
        raise


def _mapping(head: str) -> dict[object, object]:
    import yaml  # late: a run without skills does not pay for it. The loader in C is 50 times faster, and as safe

    try:
        data: object = yaml.load(head, Loader=yaml.CSafeLoader) if yaml.__with_libyaml__ else yaml.safe_load(head)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else None
        raise Broken(f"has front matter that is no YAML ({_without_quotes(error.problem)})", line) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Broken(f"has front matter that is no YAML ({type(error).__name__})", 2) from error
    if not isinstance(data, dict):
        raise Broken("has front matter that holds no fields", 2)
    return cast(dict[object, object], data)


def _without_quotes(problem: str | None) -> str:
    """The parser's complaint without the pieces of the file in it."""
    return re.sub(r"'.*'", "'…'", problem or "not understood", flags=re.DOTALL)


def _quote(match: re.Match[str]) -> str:
    key, value = match[1], match[2].rstrip()
    if _WHOLE.fullmatch(value):
        return match[0]
    return f"{key}: '" + " ".join(value.split()).replace("'", "''") + "'"


def _description(head: str, fields: dict[object, object]) -> str:
    value = fields.get("description")
    found = re.search(r"^description\s*:", head, re.MULTILINE)
    line = head.count("\n", 0, found.start()) + 2 if found else head.count("\n") + 2
    if value is not None and not isinstance(value, str):
        raise Broken("has a description that is no text (put it in quotes)", line)
    if not value or not one_line(value):
        raise Broken("has no description", line)
    return one_line(value)


def _name_notices(folder: str, name: object) -> tuple[str, ...]:
    if name is None:
        return (f"has no name in its front matter; it is called {folder}, like its folder",)
    if name != folder:
        return (f"has another name in its front matter; it is called {folder}, like its folder",)
    if not _NAME.fullmatch(folder) or len(folder) > 64:
        return ("has a name that breaks the rule (a-z, 0-9 and single hyphens, at most 64 characters)",)
    return ()
