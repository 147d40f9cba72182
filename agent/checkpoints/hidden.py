"""Files that may have been hidden by an ignore file which has changed meanwhile.

What nobody saw before a command may have been there all the same: to take it away again could lose it for good. So this
rather says yes once too often.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..backends.patterns import ignore_rule
from ..git.objects import Item
from ..git.process import GitError
from ..git.shadow import Difference
from .states import Name, folders_of

IGNORE_FILE = b".gitignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What one ignore file that has changed may have hidden."""

    folder: bytes
    """Where it lies; empty at the top, else with a slash at its end."""
    patterns: tuple[re.Pattern[str], ...]
    all: bool = False
    """Its rules cannot be told: it may have hidden anything."""

    def match(self, name: Name) -> bool:
        if not name.startswith(self.folder):
            return False
        inner = name[len(self.folder) :]
        paths = [path.decode("utf-8", "surrogateescape") for path in (inner, *folders_of(inner))]
        return self.all or any(pattern.fullmatch(path) for pattern in self.patterns for path in paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What the ignore files that have changed may have hidden before."""

    rules: tuple[_Rules, ...]

    def may_have(self, name: Name) -> bool:
        """Whether a file may have been hidden."""
        return any(rules.match(name) for rules in self.rules)


def hidden_before(changes: Iterable[Difference], read: Callable[[Item], bytes], *, others: bool) -> Hidden:
    """What `changes` of ignore files may have brought to light; `others`: ignore files elsewhere have changed, too."""
    found = [_rules(one, read) for one in changes if one.name.rpartition(b"/")[2] == IGNORE_FILE]
    return Hidden(rules=(*found, *([_Rules(folder=b"", patterns=(), all=True)] if others else ())))


def _rules(one: Difference, read: Callable[[Item], bytes]) -> _Rules:
    folder = one.name.removesuffix(IGNORE_FILE)
    try:
        old, new = (read(item) if item else b"" for item in (one.before, one.after))
    except GitError:
        return _Rules(folder=folder, patterns=(), all=True)
    lines = old.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    bodies = [rule[2] for line in lines if (rule := ignore_rule(line)) and rule[0]]
    unclear = b"{" in old or b"!" in new  # braces mean something else to git, and `!` undoes rules of other files
    return _Rules(folder=folder, patterns=tuple(re.compile(body, re.DOTALL) for body in bodies), all=unclear)
