"""Reading shell lines: what is understood, and what is doubted."""

from __future__ import annotations

import shlex
import time

import pytest
from deepagent.agent.approvals.grammar import LONGEST
from deepagent.agent.approvals.shell import Redirection, split
from deepagent.agent.approvals.words import ACTIVE, UNKNOWN, written
from hard_inputs import hard_input
from hypothesis import given
from hypothesis import strategies as st


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
        ("(a; b) && { c; d; }", [["a"], ["b"], ["c"], ["d"]]),
        ("! a | b", [["a"], ["b"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a\ndo b\ndone; until c; do d; done", [["a"], ["b"], ["c"], ["d"]]),
        ("a > b c 2>&1 d", [["a", "c", "d"]]),
        ("> b a c", [["a", "c"]]),
        ("a \\\n  && b \\\n c", [["a"], ["b", "c"]]),
        ("e\\\nc\\\nho x", [["echo", "x"]]),
        ('a $? "$?"', [["a", ACTIVE["$?"], ACTIVE["$?"]]]),
        ("", []),
        ("# nothing", []),
    ],
)
def test_lines_that_are_understood(line: str, commands: list[list[str]]) -> None:
    parsed = split(line)
    assert parsed.doubt == ""
    assert [list(command.words) for command in parsed.commands] == commands


@hard_input(
    "Approvals", "a line that holds expansions, here-documents, unseen characters or too much", "asked about whole"
)
@pytest.mark.parametrize(
    "line",
    [
        *("a $x", "a ${x}", "a $(b)", "a `b`", 'a "$x"', 'a "`b`"', 'a "$(b)"', "a $((1))", "a $[1]", "a $'x'"),
        *('a $"x"', "a $@", "a $!", "a $-", "a $1", "a $_", "a $#", "a $$", "a <(b)", "a >(b)", "a > $x", "a > x$(b)"),
        *("a > *", "a > ~/x", "a >", "a > 'x", "a <> b", "a << E", "a <<E\nx\nE", "a <<'E'\nx\nE", "a <<< x", "a <<-E"),
        *("a 2>&-", "a <&-", "a 2>&1x", "a 2>&x", "a <&x", "{x}>y a", "a {x}>y", "a -1>x", "a 123>x", "> x", "> x; a"),
        *(
            "a () { b; }",
            "a {b,c}",
            "a {1..3}",
            "a x{",
            "a }",
            "{a;}",
            "{ a }",
            "!a b; }",
            "((a))",
            "((a); b)",
            "(a) b",
        ),
        *("( )", "if a; then b", "if a; then; fi", "{ a; } b", "fi", "a; then", "! ! a", "a | time b", "(a) (b)"),
        *("for x in y; do z; done", "case x in y) z;; esac", "select x in y; do z; done", "for ((;;)); do a; done"),
        *("[[ a ]]", "[ a ]", "time a", "coproc a", "function f { a; }", "f() (a)", "export a=b", "unset a", "local a"),
        *(
            "x=1",
            "x=1 a",
            "x+=1 a",
            "x[0]=1 a",
            "a; x=1 b",
            "x=1; a",
            "a > y x=1; x=1 b",
            "x=(a)",
            "if x=1; then a; fi",
        ),
        *("a 'b", 'a "b', "a \\", "a &&", "a ||", "a |", "&& a", "a && && b", "a ;; b", "a ;& b", "a & & b", "; a"),
        *("| a", "a\n&& b", "*/x", "[a]", "?x", "a &#b", "a|#b\nc", "a @(b)", "a !(b)", "a)b", "a\\\n>b", "a &\\\n>b"),
        *(
            "a\0b",
            "a\rb",
            "a\r\nb",
            "a\u00a0b",
            "a\u202eb",
            "a\u200bb",
            "a\ue000b",
            "a\ue006b",
            "a\ud800",
            "a\x1b[0m",
            "a\vb",
        ),
        *("a" + " b" * LONGEST, "(" * 200 + "a" + ")" * 200, "a=(" * 5_000, " && ".join("a" * 100)),
    ],
)
def test_lines_that_are_doubted(line: str) -> None:
    assert split(line).doubt


@pytest.mark.parametrize("line", ["a=(" * 6_000, "<<E " * 4_000, "a<<E|(`\"$((['" * 1_000, "((" * 9_000, "`" * 19_000])
def test_reading_takes_no_time(line: str) -> None:
    began = time.monotonic()
    assert split(line).doubt
    assert time.monotonic() - began < 1


@hard_input(
    "Approvals",
    "redirections in any form (`>|`, `&>`, `>&`, before or behind the words)",
    "files that are written or read",
)
@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("a > b", "+b"),
        ("a >> b 2> 'c d'", "+b +c d"),
        ("a >| b", "+b"),
        ("a &> b", "+b"),
        ("a >& b", "+b"),
        ("a &>> b", "+b"),
        ("a >b>c", "+b +c"),
        ("a < b", "-b"),
        ("a 0< b 1> ./c", "-b +./c"),
        ("(a; b) > c", "+c"),
        ("if a; then b > c; fi < d", "+c -d"),
        ("a >/dev/nul", "+/dev/nul"),
        ("a >/dev/nullx", "+/dev/nullx"),
        ("a >/dev/null/x", "+/dev/null/x"),
        ("a >/dev/null'x'", "+/dev/nullx"),
        ("a 2>'&1'", "+&1"),
        ("a >&1x", "+1x"),
        ("a >\\$x", "+$x"),
        ("a > /dev/tcp/127.0.0.1/80", "+/dev/tcp/127.0.0.1/80"),
        ("a >/dev/null 2>&1 </dev/null &>/dev/stderr 3>&2 >&2", ""),
    ],
)
def test_redirections(line: str, files: str) -> None:
    parsed = split(line)
    assert parsed.doubt == ""
    assert " ".join(f"{'+' if r.kind == 'write' else '-'}{r.target}" for r in parsed.redirections) == files
    assert all(isinstance(r, Redirection) for r in parsed.redirections)


def test_what_was_understood_before_a_doubt_is_told() -> None:
    parsed = split("a b; c $(d)")
    assert ([c.words for c in parsed.commands], bool(parsed.doubt)) == ([("a", "b")], True)
    assert UNKNOWN not in "".join(parsed.commands[0].words)


@given(words=st.lists(st.text(alphabet="ab*?[]~'\" \\;&|<>$`(){}#=!\n-/ü", max_size=6), min_size=1, max_size=4))
def test_quoted_words_come_back(words: list[str]) -> None:
    parsed = split(shlex.join(["run", *words]))
    assert parsed.doubt == ""
    [command] = parsed.commands
    assert command.words == ("run", *words)


def test_characters_that_the_shell_expands_are_marked() -> None:
    [command] = split("rm * '*' \\* a?b [x] ~").commands
    star, question, bracket, tilde = (ACTIVE[c] for c in "*?[~")
    assert command.words == ("rm", star, "*", "*", f"a{question}b", f"{bracket}x]", tilde)
    assert written(star) == "*"
