"""Rules: which calls are allowed, asked about or denied, as `--allow`, `--deny` and the configuration write them.

`tool` is every call of a tool; `tool(pattern)` those whose subject matches: a shell command, or a path relative to the
workspace. A pattern without `*` is exact; `\\*` is an asterisk itself. What follows from a match, `policy` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from .guard import EXACT, never_covered, program
from .shell import ShellLine, SimpleCommand, split

WILD = "\ue000"
"""What stands in a parsed pattern for a wildcard."""
_RULE = re.compile(r"([A-Za-z0-9_-]+)(?:\((.*)\))?", re.DOTALL)
_ALSO = {"write_file": frozenset({"edit_file"})}
"""Tools that a rule covers besides the one that it names."""
_ALSO_BY_PATH = {**_ALSO, "read_file": frozenset({"grep", "glob", "ls"})}
"""The same for a rule with a path."""
_ROUGH = re.compile(r"[;&|()`\n{}<>$\"'\\!]+")
_SKIPPED = re.compile(r"(?:if|then|elif|else|while|until|do|time|in|[A-Za-z_]\w*=.*)\Z", re.DOTALL)
_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. Make it with `parse_rule`."""

    text: str
    """As it was written."""
    tool: str
    pattern: str | None
    """With `WILD` for each wildcard; None for every call."""

    @property
    def exact(self) -> bool:
        """It names one subject, letter by letter."""
        return self.pattern is not None and WILD not in self.pattern

    def speaks_of(self, tool: str) -> bool:
        """Whether it is about calls of `tool`."""
        also = _ALSO if self.pattern is None else _ALSO_BY_PATH
        return tool == self.tool or tool in also.get(self.tool, ())


def parse_rule(text: str) -> Rule:
    """Reads a rule. Raises `ConfigError`."""
    found = _RULE.fullmatch(text.strip())
    if not found or found[2] == "":
        raise ConfigError(f"{text!r} is no rule; a rule is `tool` or `tool(pattern)`, such as execute(git status)")
    pattern = found[2]
    if pattern is not None:
        pattern = re.sub(r"\\\*|\*", lambda match: "*" if match[0] == r"\*" else WILD, pattern)
        pattern = None if pattern == WILD else pattern
    return Rule(text=text.strip(), tool=found[1], pattern=pattern)


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Reads several rules. Raises `ConfigError`."""
    return tuple(map(parse_rule, texts))


def rule_text(tool: str, subject: str | None) -> str:
    """The rule that allows exactly this subject."""
    return tool if subject is None else f"{tool}({_escaped(subject)})"


def _escaped(subject: str) -> str:
    return subject.replace("*", r"\*")


def path_matches(rule: Rule, path: str, *, broad: bool = False) -> bool:
    """Whether a rule takes a path: relative to the workspace, or absolute outside it.

    `broad` lets `**` at the beginning also stand for the folders above a path outside the workspace.
    """
    if rule.pattern is None:
        return True
    pattern = rule.pattern.removeprefix("./")
    if path.startswith("/") and not pattern.startswith("/") and not (broad and pattern.startswith(WILD * 2)):
        return False
    body = re.escape(pattern + WILD * 2 if pattern.endswith("/") else pattern)
    body = body.replace(f"{WILD}{WILD}/", "(?:.*/)?").replace(WILD * 2, ".*").replace(WILD, "[^/]*")
    return re.fullmatch(body, path, re.DOTALL) is not None


def line_matches(rule: Rule, line: str) -> bool:
    """Whether a rule allows a whole shell line as it is written: every line, or exactly this one."""
    return rule.pattern is None or (rule.exact and rule.pattern.strip() == line.strip())


def command_matches(rule: Rule, command: SimpleCommand) -> bool | str:
    """Whether a rule allows a simple command; a text says why not, although it matches."""
    loose = _match(_words(rule), command.words)
    if loose is None:
        return False
    return not any(loose) or never_covered(command.words, loose) or True


def denied(rule: Rule, line: str, parsed: ShellLine) -> bool:
    """Whether a rule that denies or asks takes anything in a line.

    Looks also behind wrappers (`sudo`, `sh -c`) and, roughly, into what was not understood; who wants to hide a command
    from it can: it guards against mistakes, the sandbox against intent.
    """
    if line_matches(rule, line):
        return True
    pattern = _words(rule)
    if not pattern:
        return False
    short = "/" not in pattern[0]
    for words in _candidates(line, parsed, _DEPTH):
        named = (program(words[0]) if program(words[0]) == pattern[0] else words[0].rpartition("/")[2], *words[1:])
        if _match(pattern, named if short else words) is not None:
            return True
    return False


def _words(rule: Rule) -> tuple[str, ...]:
    """The words of a rule about commands; none where it is no simple command."""
    pattern = re.sub(f"[: ]{WILD}$", f" {WILD}", rule.pattern or "")
    parsed = split(pattern, known=WILD)
    return parsed.commands[0].words if len(parsed.commands) == 1 and not parsed.doubt else ()


def _match(pattern: Sequence[str], words: Sequence[str]) -> list[bool] | None:
    """For each word whether a wildcard had a part in matching it, or None if the words do not match.

    A wildcard within a word stays within it; alone it is one word, and at the end any number of words.
    """
    if not pattern:
        return None
    open_ended = pattern[-1] == WILD and len(pattern) > 1
    fixed = pattern[:-1] if open_ended else pattern
    if len(words) < len(fixed) or (len(words) > len(fixed) and not open_ended):
        return None
    for expected, word in zip(fixed, words, strict=False):
        if not re.fullmatch(re.escape(expected).replace(WILD, ".*"), word, re.DOTALL):
            return None
    return [WILD in expected for expected in fixed] + [True] * (len(words) - len(fixed))


def _candidates(line: str, parsed: ShellLine, depth: int) -> Iterator[Sequence[str]]:
    """Everything in a line that may be a command."""
    for command in parsed.commands:
        yield command.words
        if program(command.words[0]) in EXACT and depth:
            yield from (command.words[at:] for at in range(1, len(command.words)))
            for word in command.words[1:]:
                if any(c in word for c in " ;&|\n") and word != line:
                    yield from _candidates(word, split(word), depth - 1)
    if parsed.doubt:
        for piece in _ROUGH.split(line):
            words = piece.split()
            while words and _SKIPPED.match(words[0]):
                words = words[1:]
            yield from (words[at:] for at in range(len(words)) if at == 0 or program(words[0]) in EXACT)
