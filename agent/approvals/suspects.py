"""Everything in a shell line that may be a command: for rules that deny, and for what is asked about in every mode.

Where `shell.split` gives up, this goes on: into substitutions, loops, functions, and what wrappers (`sudo`, `sh -c`)
are given to run. What the shell would compute is `UNKNOWN`. It finds what was written without a thought, and much of
what was hidden on purpose; against intent there is the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from .grammar import below, parse
from .guard import EXACT, RUNNERS, program
from .words import UNKNOWN, Doubt, decode_loosely, names, written

if TYPE_CHECKING:
    from tree_sitter import Node

_EXPANSIONS = names(
    "simple_expansion expansion command_substitution process_substitution arithmetic_expansion brace_expression"
)
_SHELLS = names("sh bash dash zsh ksh mksh ash fish csh tcsh busybox")
_EVALUATES = names("printf test [ [[ wait")
"""What evaluates the index of a variable that it is given by name."""
_PLAIN = names("declaration_command unset_command test_command")
"""Commands whose words the grammar does not tell apart."""
_ROUGH = re.compile(r"[;&|()`\n{}<>$\"'\\!]+")
_SKIPPED = re.compile(r"(?:if|then|elif|else|while|until|do|time|in|[A-Za-z_]\w*=.*)\Z", re.DOTALL)
_CODE = re.compile(r"[^\w./:@%+,=-]")
"""What an argument holds that may be a script."""
_RUNS = names("-exec -execdir -ok -okdir")
_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """What may be a command."""

    words: tuple[str, ...]
    certain: bool = True
    """It is one; else it only looks like one, as in the code that an interpreter is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspects:
    """What was found in a line."""

    commands: tuple[Suspect, ...]
    writes: tuple[str, ...] = ()
    """Targets of redirections that write."""
    opaque: bool = False
    """There may be more: part of the line could not be read, or its commands come from elsewhere."""


@lru_cache(maxsize=512)
def suspects(line: str) -> Suspects:
    """Everything in a line that may be a command."""
    found = _look(line, _DEPTH)
    joined = line.replace("\\\n", "")  # the grammar takes a line break that does not count for a blank
    if joined == line:
        return found
    more = _look(joined, _DEPTH)
    return Suspects(
        commands=tuple(dict.fromkeys((*found.commands, *more.commands))),
        writes=tuple(dict.fromkeys((*found.writes, *more.writes))),
        opaque=found.opaque or more.opaque,
    )


def behind(words: Sequence[str], depth: int = _DEPTH) -> Iterator[Suspect]:
    """A command, and what it would run in turn as far as its words tell."""
    yield Suspect(words=tuple(words))
    name = written(program(words[0]))
    if not depth:
        return
    if name in EXACT:
        for at in range(1, len(words)):
            yield Suspect(words=tuple(words[at:]))
    if name in ("find", "fd"):
        yield from (Suspect(words=tuple(words[at + 1 :])) for at in range(1, len(words) - 1) if _runs(words[at]))
    for word in words[1:]:
        if name in EXACT or name in RUNNERS or (name in _EVALUATES and re.search(r"\$\(|`", word)):
            yield from _within(word, depth - 1)


def _runs(word: str) -> bool:
    return word in _RUNS or word in ("-x", "-X", "--exec", "--exec-batch")


def _within(word: str, depth: int) -> Iterator[Suspect]:
    """What an argument that is a script would run."""
    for text in {word, word.partition("=")[2]}:
        if _CODE.search(text) and text.strip():
            found = _look(text, depth)
            yield from found.commands
            yield from (Suspect(words=tuple(words), certain=False) for words in _rough(text))


def _look(line: str, depth: int) -> Suspects:
    commands: list[Suspect] = []
    writes: list[str] = []
    opaque = False
    try:
        root = parse(line, known=UNKNOWN)
        opaque = root.has_error
        for words in _commands(root, writes):
            found = list(behind(words, depth))
            commands += found
            opaque = opaque or _reads_commands(words)
    except Doubt:
        opaque = True
    if opaque:
        commands += [Suspect(words=tuple(words)) for words in _rough(line)]
    return Suspects(commands=tuple(dict.fromkeys(commands)), writes=tuple(writes), opaque=opaque)


def _reads_commands(words: Sequence[str]) -> bool:
    """A shell that is given no script reads its commands from elsewhere."""
    return program(words[0]) in _SHELLS and all(word.startswith("-") and "c" not in word for word in words[1:])


def _commands(root: Node, writes: list[str]) -> Iterator[list[str]]:
    """The words of each command in a tree; targets of redirections go to `writes`. Raises `Doubt`."""
    last: list[str] | None = None
    for node, _ in below(root):
        if node.type == "command":
            if last:
                yield last
            last = _words([child for child in node.children if child.type not in ("file_redirect", "comment")])
        elif node.type in _PLAIN:
            yield [*_text(node).split()[:1], _text(node)]
        elif node.type == "file_redirect":
            target, *more = _words([child for child in node.children if _is_word(child)]) or [""]
            operator = next((child.type for child in node.children if not child.is_named), "")
            if target and operator not in ("<", "<&") and not (operator == ">&" and target.isdigit()):
                writes.append(target)
            if last is not None:
                last += more  # the grammar takes what follows a redirection for a part of it
            elif more:
                last = more
    if last:
        yield last


def _is_word(node: Node) -> bool:
    return node.is_named and node.type != "file_descriptor"


def _words(nodes: Sequence[Node]) -> list[str]:
    """The words that these nodes are; those with nothing between them are one."""
    spans: list[list[Node]] = []
    for node in nodes:
        if node.type in ("variable_assignment", "herestring_redirect"):
            continue
        if spans and spans[-1][-1].end_byte == node.start_byte:
            spans[-1].append(node)
        else:
            spans.append([node])
    return [word for span in spans if (word := "".join(map(_word, span)))]


def _word(node: Node) -> str:
    text = _text(node)
    source = text.encode("utf-8", "replace")

    def place(offset: int) -> int:
        return len(source[: offset - node.start_byte].decode("utf-8", "replace"))

    ends = {place(n.start_byte): place(n.end_byte) for n, _ in below(node) if n.type in _EXPANSIONS}
    return decode_loosely(text, ends)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _rough(text: str) -> Iterator[list[str]]:
    """What may be commands in a text that was not understood."""
    for piece in _ROUGH.split(text):
        words = piece.split()
        while words and _SKIPPED.match(words[0]):
            words = words[1:]
        yield from (words[at:] for at in range(len(words)) if at == 0 or program(words[0]) in EXACT)
