"""Commands that only read: what may run without being asked about where a sandbox keeps it from writing and talking.

The list is one wall, the sandbox the other. It errs on the side of asking, and is no list of everything that reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .guard import NOTHING, PRINTF_STORES, Options, is_dangerous, options
from .shell import ShellLine
from .words import ACTIVE, names, opens_with_pattern

Inside = Callable[[str], bool]
"""Whether a path lies in the workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How a program reads."""

    never: Options = NOTHING
    """Options with which it does more."""
    operands: int | None = None
    """How many arguments that are no options it may have; None: any number."""


_ANY = Reader()
READERS: dict[str, Reader] = {
    **dict.fromkeys(
        names(
            """basename cat cksum cmp comm cut dirname du echo egrep expand false fgrep fmt fold grep head join ls
            md5sum nl nproc numfmt od paste pr pwd readlink realpath rev seq sha1sum sha224sum sha256sum sha384sum
            sha512sum stat strings sum tac tr true tsort type unexpand uname wc which whoami arch groups id df"""
        ),
        _ANY,
    ),
    "base64": Reader(operands=1),
    "column": Reader(),
    "diff": Reader(never=options(letters="l", long="paginate")),
    "file": Reader(never=options(letters="CzZ", long="compile uncompress uncompress-noreport")),
    "find": Reader(never=options("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from")),
    "hexdump": Reader(),
    "hostname": Reader(operands=0, never=options(letters="bF", long="file boot")),
    "printf": Reader(never=options(letters="v", shape=PRINTF_STORES)),
    "rg": Reader(never=options(letters="z", long="pre hostname-bin search-zip")),
    "sleep": Reader(operands=1),
    "sort": Reader(never=options(letters="oT", long="output compress-program temporary-directory")),
    "tail": Reader(never=options(letters="fF", long="follow retry")),
    "test": Reader(never=options(letters="vR")),
    "tree": Reader(never=options(letters="oR")),
    "uniq": Reader(operands=1),
}
_DATE = options(letters="s", long="set")
_GIT_OUT = options(letters="O", long="ext-diff textconv filters output open-files-in-pager show-signature", shape="%G")
"""With a signature to check, git runs another program."""
_GIT: dict[str, Reader] = {
    **dict.fromkeys(
        names(
            """blame cat-file check-ignore count-objects describe diff diff-tree for-each-ref grep log ls-files ls-tree
            merge-base name-rev rev-list rev-parse shortlog show show-ref status version whatchanged"""
        ),
        Reader(never=_GIT_OUT),
    ),
    "branch": Reader(
        operands=0,
        never=options(
            letters="cCdDmMftu",
            long="copy delete move force track set-upstream-to unset-upstream edit-description create-reflog",
        ),
    ),
    "remote": Reader(operands=0),
    "tag": Reader(
        operands=0,
        never=options(letters="adfmFsuev", long="annotate sign delete force message file local-user edit verify"),
    ),
}
"""Sub-commands of git, without anything before them but `--no-pager`."""
_GIT_FIRST = {"stash": names("list show"), "worktree": names("list"), "reflog": names("show")}
"""Sub-commands whose next word makes them read."""
_VERSIONED = names(
    """bash cargo clang cmake g++ gcc git go java javac make node npm perl php python python3 ruby rustc uv rg"""
)
"""Programs that may be asked for their version."""
_SED = re.compile(r"(?:(?:\d+|\$)(?:,(?:\d+|\$))?p;?\s*)+")
"""What `sed -n` may do: print lines by their numbers."""
_OUTSIDE = re.compile(r"(?:^|/)\.\.(?:/|$)")


def only_reads(line: ShellLine, inside: Inside) -> bool:
    """Whether every command of a line only reads, and nothing outside the workspace is named."""
    if line.doubt or line.redirections or not line.commands:
        return False
    commands = [command.words for command in line.commands]
    moves = any(words[0] == "cd" for words in commands)
    return all(_reads(words) and _stays(words, inside, moves=moves) for words in commands)


def _reads(words: Sequence[str]) -> bool:
    name, *rest = words
    if name in _VERSIONED and rest in (["--version"], ["-V"]):
        return True
    match name:
        case "git":
            return _git_reads(rest)
        case "sed":
            return len(rest) > 1 and rest[0] == "-n" and bool(_SED.fullmatch(rest[1])) and _no_options(rest[2:])
        case "cd":
            return len(rest) == 1 and _no_options(rest)
        case "date":
            return all(word.startswith(("+", "-")) for word in rest) and not any(is_dangerous(w, _DATE) for w in rest)
        case "command":
            return len(rest) > 1 and rest[0] in ("-v", "-V")
        case _:
            return name in READERS and _fits(READERS[name], rest)


def _git_reads(words: Sequence[str]) -> bool:
    words = words[1:] if words[:1] == ["--no-pager"] else words
    if not words:
        return False
    command, *rest = words
    if command in _GIT_FIRST:
        return bool(rest) and rest[0] in _GIT_FIRST[command] and _fits(Reader(never=_GIT_OUT), rest[1:])
    return command in _GIT and _fits(_GIT[command], rest)


def _no_options(words: Sequence[str]) -> bool:
    return not any(word.startswith("-") or opens_with_pattern(word) for word in words)


def _fits(reader: Reader, words: Sequence[str]) -> bool:
    """Whether a program so called only reads. A pattern may stand for an option: only where none is dangerous."""
    if reader.never != NOTHING and any(map(opens_with_pattern, words)):
        return False
    if any(is_dangerous(word, reader.never) for word in words):
        return False
    operands = [word for word in words if not word.startswith("-")]
    return reader.operands is None or len(operands) <= reader.operands


def _stays(words: Sequence[str], inside: Inside, *, moves: bool) -> bool:
    """Whether no argument may be a path that leads out of the workspace."""
    for word in words[1:]:
        for text in (word, word.partition("=")[2], word[2:] if word.startswith("-") else ""):
            if text.startswith(ACTIVE["~"]) or (moves and _OUTSIDE.search(text)):
                return False
            if ("/" in text or ".." in text or not text.startswith("-")) and text and not inside(text):
                return False
    return True
