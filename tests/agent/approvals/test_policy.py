"""What may run: every row of the documentation, and what no table can say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from deepagent.agent.approvals.policy import Decision, Mode, Policy, protected, subject_of
from deepagent.agent.approvals.rules import parse_rules
from deepagent.agent.approvals.shell import split
from deepagent.agent.backends.protocol import BackendError
from deepagent.agent.model.types import ToolSchema
from deepagent.agent.tool import Access, Tool
from deepagent.agent.tools import builtin_tools
from deepagent.context.messages import ToolCall
from hypothesis import given
from hypothesis import strategies as st

TOOLS = {tool.name: tool for tool in builtin_tools()}
DOCUMENT = Path(__file__).parents[3] / "docs/approvals.md"
CODE = re.compile(r"(`+) ?(.+?) ?\1")


def _tool(name: str, access: Access = "execute") -> Tool:
    if name in TOOLS:
        return TOOLS[name]
    schema = ToolSchema(name=name, description="", parameters={})
    return Tool(schema=schema, run=TOOLS["ls"].run, access=access)


def _decide(
    tool: str,
    subject: str | None,
    *,
    mode: Mode = "default",
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    confined: bool = False,
) -> Decision:
    policy = Policy(mode=mode, allow=parse_rules(allow), deny=parse_rules(deny))
    return policy.decide(ToolCall(id="1", name=tool, arguments={}), _tool(tool), subject, confined=confined)


def _rows() -> list[list[str]]:
    text = DOCUMENT.read_text(encoding="utf-8").partition("| mode | allow | deny | call | outcome |")[2]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def _codes(cell: str) -> list[str]:
    return [match[2] for match in CODE.finditer(cell)]


@pytest.mark.parametrize(("mode", "allow", "deny", "call", "outcome"), _rows())
def test_each_documented_row(mode: str, allow: str, deny: str, call: str, outcome: str) -> None:
    tool, _, subject = _codes(call)[0].replace("⏎", "\n").partition(":")
    mode, _, confined = mode.partition(", ")
    decision = _decide(
        tool,
        subject.strip() or None,
        mode=cast(Mode, mode),
        allow=_codes(allow),
        deny=_codes(deny),
        confined=bool(confined),
    )
    assert ("reading" if decision.reading else decision.kind) == outcome, decision


def test_the_document_has_its_rows() -> None:
    assert len(_rows()) > 140


LINES = [
    "ls",
    "ls && rm -rf x",
    "npm test 2>&1 | tail -5",
    "echo $(id) > x",
    "rm *.tmp '*' \\*",
    "for i in 1 2; do echo $i; done",
    "cat <<E\n$(id)\nE",
    "git commit -m 'a (b) \"c\"'",
    "find . -name '*.py' -exec rm {} +",
    "sudo ls; sudo rm *",
    "echo 'it'\\''s'",
    "a=1 b",
    "(ls)",
    "ls \\\n  -la",
    "# only a comment",
    "echo a)b",
    "grep -n 'x\\*' *.py",
]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("mode", ["default", "accept-edits"])
def test_the_rules_that_are_named_allow_the_call(line: str, mode: Mode) -> None:
    decision = _decide("execute", line, mode=mode)
    assert decision.kind == "ask"
    assert decision.rule == decision.rules[0]
    assert _decide("execute", line, mode=mode, allow=list(decision.rules)).kind == "allow"
    if len(decision.rules) > 1:
        assert _decide("execute", line, mode=mode, allow=list(decision.rules[1:])).rules == decision.rules[:1]


ALPHABET = "ab *?[]~'\"\\;&|<>$`(){}#=!\n\t-/0123"


@given(line=st.text(alphabet=ALPHABET, min_size=1, max_size=25).filter(lambda text: bool(text.strip())))
def test_the_rules_that_are_named_allow_any_line_and_no_other(line: str) -> None:
    decision = _decide("execute", line)
    assert decision.kind == "ask"
    assert _decide("execute", line, allow=list(decision.rules)).kind == "allow"
    for other in ("rm -rf x", f"{line}\nrm -rf x", f"{line} rm", "*"):
        allowed = _decide("execute", other, allow=list(decision.rules)).kind == "allow"
        same = other.strip() == line.strip() or (
            not split(other).doubt
            and {c.words for c in split(other).commands} <= {c.words for c in split(line).commands}
        )
        assert not allowed or same, (other, decision.rules)


def test_an_approval_is_no_wider_than_what_was_shown() -> None:
    decision = _decide("execute", "rm '*'")
    assert _decide("execute", "rm *", allow=[decision.rule]).kind == "ask"
    decision = _decide("execute", "rm ~")
    assert _decide("execute", "rm '~'", allow=[decision.rule]).kind == "ask"
    decision = _decide("execute", "ls")
    assert [_decide("execute", line, allow=[decision.rule]).kind for line in ("lsof", "ls -la", "ls")] == [
        "ask",
        "ask",
        "allow",
    ]


@pytest.mark.parametrize(
    "path", ["src/a.py", "a*b", "a (1).txt", "app/[id]/x", r"odd\name", "**", "/elsewhere/x", "ü ß"]
)
def test_the_rule_that_is_named_allows_the_path(path: str) -> None:
    decision = _decide("write_file", path)
    assert decision.kind == "ask"
    assert _decide("write_file", path, allow=[decision.rule]).kind == "allow"
    assert _decide("write_file", f"{path}x", allow=[decision.rule]).kind == "ask"


def test_a_denial_by_rule_names_no_way_around_it() -> None:
    decision = _decide("execute", "rm x", allow=["execute"], deny=["execute(rm *)"])
    assert (decision.kind, decision.rule, decision.reason) == ("deny", "", "the rule execute(rm *) denies it")
    decision = _decide("write_file", "a", mode="plan")
    assert (decision.kind, decision.rule) == ("deny", "")
    assert "plan mode" in decision.reason


def test_deny_beats_ask_beats_allow() -> None:
    rules = parse_rules(["execute(ls *)"])
    call = ToolCall(id="1", name="execute", arguments={})
    assert Policy(allow=rules, ask=rules).decide(call, TOOLS["execute"], "ls").kind == "ask"
    assert Policy(mode="yolo", ask=rules).decide(call, TOOLS["execute"], "cd x; ls").kind == "ask"
    assert Policy(allow=rules, ask=rules, deny=rules).decide(call, TOOLS["execute"], "ls").kind == "deny"


@pytest.mark.parametrize(
    "path",
    [
        *(".git", ".git/config", ".GIT/hooks/x", "a/b/.git/hooks/pre-commit", "/other/.git/config"),
        *(".deepagents/deepagent.toml", "pkg/.deepagents/deepagent.local.toml", ".Deepagents/X.TOML"),
        *(".bashrc", "home/.zshrc", ".profile", ".gitconfig", ".envrc", ".ssh/config", ".config/fish/config.fish"),
    ],
)
def test_what_others_run_or_obey_asks_in_every_mode(path: str) -> None:
    assert protected(path)
    for allow in ([], ["write_file"], ["write_file(**)"], ["write_file(.*/**)"]):
        assert _decide("write_file", path, mode="yolo", allow=allow).kind == "ask"
        assert _decide("edit_file", path, mode="accept-edits", allow=allow).kind == "ask"
    assert _decide("write_file", path, mode="yolo", deny=["write_file"]).kind == "deny"


@pytest.mark.parametrize(
    "path", [".gitignore", ".github/x.yml", "a.git/x", "AGENTS.md", ".deepagents/AGENTS.md", "x.toml"]
)
def test_ordinary_files_do_not_ask(path: str) -> None:
    assert protected(path) is None
    assert _decide("write_file", path, mode="accept-edits").kind == "allow"


@pytest.mark.parametrize("folder", ["sessions", "conversation_history", "large_tool_results", "checkpoints"])
def test_the_own_record_may_always_be_read(folder: str) -> None:
    for tool in ("read_file", "grep", "ls", "glob"):
        assert _decide(tool, f".deepagents/{folder}/x", deny=["read_file", "grep", "ls", "glob"]).kind == "allow"
    assert _decide("read_file", f".deepagents/{folder}x", deny=["read_file"]).kind == "deny"


def test_tools_without_a_subject() -> None:
    decision = _decide("mcp__s__t", None)
    assert (decision.kind, decision.rule) == ("ask", "mcp__s__t")
    assert _decide("mcp__s__t", None, allow=["mcp__s__t(x)"]).kind == "ask"
    assert _decide("mcp__s__t", None, mode="yolo", deny=["mcp__s__t"]).kind == "deny"
    assert _decide("mcp__s__t", None, mode="plan").kind == "deny"
    assert _decide("write_file", None, mode="accept-edits").kind == "ask"
    assert _decide("execute", None).rule == "execute"


def test_the_subject_of_a_call() -> None:
    def resolve(path: str) -> str:
        if path.startswith(".."):
            raise BackendError("outside")
        return f"resolved/{path}"

    def subject(tool: str, **arguments: str | int) -> str | None:
        return subject_of(ToolCall(id="1", name=tool, arguments=arguments), TOOLS[tool], resolve)

    assert subject("execute", command=" ls ") == " ls "
    assert subject("write_file", path="a") == "resolved/a"
    assert subject("grep", pattern="x") == "resolved/."
    assert subject("write_file") is None
    assert subject("write_file", path=3) is None
    assert subject("write_todos") is None
    with pytest.raises(BackendError):
        subject("write_file", path="../x")
