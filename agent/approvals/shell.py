"""Splitting a shell line into its simple commands and redirections, so that each can be held against the rules.

The structure comes from the grammar; then every byte is accounted for: it belongs to a word, which is read strictly, to
an operator that is known, or to a gap that is blank. Whatever else can run something, write, or change what a word
means is a `doubt`, and a line with a doubt is never allowed piece by piece. Nothing is expanded or executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from .grammar import below, parse
from .words import Doubt, computed, decode, has_pattern, names

if TYPE_CHECKING:
    from tree_sitter import Node

RESERVED = names("! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until while")
DEVICES = names("/dev/null /dev/stdout /dev/stderr")
"""What may be redirected to or from without a file being touched."""
_STRUCTURE = names(
    """program list pipeline redirected_statement negated_command subshell compound_statement if_statement elif_clause
    else_clause while_statement do_group"""
)
"""Parts of the grammar that are understood; of all others only `command` and `file_redirect` are, and comments."""
_OPERATORS = names("&& || | |& ; &") | {"\n"}
_OPENS = names("( { ! if elif else then while until do")
"""A command follows them."""
_CLOSES = names(") } fi done")
"""No word follows them."""
_WRITES = names("> >> >| &> &>>")
_DUPLICATES = names(">& <&")
_SAID = {
    "for_statement": "a loop over words",
    "c_style_for_statement": "a loop that counts",
    "case_statement": "the shell's word `case`",
    "function_definition": "a function",
    "variable_assignment": "a variable set for a command",
    "variable_assignments": "variables that are set",
    "declaration_command": "variables that are declared",
    "unset_command": "variables that are unset",
    "test_command": "a test in brackets",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
}
"""What a part of the grammar that is not understood is called."""
_BLANK = re.compile(r"(?:[ \t\n]+(?:\\\n)*)*")
_JOINED = re.compile(r"(?:\\\n)*")
_DESCRIPTOR = re.compile(r"[0-9]{1,2}", re.ASCII)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[.*\])?\+?=", re.DOTALL)

Kind = Literal["word", "operator", "open", "close", "redirect", "comment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    """A program and its arguments."""

    words: tuple[str, ...]
    """Without quotes; what the shell would expand as `words.ACTIVE` has it."""
    text: str
    """As it was written, without redirections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """A file that the shell opens for a command."""

    kind: Literal["read", "write"]
    target: str
    """The path, without quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLine:
    """What a line consists of."""

    commands: tuple[SimpleCommand, ...]
    """As far as they were understood."""
    redirections: tuple[Redirection, ...] = ()
    """Those that touch a file, as far as they were understood."""
    doubt: str = ""
    """What of the line is not understood, for a person; empty if all is."""


@lru_cache(maxsize=512)
def split(line: str, *, known: str = "") -> ShellLine:
    """What a line consists of; `known` are characters of private use that may stand in it."""
    reader = _Reader(line.encode("utf-8", "replace"))
    doubt = ""
    try:
        reader.read(parse(line, known=known))
    except Doubt as found:
        doubt = str(found)
    return ShellLine(commands=tuple(reader.commands), redirections=tuple(reader.redirections), doubt=doubt)


@dataclass(frozen=True, slots=True)
class _Atom:
    """A stretch of the line that the grammar took as one thing. Positions are bytes."""

    kind: Kind
    start: int
    end: int


class _Reader:
    """Goes through the atoms of a line and makes commands of them."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self.commands: list[SimpleCommand] = []
        self.redirections: list[Redirection] = []
        self._words: list[tuple[int, int]] = []
        self._redirect: tuple[str, str] | None = None
        """Descriptor and operator of a redirection that waits for its word."""
        self._redirected = False
        """The command that is being read has a redirection."""
        self._closed = False
        """A group has ended: only redirections and operators may follow."""

    def read(self, root: Node) -> None:
        """Reads the whole line. Raises `Doubt`."""
        if root.has_error:
            raise Doubt("something that cannot be read as a command")
        at = 0
        atoms = list(_merged(_atoms(root), self._source))
        for atom in atoms:
            self._check_gap(at, atom)
            self._take(atom)
            at = atom.end
        self._check_gap(at, _Atom("comment", len(self._source), len(self._source)))
        self._finish("")

    def _text(self, start: int, end: int) -> str:
        return self._source[start:end].decode("utf-8", "replace")

    def _check_gap(self, start: int, atom: _Atom) -> None:
        """What lies between two atoms must be blank; a line break in it ends a command."""
        gap = self._text(start, atom.start)
        if not _BLANK.fullmatch(gap):
            raise Doubt("something between two words that is not understood")
        if "\n" in gap.replace("\\\n", ""):
            self._finish("\n")

    def _take(self, atom: _Atom) -> None:
        text = self._text(atom.start, atom.end)
        if self._redirect and atom.kind != "word":
            raise Doubt("a redirection to nowhere")
        match atom.kind:
            case "word" if self._redirect:
                self._redirect_to(text)
            case "word":
                if self._closed:
                    raise Doubt("a word after a group")
                self._words.append((atom.start, atom.end))
            case "operator":
                self._finish(text)
            case "open":
                self._open(text, atom)
            case "close":
                self._close(text)
            case "redirect":
                self._begin_redirection(text, atom)
            case "comment":
                if atom.start and self._text(atom.start - 1, atom.start) not in " \t\n;":
                    raise Doubt("`#` where it is not clear what it means")

    def _open(self, text: str, atom: _Atom) -> None:
        if self._words or self._closed or self._redirected:
            raise Doubt(f"`{text}` within a command")
        following = self._text(atom.end, atom.end + 1)
        if text != "(" and following not in (" ", "\t", "\n"):
            raise Doubt(f"`{text}` at the beginning of a word")
        if text == "(" and "(" in (following, self._text(atom.start - 1, atom.start) if atom.start else ""):
            raise Doubt("`((`")

    def _close(self, text: str) -> None:
        if text == ")":
            self._finish("")
        elif self._words or self._closed or self._redirected:
            raise Doubt(f"`{text}` within a command")
        self._closed = True

    def _begin_redirection(self, text: str, atom: _Atom) -> None:
        operator = text.lstrip("0123456789")
        number = text[: len(text) - len(operator)]
        before = self._text(atom.start - 1, atom.start) if atom.start else "\n"
        if operator not in _WRITES | _DUPLICATES | {"<"} or (number and not _DESCRIPTOR.fullmatch(number)):
            raise Doubt("a redirection that is not understood")
        if number and before not in " \t\n;&|()":
            raise Doubt("a number before a redirection")
        self._redirect, self._redirected = (number, operator), True

    def _redirect_to(self, raw: str) -> None:
        assert self._redirect
        (number, operator), self._redirect = self._redirect, None
        target = decode(raw)
        if not target or computed(target):
            raise Doubt("a redirection to a place that the shell computes")
        if operator in _DUPLICATES and _DESCRIPTOR.fullmatch(target) and raw == target:
            return
        if operator in _DUPLICATES and (operator == "<&" or number or target.endswith("-")):
            raise Doubt("a redirection that is not understood")
        if target not in DEVICES:
            kind = "read" if operator == "<" else "write"
            self.redirections.append(Redirection(kind=kind, target=target))

    def _finish(self, operator: str) -> None:
        """Ends a command, or what stands in the place of one."""
        if self._redirect:
            raise Doubt("a redirection to nowhere")
        if self._words:
            self.commands.append(self._command())
        elif self._redirected and not self._closed:
            raise Doubt("a redirection without a command")
        elif not self._closed and operator not in {"", "\n"}:
            raise Doubt(f"`{operator}` where a command is missing")
        self._words, self._redirected, self._closed = [], False, False

    def _command(self) -> SimpleCommand:
        raw = [self._text(*place) for place in self._words]
        first = raw[0].replace("\\\n", "")
        words = tuple(map(decode, raw))
        if first in RESERVED:
            raise Doubt(f"the shell's word `{first}`")
        if _ASSIGNMENT.match(first):
            raise Doubt("a variable set for a command")
        if has_pattern(words[0]):
            raise Doubt("a program named by a pattern")
        return SimpleCommand(words=words, text=" ".join(raw))


def _atoms(root: Node) -> Iterator[_Atom]:
    """The atoms of a tree, in order. Raises `Doubt` at the first part that is not understood."""
    skipped = -1
    for node, _ in below(root):
        if node.start_byte < skipped:
            continue  # within a word
        if node.type in _STRUCTURE or node.type in ("command", "file_redirect"):
            continue
        atom = _atom(node)
        if atom is not None:
            skipped = atom.end
            yield atom


def _atom(node: Node) -> _Atom | None:
    parent = node.parent.type if node.parent else ""
    start, end = node.start_byte, node.end_byte
    if node.type == "file_descriptor":
        following = node.next_sibling
        if following is None or following.start_byte != end:
            raise Doubt("a number before a redirection")
        return _Atom("redirect", start, following.end_byte)
    if node.type == "comment":
        return _Atom("comment", start, end)
    if node.type in _SAID:
        raise Doubt(_SAID[node.type])
    if parent in ("command", "file_redirect") and node.is_named:
        return _Atom("word", start, end)
    if parent == "file_redirect":
        return _Atom("redirect", start, end)
    if parent == "command" and node.type in ("$", "==", "=~"):
        return _Atom("word", start, end)
    kinds: tuple[tuple[Kind, frozenset[str]], ...] = (("operator", _OPERATORS), ("open", _OPENS), ("close", _CLOSES))
    for kind, texts in kinds:
        if not node.is_named and node.type in texts and parent in _STRUCTURE:
            return _Atom(kind, start, end)
    raise Doubt(f"`{node.type}`" if not node.is_named else f"a part of the shell's grammar ({node.type})")


def _merged(atoms: Iterator[_Atom], source: bytes) -> Iterator[_Atom]:
    """Words with nothing between them, or only a line break that does not count, are one."""
    held: _Atom | None = None
    for atom in atoms:
        if held and held.kind == atom.kind == "word":
            gap = source[held.end : atom.start].decode("utf-8", "replace")
            if _JOINED.fullmatch(gap):
                held = _Atom("word", held.start, atom.end)
                continue
        if held:
            yield held
        held = atom
    if held:
        yield held
