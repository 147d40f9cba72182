"""The decision about one call: may it run, must a person be asked, or is it denied?

Data in, data out: the loop asks the person and keeps what was answered. The rules are read in `rules`, shell lines in
`shell`; whether a path may be reached at all is the backend's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ...context.messages import ToolCall
from ..backends.paths import DATA_FOLDERS, HOME_NAME
from ..tool import Tool
from .rules import Rule, command_matches, denied, line_matches, path_matches, rule_text
from .shell import names, split

Mode = Literal["default", "accept-edits", "plan", "yolo"]
Kind = Literal["allow", "ask", "deny"]

_START_UP = names(
    """.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
    .kshrc .cshrc .tcshrc .login .logout .inputrc .xprofile .xinitrc .envrc config.fish .gitconfig"""
)
"""Files that a shell, or git, reads when it starts: what stands in them runs outside of any sandbox."""
_OURS = re.compile(rf"{re.escape(HOME_NAME)}/({'|'.join(DATA_FOLDERS)})(/|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done with a call."""

    kind: Kind
    reason: str
    """Why, as half a sentence for a person and the model."""
    rules: tuple[str, ...] = ()
    """The rules that are missing to allow the call, as `--allow` takes them: one for each command of a shell line.
    None where no rule could allow it."""

    @property
    def rule(self) -> str:
        """The first rule that is missing, or empty."""
        return self.rules[0] if self.rules else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may run without being asked about. Deny beats ask beats allow."""

    mode: Mode = "default"
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()

    def decide(self, call: ToolCall, tool: Tool, subject: str | None) -> Decision:
        """The decision about a call; `subject` is what `subject_of` gives for it."""
        if tool.access == "none":
            return Decision(kind="allow", reason="it touches nothing outside the session")
        if tool.access == "read" and subject and _OURS.match(subject):
            return Decision(kind="allow", reason="the session's own record may always be read")
        if rule := _first(self.deny, tool, subject):
            return Decision(kind="deny", reason=f"the rule {rule.text} denies it")
        if self.mode == "plan" and tool.access != "read":
            return Decision(kind="deny", reason=f"in plan mode nothing is changed, so {call.name} does not run")
        if rule := _first(self.ask, tool, subject):
            return Decision(kind="ask", reason=f"the rule {rule.text} asks about it")
        if tool.access == "write" and subject and (reason := protected(subject)):
            return self._about_protected(tool, subject, reason)
        if self.mode == "yolo":
            return Decision(kind="allow", reason="in yolo mode everything may run that no rule denies")
        return self._by_allow_rules(tool, subject)

    def _about_protected(self, tool: Tool, subject: str, reason: str) -> Decision:
        named = any(rule.exact and rule.speaks_of(tool.name) and path_matches(rule, subject) for rule in self.allow)
        if named:
            return Decision(kind="allow", reason="a rule names this very file")
        return _ask(reason, rule_text(tool.name, subject))

    def _by_allow_rules(self, tool: Tool, subject: str | None) -> Decision:
        if tool.access == "read":
            return Decision(kind="allow", reason="reading is free")
        if tool.access == "execute" and subject is not None:
            return self._by_commands(tool, subject)
        if any(_takes(rule, tool, subject, broad=False) for rule in self.allow):
            return Decision(kind="allow", reason="a rule allows it")
        if self.mode == "accept-edits" and tool.access == "write" and subject and not subject.startswith("/"):
            return Decision(kind="allow", reason="in accept-edits mode files of the workspace may be written")
        return _ask(f"{tool.name} may change something", rule_text(tool.name, subject))

    def _by_commands(self, tool: Tool, line: str) -> Decision:
        rules = [rule for rule in self.allow if rule.speaks_of(tool.name)]
        if any(line_matches(rule, line) for rule in rules):
            return Decision(kind="allow", reason="a rule allows it")
        parsed = split(line)
        if parsed.doubt or not parsed.commands:
            doubt = f"the line holds {parsed.doubt}" if parsed.doubt else "the line holds no command"
            return _ask(f"{doubt}, so only a rule for the whole line allows it", rule_text(tool.name, line.strip()))
        missing: list[str] = []
        reasons: list[str] = []
        for command in parsed.commands:
            verdicts = [command_matches(rule, command) for rule in rules]
            if True not in verdicts:
                missing.append(rule_text(tool.name, command.text))
                reasons += [verdict for verdict in verdicts if isinstance(verdict, str)]
        if not missing:
            return Decision(kind="allow", reason="a rule allows each of its commands")
        return _ask(reasons[0] if reasons else "no rule allows it", *dict.fromkeys(missing))


def subject_of(call: ToolCall, tool: Tool, resolve: Callable[[str], str]) -> str | None:
    """What the rules look at in a call: the command as it is, or the path as `resolve` (of the backend) names it.

    None where the tool has no subject. Raises the backend's `BackendError` for a path that cannot be reached: the call
    would fail for the same reason and need not be asked about.
    """
    if tool.subject is None:
        return None
    value = call.arguments.get(tool.subject, "." if tool.access == "read" else None)
    if not isinstance(value, str):
        return None
    return value if tool.access == "execute" else resolve(value)


def protected(path: str) -> str | None:
    """Why a file must not be written without a word, whatever the mode, or None."""
    *folders, name = path.casefold().split("/")
    if ".git" in (*folders, name):
        return "what git finds in .git may run as a program"
    if HOME_NAME in folders and name.endswith(".toml"):
        return "it is this agent's own configuration"
    if name in _START_UP or ".ssh" in folders:
        return "a shell, git or ssh reads it when it starts"
    return None


def _ask(reason: str, *rules: str) -> Decision:
    return Decision(kind="ask", reason=reason, rules=rules)


def _first(rules: tuple[Rule, ...], tool: Tool, subject: str | None) -> Rule | None:
    return next((rule for rule in rules if _takes(rule, tool, subject, broad=True)), None)


def _takes(rule: Rule, tool: Tool, subject: str | None, *, broad: bool) -> bool:
    """Whether a rule speaks of a call. `broad` also takes what only may be meant, as is right for what is denied."""
    if not rule.speaks_of(tool.name):
        return False
    if rule.pattern is None or subject is None:
        return rule.pattern is None
    if tool.access == "execute":
        return denied(rule, subject, split(subject)) if broad else line_matches(rule, subject)
    return path_matches(rule, subject, broad=broad)
