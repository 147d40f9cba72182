"""The grammar of bash, from tree-sitter: loaded with the first line, bounded in time, length and depth.

It finds the structure of a line. It is more lenient than bash in places, and what it says of words is not taken on
trust: `shell` reads every byte of a line again.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from .words import Doubt

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 20_000
"""Bytes of the longest line that is looked into."""
_SECONDS = 0.2
"""How long that may take; ordinary lines need some microseconds."""
_DEPTH = 60
"""How deep things may be nested: deeper ones are written to confuse."""
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})


def unseen(text: str, known: str) -> bool:
    """Whether a text holds characters that cannot be seen, but for blanks, line breaks and `known`."""
    return any(c not in " \t\n" and c not in known and unicodedata.category(c) in _UNSEEN for c in text)


def parse(line: str, *, known: str = "") -> Node:
    """The tree of a line, errors included. Raises `Doubt` for one that is not looked into at all."""
    if unseen(line, known):
        raise Doubt("a character that cannot be seen")
    source = line.encode()
    if len(source) > LONGEST:
        raise Doubt(f"more than {LONGEST:,} bytes")
    end = time.monotonic() + _SECONDS
    parser = _parser()
    try:
        tree = parser.parse(lambda at, _: source[at:], progress_callback=lambda _at, _error: time.monotonic() > end)
    except ValueError as error:  # what it raises when it is stopped
        parser.reset()
        raise Doubt("a structure that takes too long to read") from error
    return tree.root_node


def below(node: Node) -> Iterator[tuple[Node, int]]:
    """A node and all below it, in the order of the line, with their depth. Raises `Doubt` where it becomes too deep."""
    waiting = [(node, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEPTH:
            raise Doubt("too many things within each other")
        yield node, depth
        waiting += [(child, depth + 1) for child in reversed(node.children)]


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
