"""The decision about one call: may it run, must a person be asked, or is it denied?

Data in, data out: the loop asks the person and keeps what was answered. The rules are read in `rules`; how a shell line
is held against them, and what asks in every mode, is `lines`'s and `protection`'s business; whether a path may be
reached at all, the backend's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from ...context.messages import ToolCall
from ..backends.paths import DATA_FOLDERS, HOME_NAME
from ..tool import Tool
from .decision import Decision, Mode
from .lines import Lines, inside
from .protection import Resolve, protected
from .rules import Rule, path_matches, rule_text

_OURS = re.compile(rf"{re.escape(HOME_NAME)}/({'|'.join(DATA_FOLDERS)})(/|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may run without being asked about. Deny beats ask beats allow."""

    mode: Mode = "default"
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    resolve: Resolve = os.path.normpath
    """What a path in a shell line is called in rules."""

    def decide(self, call: ToolCall, tool: Tool, subject: str | None, *, confined: bool = False) -> Decision:
        """The decision about a call; `subject` is what `subject_of` gives for it.

        `confined`: a sandbox can keep a command from writing and from the network, which what only reads then gets.
        """
        if tool.access == "none":
            return Decision(kind="allow", reason="it touches nothing outside the session")
        if tool.access == "read" and subject and _OURS.match(subject):
            return Decision(kind="allow", reason="the session's own record may always be read")
        if tool.access == "execute" and subject is not None:
            return self._about_line(call, subject, confined=confined)
        if rule := _first(self.deny, tool, subject):
            return Decision(kind="deny", reason=f"the rule {rule.text} denies it")
        if self.mode == "plan" and tool.access != "read":
            return _in_plan_mode(call)
        if rule := _first(self.ask, tool, subject):
            return Decision(kind="ask", reason=f"the rule {rule.text} asks about it")
        if tool.access == "write" and subject and (reason := protected(subject)):
            return self._about_protected(tool, subject, reason)
        if self.mode == "yolo":
            return Decision(kind="allow", reason="in yolo mode everything may run that no rule denies")
        return self._by_allow_rules(tool, subject)

    def _about_line(self, call: ToolCall, line: str, *, confined: bool) -> Decision:
        lines = Lines(
            tool=call.name, mode=self.mode, allow=self.allow, deny=self.deny, ask=self.ask, resolve=self.resolve
        )
        if rule := lines.denial(line):
            return Decision(kind="deny", reason=f"the rule {rule.text} denies it")
        if self.mode == "plan":
            return self._while_planning(call, line, confined=confined)
        if rule := lines.question(line):
            return Decision(kind="ask", reason=f"the rule {rule.text} asks about it")
        return lines.decide(line, confined=confined)

    def _while_planning(self, call: ToolCall, line: str, *, confined: bool) -> Decision:
        """Only what reads runs, and only where a sandbox holds it to that; what may run otherwise is no matter."""
        lines = Lines(tool=call.name, mode="default", allow=(), deny=self.deny, ask=self.ask, resolve=self.resolve)
        if confined and not lines.question(line) and lines.decide(line, confined=True).kind == "allow":
            return Decision(kind="allow", reason="it only reads, and is kept from all else", reading=True)
        return _in_plan_mode(call)

    def _about_protected(self, tool: Tool, subject: str, reason: str) -> Decision:
        if self._names_file(tool.name, subject):
            return Decision(kind="allow", reason="a rule names this very file")
        rule = rule_text(tool.name, subject)
        return Decision(kind="ask", reason=reason, rules=(rule,), warning=reason)

    def _names_file(self, tool: str, path: str) -> bool:
        return any(rule.exact and rule.speaks_of(tool) and path_matches(rule, path) for rule in self.allow)

    def _by_allow_rules(self, tool: Tool, subject: str | None) -> Decision:
        if tool.access == "read":
            return Decision(kind="allow", reason="reading is free")
        if any(_takes(rule, tool, subject, broad=False) for rule in self.allow):
            return Decision(kind="allow", reason="a rule allows it")
        if self.mode == "accept-edits" and tool.access == "write" and subject and inside(subject):
            return Decision(kind="allow", reason="in accept-edits mode files of the workspace may be written")
        rule = rule_text(tool.name, subject)
        return Decision(kind="ask", reason=f"{tool.name} may change something", rules=(rule,))


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


def _in_plan_mode(call: ToolCall) -> Decision:
    return Decision(kind="deny", reason=f"in plan mode nothing is changed, so {call.name} does not run")


def _first(rules: tuple[Rule, ...], tool: Tool, subject: str | None) -> Rule | None:
    return next((rule for rule in rules if _takes(rule, tool, subject, broad=True)), None)


def _takes(rule: Rule, tool: Tool, subject: str | None, *, broad: bool) -> bool:
    """Whether a rule speaks of a call. `broad` also takes what only may be meant, as is right for what is denied."""
    if not rule.speaks_of(tool.name):
        return False
    if rule.pattern is None or subject is None:
        return rule.pattern is None
    return path_matches(rule, subject, broad=broad)
