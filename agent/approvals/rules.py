"""Rules: which calls are allowed, asked about or denied, as `--allow`, `--deny` and the configuration write them.

`tool` is every call of a tool; `tool(pattern)` those whose subject matches: a shell command, or a path relative to the
workspace. A pattern without `*` is exact; `\\*` is an asterisk itself. What follows from a match, `policy` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigError
from .guard import never_covered, program
from .shell import SimpleCommand, split
from .suspects import suspects
from .words import ACTIVE, UNKNOWN, glob_regex, has_pattern

WILD = "\ue000"
"""What stands in a parsed pattern for a wildcard."""
_RULE = re.compile(r"([A-Za-z0-9_-]+)(?:\((.*)\))?", re.DOTALL)
_ALSO = {"write_file": frozenset({"edit_file"})}
"""Tools that a rule covers besides the one that it names."""
_ALSO_BY_PATH = {**_ALSO, "read_file": frozenset({"grep", "glob", "ls"})}
"""The same for a rule with a path."""
Verdict = Literal["no", "maybe", "yes"]


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


def denied(rule: Rule, line: str) -> Verdict:
    """Whether a rule that denies or asks takes anything in a line; `maybe` where that cannot be known.

    It looks behind wrappers (`sudo`, `sh -c`) and quotes, and into substitutions.
    """
    if line_matches(rule, line):
        return "yes"
    pattern = _words(rule)
    if not pattern:  # a rule for a whole line, with wildcards
        return "yes" if _line_fits(rule, line) else "no"
    found = suspects(line)
    verdict: Verdict = "maybe" if found.opaque else "no"
    for suspect in found.commands:
        taken = _may_match(pattern, suspect.words)
        if taken == "yes" and suspect.certain:
            return "yes"
        verdict = "maybe" if taken != "no" else verdict
    return verdict


def _line_fits(rule: Rule, line: str) -> bool:
    return re.fullmatch(re.escape(rule.pattern or "").replace(WILD, ".*"), line.strip(), re.DOTALL) is not None


def _may_match(pattern: Sequence[str], words: Sequence[str]) -> Verdict:
    """Whether a command is one that a pattern names, whatever folder its program is in."""
    name = words[0]
    if "/" not in pattern[0] and UNKNOWN in name:
        return "maybe" if _begins(pattern[0], name.partition(UNKNOWN)[0].rpartition("/")[2]) else "no"
    if "/" not in pattern[0]:
        name = program(name) if program(name) == pattern[0] else name.rpartition("/")[2]
    named = (name, *words[1:])
    for place, (expected, word) in enumerate(zip(pattern, named, strict=False)):
        if place == len(pattern) - 1 and expected == WILD:
            break
        if UNKNOWN in word:  # from here on it may be anything that begins like this
            return "maybe" if _begins(expected, word.partition(UNKNOWN)[0]) else "no"
        if not _word_fits(expected, word):
            return "maybe" if has_pattern(word) and _becomes(word, expected) else "no"
    return "no" if _match(pattern, named) is None else "yes"


def _begins(expected: str, beginning: str) -> bool:
    """Whether a word that begins so, or ends there, may be what is expected."""
    fixed, wild, _ = expected.partition(WILD)
    return fixed.startswith(beginning) or (bool(wild) and beginning.startswith(fixed))


def _becomes(word: str, expected: str) -> bool:
    """Whether a pattern of the shell may stand for what is expected."""
    if WILD in expected:
        fixed = re.split(f"[{''.join(ACTIVE.values())}]", word)[0]
        return _begins(expected, fixed)
    return re.fullmatch(glob_regex(word), expected) is not None


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
    if not all(_word_fits(expected, word) for expected, word in zip(fixed, words, strict=False)):
        return None
    return [WILD in expected for expected in fixed] + [True] * (len(words) - len(fixed))


def _word_fits(expected: str, word: str) -> bool:
    return re.fullmatch(re.escape(expected).replace(WILD, ".*"), word, re.DOTALL) is not None
