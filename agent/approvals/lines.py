"""The decision about a shell line: about each of its commands, and each file that it opens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from .decision import Decision, Mode
from .protection import Resolve, risk, risk_of_write, spellings
from .reading import only_reads
from .rules import Rule, command_matches, denied, line_matches, path_matches, rule_text
from .shell import Redirection, ShellLine, SimpleCommand, split
from .suspects import behind, suspects
from .words import UNKNOWN, computed

_READ_TOOLS = ("read_file", "grep", "glob", "ls")
_PLACES = 16
"""How many folders a line may go through before it is not followed any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Something in a line that no rule allows."""

    reason: str
    rule: str = ""
    """The rule that would allow it; empty: only one for the whole line."""
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What is known when a line is judged; `tool` runs it."""

    tool: str
    mode: Mode
    allow: tuple[Rule, ...]
    deny: tuple[Rule, ...]
    ask: tuple[Rule, ...]
    resolve: Resolve

    def denial(self, line: str) -> Rule | None:
        """The rule that denies a line, if any: one about commands, or about a file that the line opens."""
        for rule in self.deny:
            if rule.speaks_of(self.tool) and denied(rule, line) == "yes":
                return rule
            if any(rule.speaks_of(tool) and self._takes(rule, path) for tool, path in self._opened(line)):
                return rule
        return None

    def question(self, line: str) -> Rule | None:
        """The rule that asks about a line, or may mean it, if any."""
        return next((rule for rule in self.ask if rule.speaks_of(self.tool) and denied(rule, line) != "no"), None)

    def decide(self, line: str, *, confined: bool) -> Decision:
        """The decision about a line that no rule denies or asks about."""
        if any(rule.exact and line_matches(rule, line) for rule in self._rules):
            return Decision(kind="allow", reason="a rule names this very line")
        whole = rule_text(self.tool, line.strip())
        if rule := self._unclear(line):
            reason = f"what the line does cannot be known, and the rule {rule.text} may deny it"
            return Decision(kind="ask", reason=reason, rules=(whole,))
        parsed = split(line)
        understood = not parsed.doubt and bool(parsed.commands)
        missing = tuple(self._missing(parsed) if understood else self._missing_in_doubt(line, parsed))
        warning = next((item.warning for item in missing if item.warning), "")
        if not missing:
            yolo = self.mode == "yolo"
            reason = "in yolo mode everything may run that no rule denies" if yolo else "rules allow all of it"
            return Decision(kind="allow", reason=reason)
        if confined and not warning and self._may_read(parsed):
            return Decision(kind="allow", reason="it only reads, and is kept from all else", reading=True)
        rules = tuple(dict.fromkeys(item.rule or whole for item in missing))
        rules = (whole,) if whole in rules else rules
        return Decision(kind="ask", reason=missing[0].reason, rules=rules, warning=warning)

    @property
    def _rules(self) -> list[Rule]:
        return [rule for rule in self.allow if rule.speaks_of(self.tool)]

    @property
    def _free(self) -> bool:
        """Whatever is not protected may run."""
        return self.mode == "yolo" or any(rule.pattern is None for rule in self._rules)

    def _opened(self, line: str) -> Iterator[tuple[str, str]]:
        """Files that a line opens, each with the tool whose rules speak of it."""
        for target in suspects(line).writes:
            yield from (("write_file", path) for path in {target, self.resolve(target)})
        for redirection in split(line).redirections:
            tool = "write_file" if redirection.kind == "write" else "read_file"
            yield from ((tool, self.resolve(path)) for path in self._paths(split(line), redirection))

    def _takes(self, rule: Rule, path: str) -> bool:
        return UNKNOWN not in path and path_matches(rule, path, broad=True)

    def _unclear(self, line: str) -> Rule | None:
        """A rule that denies, and of which it cannot be known whether the line breaks it."""
        found = suspects(line)
        hidden = found.opaque or any(map(computed, found.writes))
        for rule in self.deny:
            if rule.speaks_of(self.tool) and denied(rule, line) == "maybe":
                return rule
            if hidden and rule.speaks_of("write_file"):
                return rule
        return None

    def _missing(self, parsed: ShellLine) -> Iterator[Missing]:
        """What no rule allows in a line that is understood."""
        for command in parsed.commands:
            yield from self._missing_command(command)
        for redirection in parsed.redirections:
            yield from self._missing_file(parsed, redirection)

    def _missing_in_doubt(self, line: str, parsed: ShellLine) -> Iterator[Missing]:
        found = suspects(line)
        risks = (risk(suspect.words, self.resolve) for suspect in found.commands if suspect.certain)
        paths = chain.from_iterable(map(spellings, found.writes))
        writes = (risk_of_write(path, self.resolve) for path in paths)
        for why in filter(None, chain(risks, writes)):
            yield Missing(reason=why, warning=why)
        if not self._free:
            doubt = f"the line holds {parsed.doubt}" if parsed.doubt else "the line holds no command"
            yield Missing(reason=f"{doubt}, so only a rule for the whole line allows it")

    def _missing_command(self, command: SimpleCommand) -> Iterator[Missing]:
        rule = rule_text(self.tool, command.text)
        verdicts = [(rule.exact, command_matches(rule, command)) for rule in self._rules]
        why = next(filter(None, (risk(suspect.words, self.resolve) for suspect in behind(command.words))), None)
        if why and (True, True) not in verdicts:
            yield Missing(reason=why, rule=rule, warning=why)
        elif not why and not self._free and not any(verdict is True for _, verdict in verdicts):
            reasons = [verdict for _, verdict in verdicts if isinstance(verdict, str)]
            yield Missing(reason=reasons[0] if reasons else "no rule allows it", rule=rule)

    def _missing_file(self, parsed: ShellLine, redirection: Redirection) -> Iterator[Missing]:
        paths = self._paths(parsed, redirection)
        if not paths and not self._free:
            yield Missing(reason=f"it is not clear in which folder {redirection.target} lies")
        for spelled in paths:
            path = self.resolve(spelled)
            if redirection.kind == "read":
                if not (self._free or inside(path) or self._file_allowed("read_file", path)):
                    rule = rule_text("read_file", path)
                    yield Missing(reason=f"{spelled} lies outside the workspace", rule=rule)
            elif why := risk_of_write(spelled, self.resolve):
                if not self._file_allowed("write_file", path, exact=True):
                    yield Missing(reason=f"{spelled}: {why}", rule=rule_text("write_file", path), warning=why)
            elif not self._may_write(path):
                yield Missing(reason=f"it writes {spelled}", rule=rule_text("write_file", path))

    def _may_write(self, path: str) -> bool:
        edits = self.mode == "accept-edits" and inside(path)
        return self._free or edits or self._file_allowed("write_file", path)

    def _file_allowed(self, tool: str, path: str, *, exact: bool = False) -> bool:
        rules = (rule for rule in self.allow if rule.speaks_of(tool) and (rule.exact or not exact))
        return any(path_matches(rule, path) for rule in rules)

    def _paths(self, parsed: ShellLine, redirection: Redirection) -> list[str]:
        """Where a redirection may lead, after each change of folder in its line; none where that is not clear."""
        if redirection.target.startswith("/"):
            return [redirection.target]
        places = [""]
        for words in (command.words for command in parsed.commands):
            if words[0] in ("pushd", "popd") or (words[0] == "cd" and not _goes_somewhere(words)):
                return []
            if words[0] == "cd":
                places += [os.path.join(place, words[-1]) for place in places]  # noqa: PTH118 - of no file system yet
            if len(places) > _PLACES:
                return []
        return [os.path.join(place, redirection.target) for place in dict.fromkeys(places)]  # noqa: PTH118

    def _may_read(self, parsed: ShellLine) -> bool:
        """Whether a line may run because it only reads. Rules about reading are kept by not doing so at all."""
        if self.mode not in ("default", "accept-edits"):
            return False
        limited = any(rule.speaks_of(tool) for rule in (*self.deny, *self.ask) for tool in _READ_TOOLS)
        return not limited and only_reads(parsed, lambda path: inside(self.resolve(path)))


def inside(name: str) -> bool:
    """Whether a path, as `resolve` names it, lies in the workspace."""
    return not name.startswith("/") and name.partition("/")[0] != ".."


def _goes_somewhere(words: tuple[str, ...]) -> bool:
    return len(words) == 2 and not words[1].startswith("-") and not computed(words[1])
