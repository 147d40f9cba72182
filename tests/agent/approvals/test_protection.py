"""What asks in every mode, and how a rule that denies looks into lines that hide something."""

from __future__ import annotations

import os

import pytest
from deepagent.agent.approvals.protection import irreplaceable, protected, risk, risk_of_write
from deepagent.agent.approvals.rules import denied, parse_rule
from deepagent.agent.approvals.shell import split
from deepagent.agent.approvals.suspects import suspects
from deepagent.agent.approvals.words import UNKNOWN
from hard_inputs import hard_input


def risky(line: str) -> bool:
    [command] = split(line).commands
    return risk(command.words, os.path.normpath) is not None


@hard_input(
    "Approvals", "a program that changes .git, start-up files, keys or our own settings", "asked about, in yolo too"
)
@pytest.mark.parametrize(
    "line",
    [
        *(
            "rm -rf .git",
            "rm -rf ./.git/",
            "rm -rf sub/.git",
            "rm .GIT/config",
            "mv .git x",
            "mv x .git/hooks/y",
            "rmdir .git",
        ),
        *(
            "cp a .git/hooks/pre-commit",
            "cp -t .git/hooks a",
            "cp --target-directory=.git/hooks a",
            "ln -s a .git/hooks/x",
        ),
        *(
            "install -m 755 a .git/hooks/x",
            "tee .git/config",
            "tee -a x ~/.bashrc",
            "dd if=a of=.git/config",
            "touch .envrc",
        ),
        *(
            "chmod +x .git/hooks/x",
            "truncate -s 0 .git/index",
            "sed -i s/a/b/ .git/config",
            "rsync a .git/hooks/",
            "shred .netrc",
        ),
        *(
            "rm -rf .deepagents",
            "rm -rf .deepagents/sessions",
            "rm .deepagents/checkpoints/x",
            "mv .deepagents x",
            "rm -rf .g*",
        ),
        *(
            "rm -rf .[a-z]*",
            "rm -rf .???",
            "rm .deepagents/s*",
            "rm -rf a/.g?t",
            "rm ~/.ssh/id_rsa",
            "rm -rf ~/.ssh",
            "rm -rf ~/",
        ),
        *(
            "rm -rf /",
            "rm -rf .",
            "rm -rf ..",
            "rm -rf ../..",
            "rm -rf ./",
            "rm -rf a/..",
            "rm -rf ~",
            "find .git -delete",
        ),
        *(
            "git clean -x",
            "git clean -fdx",
            "git clean -f -X",
            "git -C a clean -xf",
            "git -c a=b clean -dfx .",
            "GIT clean -fx",
        ),
        *(
            "git config core.hooksPath x",
            "git config --add alias.x '!sh'",
            "git config --global core.pager x",
            "git config -e",
        ),
        *("git config --unset core.fsmonitor", "git config set core.sshCommand x", "git config include.path x"),
        *(
            "git config merge.tool x",
            "git config diff.x.textconv y",
            "git config --edit",
            "git config filter.x.clean y",
        ),
        *("git config push.helper x", "git config pull.x.command y"),
    ],
)
def test_risks(line: str) -> None:
    assert risky(line)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "rm -rf build",
            "rm -rf *",
            "rm *.pyc",
            "rm -rf node_modules .cache",
            "rm .gitignore",
            "mv a b",
            "cp .git/config x",
        ),
        *(
            "rsync -a .git/ backup/",
            "chmod +x run",
            "sed s/a/b/ .git/config",
            "sed -n 1p ~/.bashrc",
            "touch .github/x",
            "ls .git",
        ),
        *(
            "git clean -fd",
            "git clean -n",
            "git clean -fd -- x",
            "git clean -e x -f",
            "git config --get core.pager",
            "git config -l",
        ),
        *(
            "git config user.name x",
            "git config core.pager",
            "git config --list",
            "git config get core.pager",
            "git rm x",
            "git",
        ),
        *(
            "git config set user.email x",
            "git config color.ui auto",
            "git add .git",
            "find . -name x -delete",
            "rm a/../b",
        ),
        *(
            "rm .deepagents/skills/x",
            "touch .deepagents/AGENTS.md",
            "rm x.toml",
            "cat .bashrc",
            "echo .git",
            "dd if=.git/x of=y",
        ),
    ],
)
def test_no_risks(line: str) -> None:
    assert not risky(line)


@pytest.mark.parametrize(
    "path", [".g\u200cit/config", ".Git/x", "a/.GIT", ".deepagents/\u200bx.toml", ".SSH/x", "id_RSA"]
)
def test_spellings_that_lenient_file_systems_take(path: str) -> None:
    assert protected(path)


def test_the_name_that_a_link_leads_to_counts() -> None:
    assert risk_of_write("link/x", lambda _: ".git/hooks/x")
    assert risk_of_write(".git/x", lambda _: "elsewhere/x")
    assert risk_of_write("a", lambda path: path) is None
    assert irreplaceable("a/.deepagents/sessions/x.jsonl")


RM, PUSH = parse_rule("execute(rm *)"), parse_rule("execute(git push *)")


@hard_input("Approvals", "a denied command behind quotes, wrappers, substitutions, loops or functions", "denied")
@pytest.mark.parametrize(
    "line",
    [
        *(
            "rm",
            "rm x",
            "/bin/rm x",
            "'rm' x",
            '"r"m x',
            "r\\m x",
            "\\rm x",
            "$'rm' x",
            "$'\\x72m' x",
            "$'\\162m' x",
            '$"rm" x',
        ),
        *(
            "r''m x",
            "r\\\nm x",
            "ls; rm x",
            "ls|rm x",
            "ls\nrm x",
            "(rm x)",
            "{ rm x; }",
            "! rm x",
            "if rm x; then a; fi",
        ),
        *(
            "for x in a; do rm $x; done",
            "while :; do rm x; done",
            "case a in a) rm x;; esac",
            "f() { rm x; }; f",
            "X=1 rm x",
        ),
        *(
            "echo $(rm x)",
            "echo `rm x`",
            'echo "$(rm x)"',
            "echo <(rm x)",
            "echo ${a:-$(rm x)}",
            "a=$(rm x)",
            "cat <<E\n$(rm x)\nE",
        ),
        *(
            "> f rm x",
            "a > f; rm > g x",
            "sudo rm x",
            "sudo -u me rm x",
            "env A=b rm x",
            "nohup nice rm x",
            "xargs rm",
            "timeout 5 rm x",
        ),
        *(
            "sh -c 'rm x'",
            'bash -c "a; rm x"',
            "sudo sh -c 'cd a && rm x'",
            "sh -c \"sh -c 'rm x'\"",
            "eval rm x",
            "eval 'rm x'",
        ),
        *(
            "find . -exec rm {} +",
            "find . -name x -execdir /bin/rm {} \\;",
            "fd -x rm",
            "command rm x",
            "exec rm x",
            "busybox rm x",
        ),
        *(
            "trap 'rm x' EXIT",
            "trap 'rm\tx' EXIT",
            "sh -c 'rm>x'",
            "ssh host 'rm x'",
            "watch 'rm x'",
            "env -S 'rm x'",
            "coproc rm x",
            "time rm x",
            "rm 'not closed",
        ),
        *(
            "[[ -v a[$(rm x)] ]]",
            "declare a=$(rm x)",
            "((a[$(rm x)]))",
            "git -c alias.x='!rm' x; rm y",
            "a && rm x",
            "a &rm x",
        ),
    ],
)
def test_what_is_denied_is_found(line: str) -> None:
    assert denied(RM, line) == "yes"


@pytest.mark.parametrize(
    ("line", "of"),
    [
        *(
            ("$x y", RM),
            ("${x}m y", RM),
            ("r$x y", RM),
            ("rm$IFS-rf", RM),
            ("{rm,x}", RM),
            ("/bin/r? x", RM),
            ("r[m] x", RM),
        ),
        *(
            ("$(echo rm) x", RM),
            ("`x` y", RM),
            ("curl x | sh", RM),
            ("bash", RM),
            ("sh -s < x", RM),
            ("echo 'x", RM),
            ("sudo $x", RM),
        ),
        *(
            ("git $x", PUSH),
            ("git pu$x", PUSH),
            ("git p*", PUSH),
            ("$x push", PUSH),
            ("python -c \"os.system('rm x')\"", RM),
        ),
        *(
            ("[ -v 'a[$(rm x)]' ]", RM),
            ("a\0b", RM),
            ("a " * 20_000, RM),
            ("(" * 300, RM),
        ),
    ],
)
def test_what_may_be_denied_is_not_known(line: str, of: object) -> None:
    assert denied(of, line) == "maybe"  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "echo rm",
            "echo 'rm x'",
            "git rm x",
            "echo $x",
            "ls $(pwd)",
            "for x in a; do echo $x; done",
            "grep rm *",
            "./rmx",
            "rmdir x",
        ),
        *(
            "echo $x rm",
            "cat <<'E'\nrm x\nE",
            "# rm x",
            "git commit -m 'rm x'",
            "python x.py",
            "make rm",
            "a > rm",
            "l* x",
            "x=rm",
        ),
    ],
)
def test_what_is_not_denied(line: str) -> None:
    assert denied(RM, line) == "no"
    assert denied(PUSH, "git log $x") == denied(PUSH, "git pull") == "no"


def test_a_rule_for_a_whole_line_may_have_wildcards() -> None:
    rule = parse_rule("execute(curl * | sh)")
    assert denied(rule, "curl -s x | sh") == "yes"
    assert denied(rule, "curl -s x | cat") == "no"


def test_what_lines_write() -> None:
    assert suspects("for x in a; do b > c 2>> d; done > $e < f").writes == ("c", "d", UNKNOWN)
    assert suspects("a < b 2>&1 >&2").writes == ()
