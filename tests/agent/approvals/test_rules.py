"""Reading rules, and reading shell lines."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from deepagent.agent.approvals.guard import program
from deepagent.agent.approvals.rules import parse_rule, path_matches, rule_text
from deepagent.agent.approvals.shell import ACTIVE, split, written
from deepagent.agent.errors import ConfigError
from hypothesis import assume, given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "text", ["", "(", "execute(", "execute()", "execute)x", "a b", "execute(ls) x", "*", "ex*(ls)"]
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ConfigError, match="is no rule"):
        parse_rule(text)


def test_rules() -> None:
    assert (parse_rule("execute").tool, parse_rule("execute").pattern) == ("execute", None)
    assert parse_rule("execute(*)").pattern is None
    assert parse_rule(" execute(a (b) c) ").pattern == "a (b) c"
    assert parse_rule(r"execute(a \* b)").exact
    assert not parse_rule("execute(a * b)").exact


@given(st.text(alphabet="a*\\ ()'", min_size=1))
def test_a_rule_for_a_subject_means_that_subject(subject: str) -> None:
    rule = parse_rule(rule_text("write_file", subject))
    if subject == "*":
        assert rule.exact
    assert rule.pattern == subject
    assert path_matches(rule, subject)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a", True),
        ("src/**", "src/.x/.y", True),
        ("src/**", "src", False),
        ("src/", "src/a/b", True),
        ("./src/a", "src/a", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/.c.py", True),
        ("*.py", "a/b.py", False),
        ("a?c", "abc", False),
        ("a[b]c", "abc", False),
        ("a.c", "abc", False),
        ("**", "/outside", False),
        ("/out/**", "/out/a", True),
        ("a\nb", "a\nb", True),
    ],
)
def test_path_patterns(pattern: str, path: str, fits: bool) -> None:
    assert path_matches(parse_rule(f"write_file({pattern})"), path) == fits


def test_a_broad_match_reaches_outside() -> None:
    rule = parse_rule("write_file(**/.env)")
    assert path_matches(rule, "/elsewhere/.env", broad=True)
    assert not path_matches(rule, "/elsewhere/.env")


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("  ls  \t -la  ", [["ls", "-la"]]),
        ("a && b || c ; d | e & f\ng", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
        ("a|b&&c", [["a"], ["b"], ["c"]]),
        ("a |& b", [["a"], ["b"]]),
        ("echo 'a b' \"c d\" e\\ f", [["echo", "a b", "c d", "e f"]]),
        ("echo 'a'\"b\"c\\d ''", [["echo", "abcd", ""]]),
        (r'echo "a\"b\\c\d"', [["echo", r"a\"b\\c\d".replace(r"\"", '"').replace("\\\\", "\\")]]),
        ("echo a\\\nb", [["echo", "ab"]]),
        ('echo "a\nb"', [["echo", "a\nb"]]),
        ("a # b; c\nd", [["a"], ["d"]]),
        ("a b#c", [["a", "b#c"]]),
        ("a;\n\nb;", [["a"], ["b"]]),
        ("a &&\n\n b", [["a"], ["b"]]),
        ("a 2>&1 >/dev/null </dev/null &>/dev/null b", [["a", "b"]]),
        ("a>/dev/null;b", [["a"], ["b"]]),
        ("find . -exec x {} +", [["find", ".", "-exec", "x", "{}", "+"]]),
        ("echo '$x `y` \\z'", [["echo", "$x `y` \\z"]]),
        ('grep "a$" "$" $ x', [["grep", "a$", "$", "$", "x"]]),
        ("a x=1", [["a", "x=1"]]),
        ("echo ünï", [["echo", "ünï"]]),
        ("", []),
        ("# nothing", []),
    ],
)
def test_lines_that_are_understood(line: str, commands: list[list[str]]) -> None:
    parsed = split(line)
    assert parsed.doubt == ""
    assert [list(command.words) for command in parsed.commands] == commands


@pytest.mark.parametrize(
    "line",
    [
        *("a $x", "a ${x}", "a $(b)", "a `b`", 'a "$x"', 'a "`b`"', 'a "$(b)"', "a $((1))", "a $[1]", "a $'x'"),
        *('a $"x"', "a $@", "a $?", "a $!", "a $-", "a $1", "a $_", "a <(b)", "a >(b)", "a > b", "a >> b", "a >| b"),
        *("a < b", "a 2> b", "a &> b", "a >& b", "a <> b", "a << E", "a <<< x", "a <<-E", "a >/dev/nul", "a 2>&-"),
        *("a >/dev/null/x", "a >/dev/null'x'", "a >/dev/nullx", "a 2>&1x", "(a)", "{ a; }", "a () { b; }", "a {b,c}"),
        *("a {1..3}", "if a; then b; fi", "for x in y; do z; done", "while a; do b; done", "case x in y) z;; esac"),
        *(
            "! a",
            "[[ a ]]",
            "time a",
            "coproc a",
            "function f { a; }",
            "x=1",
            "x=1 a",
            "x+=1 a",
            "x[0]=1 a",
            "a; x=1 b",
        ),
        *("x=1; a", "a; x=1 b", "a 'b", 'a "b', "a \\", "a &&", "a ||", "a |", "&& a", "a && && b", "a ;; b", "a ;& b"),
        *("a & & b", "; a", "| a", "*/x", "[a]", "?x", "a\0b", "a\rb", "a\u00a0b", "a\u202eb", "a\u200bb", "a\ue000b"),
        *("a\ud800", "a\x1b[0m", "a\vb"),
    ],
)
def test_lines_that_are_doubted(line: str) -> None:
    assert split(line).doubt


@given(words=st.lists(st.text(alphabet="ab*?[]~'\" \\;&|<>$`(){}#=!\n-/ü", max_size=6), min_size=1, max_size=4))
def test_quoted_words_come_back(words: list[str]) -> None:
    parsed = split(shlex.join(["run", *words]))
    assert parsed.doubt == ""
    [command] = parsed.commands
    assert command.words == ("run", *words)


BASH = shutil.which("bash") or ""
PROLOGUE = r"""command_not_found_handle() { printf '%s\0' "$@" $'\1' >&9; }
exec 9>"$1"
PATH=/nowhere
set -f
"""


PIECES = (
    *(
        "a",
        "b",
        "-x",
        "{}",
        "!",
        "=",
        "*",
        "[",
        "'a  b'",
        '"c;d"',
        "''",
        "\\;",
        "\\ ",
        "\\\n",
        "\\'",
        '"a\\"b"',
        "#",
        "'#'",
    ),
    *(" ", " ", " ", "\t", "\n", ";", "&", "|", "&&", "||", "|&", "2>&1", ">/dev/null", "0</dev/null", "&>/dev/null"),
)


def _ran(line: str, folder: Path) -> set[tuple[str, ...]]:
    """The commands that a real bash runs for a line, in which every command only tells its name and arguments."""
    log = folder / "log"
    command = [BASH, "--norc", "--noprofile", "-c", f"{PROLOGUE}{line}\nwait", "bash", str(log)]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=20)
    assert [path.name for path in folder.iterdir()] == ["log"]
    return {tuple(words.split("\0")) for words in log.read_text().split("\0\1\0")[:-1]}


@pytest.mark.skipif(not BASH, reason="bash is not installed")
def test_the_real_shell_tells_what_it_runs(tmp_path: Path) -> None:
    line = "a x; b 'c d' && e | f & (g $(h))"
    assert _ran(line, tmp_path) == {("a", "x"), ("b", "c d"), ("e",), ("f",), ("g",), ("h",)}


@pytest.mark.skipif(not BASH, reason="bash is not installed")
@settings(max_examples=50, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=2, max_size=12))
def test_bash_runs_no_command_that_was_not_seen(pieces: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    line = "".join(pieces)
    parsed = split(line)
    assume(not parsed.doubt)
    seen = {tuple(written(word) for word in command.words) for command in parsed.commands}
    assert _ran(line, tmp_path_factory.mktemp("bash")) <= seen


def test_characters_that_the_shell_expands_are_marked() -> None:
    [command] = split("rm * '*' \\* a?b [x] ~").commands
    star, question, bracket, tilde = (ACTIVE[c] for c in "*?[~")
    assert command.words == ("rm", star, "*", "*", f"a{question}b", f"{bracket}x]", tilde)
    assert written(star) == "*"


@pytest.mark.parametrize(
    ("word", "name"),
    [("python3.11", "python"), ("/usr/bin/find", "find"), ("FIND", "find"), ("./x", "x"), ("7z", "7z"), ("12", "12")],
)
def test_names_of_programs(word: str, name: str) -> None:
    assert program(word) == name
