"""Splitting a shell line into its simple commands, so that each can be held against the rules.

Understands quotes, the operators between commands and harmless redirections. Whatever else can run something, write,
or change what a word means is a `doubt`, and a line with a doubt is never allowed piece by piece. Nothing is expanded
or executed. A real parser can come behind `split` without a change elsewhere.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


_RESERVED = names("! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until while")
_END = r"(?=[ \t\n;&|]|\Z)"
_HARMLESS = re.compile(rf"(?:[0-9]*>&[0-9]+|(?:[0-9]*|&)>>?[ \t]*/dev/null|[0-9]*<[ \t]*/dev/null){_END}")
"""Redirections that touch no file: to another stream, to nowhere, from nowhere."""
_OPERATOR = re.compile(r"&&|\|\||\|&|;(?![;&])|\||&|\n")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[.*\])?\+?=")
_EXPANDS = re.compile(r"\$[\w{(\[@*#?$!'\"-]", re.ASCII)
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
ACTIVE = {"*": "\ue001", "?": "\ue002", "[": "\ue003", "~": "\ue004"}
"""What stands in a word for a character that the shell expands, so that `rm '*'` and `rm *` stay two things."""

_PATTERNS = frozenset(ACTIVE[c] for c in "*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    """A program and its arguments."""

    words: tuple[str, ...]
    """Without quotes; characters that the shell would expand as `ACTIVE` has them."""
    text: str
    """As it was written, without redirections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLine:
    """What a line consists of."""

    commands: tuple[SimpleCommand, ...]
    """As far as they were understood."""
    doubt: str = ""
    """What of the line is not understood, for a person; empty if all is."""


def opens_with_pattern(word: str) -> bool:
    """The shell may make any word of it, an option too."""
    return word[:1] in _PATTERNS


def written(word: str) -> str:
    """A word as a person wrote it, but for its quotes."""
    return word.translate({ord(sign): c for c, sign in ACTIVE.items()})


class _Doubt(Exception):
    """The line holds something that is not understood; the text says what."""


def split(line: str, *, known: str = "") -> ShellLine:
    """The simple commands of a line; `known` are characters of private use that may stand in it."""
    reader = _Reader(text=line, known=f" \t\n{known}")
    try:
        reader.read()
    except _Doubt as doubt:
        return ShellLine(commands=tuple(reader.commands), doubt=str(doubt))
    return ShellLine(commands=tuple(reader.commands))


@dataclass(slots=True, kw_only=True)
class _Reader:
    text: str
    known: str
    at: int = 0
    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    words: list[str] = field(default_factory=list[str])
    raw: list[str] = field(default_factory=list[str])
    pending: bool = False
    """The last operator wants a command after it."""

    def read(self) -> None:
        if any(c not in self.known and unicodedata.category(c) in _UNSEEN for c in self.text):
            raise _Doubt("a character that cannot be seen")
        while self.at < len(self.text):
            self._step()
        self._finish("")
        if self.pending:
            raise _Doubt("an end where a command is missing")

    def _step(self) -> None:
        """Reads what begins where no word has begun."""
        text, at = self.text, self.at
        if text[at] in " \t":
            self.at += 1
        elif text.startswith("\\\n", at):
            self.at += 2
        elif text[at] == "#":
            end = text.find("\n", at)
            self.at = end if end >= 0 else len(text)
        elif redirection := _HARMLESS.match(text, at):
            self.at = redirection.end()
        elif operator := _OPERATOR.match(text, at):
            self.at = operator.end()
            self._finish(operator[0])
        else:
            word = "".join(iter(self._piece, None))
            self.words.append(word)
            self.raw.append(text[at : self.at])

    def _finish(self, operator: str) -> None:
        """Ends a command."""
        if self.words:
            if self.words[0] in _RESERVED:
                raise _Doubt(f"the shell's word `{self.words[0]}`")
            if _ASSIGNMENT.match(self.words[0]):
                raise _Doubt("a variable set for a command")
            if any(sign in self.words[0] for sign in _PATTERNS):
                raise _Doubt("a program named by a pattern")
            self.commands.append(SimpleCommand(words=tuple(self.words), text=" ".join(self.raw)))
            self.words, self.raw = [], []
            self.pending = operator in {"&&", "||", "|", "|&"}
        elif operator not in {"", "\n"}:
            raise _Doubt(f"`{operator}` where a command is missing")

    def _piece(self) -> str | None:
        """The next piece of a word, or None where the word ends."""
        text, at = self.text, self.at
        c = text[at : at + 1]
        match c:
            case "" | " " | "\t" | "\n":
                return None
            case ";" | "&" | "|":
                if _OPERATOR.match(text, at):
                    return None
                raise _Doubt(f"`{text[at : at + 2]}`")
            case "<" | ">":
                if _HARMLESS.match(text, at):
                    return None
                raise _Doubt("a redirection or a here-document")
            case "'":
                return self._single_quoted()
            case '"':
                self.at += 1
                return "".join(iter(self._quoted_piece, None))
            case "\\":
                return self._escaped()
            case "{" if text.startswith("{}", at):
                self.at += 2
                return "{}"
            case "(" | ")" | "{" | "}":
                raise _Doubt(f"`{c}` (a group, a function or an expansion)")
            case _:
                self._check_expansion()
                self.at += 1
                return ACTIVE.get(c, c)

    def _single_quoted(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise _Doubt("a quote that is not closed")
        inner, self.at = self.text[self.at + 1 : end], end + 1
        return inner

    def _quoted_piece(self) -> str | None:
        """The next piece within double quotes, or None at their end."""
        c = self.text[self.at : self.at + 1]
        if not c:
            raise _Doubt("a quote that is not closed")
        if c == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            return self._escaped() if following in {"$", "`", '"', "\\", "\n"} else self._literal("\\")
        if c == '"':
            self.at += 1
            return None
        if self.text.startswith('$"', self.at):  # a dollar before the end is one
            return self._literal("$")
        self._check_expansion()
        return self._literal(c)

    def _literal(self, c: str) -> str:
        self.at += 1
        return c

    def _escaped(self) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        if not following:
            raise _Doubt("a backslash at the end")
        self.at += 2
        return "" if following == "\n" else following

    def _check_expansion(self) -> None:
        if self.text[self.at] == "`":
            raise _Doubt("a command in backticks")
        if _EXPANDS.match(self.text, self.at):
            raise _Doubt("an expansion (`$…`)")
