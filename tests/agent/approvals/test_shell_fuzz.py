"""No allowed line runs a command that was not allowed: random lines, held against what bash really does.

The oracle is by hand and knows nothing of the parser: what may run, with which arguments, and which files may change.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deepagent.agent.approvals.policy import Policy
from deepagent.agent.approvals.rules import parse_rules
from deepagent.agent.tools import builtin_tools
from deepagent.context.messages import ToolCall
from hard_inputs import hard_input
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from traced_shell import BASH, Traced, TracedShell

EXECUTE = next(tool for tool in builtin_tools() if tool.name == "execute")
CALL = ToolCall(id="1", name="execute", arguments={})
ALLOWED = (
    *("execute(echo *)", "execute(ls *)", "execute(git status)", "execute(cd *)", "execute(printf *)", "execute(a *)"),
    *("execute(test *)", "execute(find *)", "execute(true)", "execute([ *)", "execute(: *)", "execute(rm x)"),
    *("execute(cat *)", "write_file(o)", "write_file(out/**)"),
)
POLICY = Policy(allow=parse_rules(ALLOWED))
DENYING = Policy(mode="yolo", deny=parse_rules(["execute(rm *)", "execute(git push *)", "write_file(secret)"]))
GOOD = (
    *("echo", "echo x", "ls", "ls -la", "git status", "cd out", "printf x", "a", "a b", "test -f x", "true", "cat o"),
    *("rm x", "ls *", "echo $?", "echo '$(rm y)'", 'echo "x y"', "echo \\$x", "find . -name x", ": x", "a 2>&1"),
    *("echo x > o", "echo x >> out/f", "a >/dev/null", "ls 2>/dev/null", "(ls; a)", "{ ls; a; }", "! ls", "echo {}"),
    *("if true; then ls; fi", "while test x; do a; done", "if ls; then a; else echo; fi", "until ls; do a; done"),
    *("cat < o", "a &> out/x", "echo a#b", "# x", "echo \\\n x", "> o a", "a > o b", "ls 2> out/e | a"),
)
NASTY = (
    *("rm y", "rm", "./ls", "0/ls", "b", "sh -c 'rm y'", "env rm y", "xargs rm", "sudo rm y", "eval rm y", "exec rm y"),
    *("$(rm y)", "`rm y`", "echo $(rm y)", 'echo "$(rm y)"', "echo <(rm y)", "echo >(rm y)", "echo ${x:-$(rm y)}"),
    *("echo $((a[$(rm y)]))", "echo $[a[$(rm y)]]", "test -v 'a[$(rm y)]'", "[ -v 'a[$(rm y)]' ]", "let 'a[$(rm y)]'"),
    *("printf -v PATH 0", "printf '%n' PATH", "printf -v 'a[$(rm y)]' x", "PATH=. ls", "PATH=.", "export PATH=."),
    *(
        "read x <<< y",
        "cat <<E\n$(rm y)\nE\n",
        "cat <<'E'\n$(rm y)\nE\n",
        "cat <<E",
        "cat << \\E",
        "E",
        "for i in a; do rm; done",
    ),
    *(
        "case x in x) rm y;; esac",
        "f() { rm y; }",
        "f",
        "function ls { rm y; }",
        "alias ls=rm",
        "ls() (rm y)",
        "coproc rm",
    ),
    *("[[ -v a[$(rm y)] ]]", "((a[$(rm y)]))", "echo {rm,y}", "{rm,y}", "r{m,} y", "$x", "rm$IFS'y'", "x=rm", "$x y"),
    *("echo x > y", "echo x >> ls", "echo > $x", "echo > o$(rm y)", "echo 2>y", "echo >&y", "echo <> y", "echo >| y"),
    *("a {x}>y", "exec > y", "$'rm' y", '$"rm" y', "r\\m y", "'rm' y", 'r"m" y', "r\\\nm y", "e\\\ncho", "time rm y"),
    *(
        "trap 'rm y' EXIT",
        "set -x",
        "shopt -s extglob",
        "echo @(rm)",
        "echo !(x)",
        "echo ~",
        "!!",
        "!ls",
        "a&>y",
        "a\\\n>y",
    ),
    *("command rm y", "builtin eval rm y", "source ls", ". ./ls", "hash -p ./ls a", "enable -n echo", "git push x"),
    *(
        "git -c x=y status",
        "git status x",
        "find . -exec rm {} +",
        "find . -delete",
        "mapfile -C 'rm y' -c 1 x",
        "a>o>y",
    ),
)
BETWEEN = (
    *(" ; ", " && ", " || ", " | ", "\n", " & ", ";", "&&", "|"),
    *(" ;; ", "|&", "&", " ", "", "\\\n", " \\\n", "\n\n"),
)
CHARS = "ab rmy'\"\\`$(){}[]<>|&;#!*?~=\n\t-012,.:%@^+"
LINES = st.one_of(st.sampled_from(GOOD), st.sampled_from(GOOD), st.sampled_from(GOOD), st.sampled_from(NASTY))


@st.composite
def lines(draw: st.DrawFn, start: st.SearchStrategy[str] = LINES) -> str:
    """A line of pieces, changed at random in up to three places."""
    text = draw(start)
    for _ in range(draw(st.integers(0, 3))):
        text += draw(st.sampled_from(BETWEEN)) + draw(start)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2, 3)))):
        at = draw(st.integers(0, len(text)))
        removed = draw(st.integers(0, 1))
        text = text[:at] + draw(st.sampled_from(["", *CHARS])) + text[at + removed :]
    return text


def unwanted(traced: Traced) -> Iterator[str]:
    """What the rules above do not allow."""
    anything = {"echo", "ls", "cd", "printf", "a", "test", "[", ":", "cat"}
    exact = {("git", "status"), ("true",), ("rm", "x")}
    for command in traced.ran:
        finds = command[0] == "find" and not {"-exec", "-delete", "-execdir", "-ok"}.intersection(command)
        if command[0] not in anything and command not in exact and not finds:
            yield f"ran {command}"
    yield from (f"changed {name}" for name in traced.changed if name != "o" and not name.startswith("out"))


def forbidden(traced: Traced) -> Iterator[str]:
    """What the rules that deny speak of."""
    for command in traced.ran:
        if command[0] == "rm" or command[:2] == ("git", "push"):
            yield f"ran {command}"
    if "secret" in traced.changed:
        yield "changed secret"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> TracedShell:
    if not BASH:
        pytest.skip("bash is not installed")
    return TracedShell(tmp_path_factory.mktemp("traced"))


def test_the_shell_tells_what_it_runs(shell: TracedShell) -> None:
    traced = shell.run("a x; echo 'c d' && ls | b & (nothing $(id)); ./ls; echo > y; eval 'rm z'; sh -c 'rm q'; wait")
    assert set(traced.ran) == {
        *(("a", "x"), ("echo", "c d"), ("ls",), ("b",), ("nothing",), ("id",), ("./ls",), ("echo",), ("eval", "rm z")),
        *(("rm", "z"), ("sh", "-c", "rm q"), ("wait",)),
    }
    assert traced.changed == {"y"}
    assert list(unwanted(traced)) and list(forbidden(traced))


def check_allowed(line: str, shell: TracedShell) -> None:
    allowed = POLICY.decide(CALL, EXECUTE, line).kind == "allow"
    event(f"allowed: {allowed}")
    if allowed:
        assert not list(unwanted(shell.run(line))), line


def check_denied(line: str, shell: TracedShell) -> None:
    allowed = DENYING.decide(CALL, EXECUTE, line).kind == "allow"
    event(f"allowed: {allowed}")
    if allowed:
        assert not list(forbidden(shell.run(line))), line


_SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.large_base_example)
SHORT = settings(max_examples=200, deadline=None, suppress_health_check=_SLOW)
LONG = settings(SHORT, max_examples=20_000)


@hard_input("Approvals", "random lines of bash", "no allowed line runs a command or changes a file that no rule names")
@SHORT
@given(line=lines())
def test_no_allowed_line_runs_what_is_not_allowed(line: str, shell: TracedShell) -> None:
    check_allowed(line, shell)


@SHORT
@given(line=lines(st.sampled_from((*GOOD, *NASTY))))
def test_no_line_runs_what_is_denied(line: str, shell: TracedShell) -> None:
    check_denied(line, shell)


@pytest.mark.long
@LONG
@given(line=lines())
def test_no_allowed_line_runs_what_is_not_allowed_at_length(line: str, shell: TracedShell) -> None:
    check_allowed(line, shell)


@pytest.mark.long
@LONG
@given(line=lines(st.sampled_from((*GOOD, *NASTY))))
def test_no_line_runs_what_is_denied_at_length(line: str, shell: TracedShell) -> None:
    check_denied(line, shell)
