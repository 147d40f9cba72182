"""Commands that only read: what runs without being asked about where a sandbox holds it, and what does not."""

from __future__ import annotations

import os

import pytest
from deepagent.agent.approvals.lines import inside
from deepagent.agent.approvals.reading import READERS, only_reads
from deepagent.agent.approvals.shell import split
from hard_inputs import hard_input


def reads(line: str) -> bool:
    return only_reads(split(line), lambda path: inside(os.path.normpath(path)))


@pytest.mark.parametrize(
    "line",
    [
        *("cat a.py", "ls", "ls -la src", "head -n 5 a", "tail -20 a | grep -v x", "wc -l *.py", "du -sh .", "df -h"),
        *(
            "find . -name '*.py' -newer a",
            "rg -n --glob '*.py' TODO src",
            "grep -rn --include=*.py 'x' .",
            "sort -k2 -rn a",
        ),
        *("diff -u a b", "stat a; file b", "pwd && date +%F", "date", "which python", "type ls", "command -v node"),
        *(
            "echo 'a b'",
            "printf '%s\\n' a",
            "printf '100%\\n'",
            "test -f a && cat a",
            "tree -L 2",
            "uniq -c a",
            "cut -d: -f1 a",
        ),
        *(
            "sed -n '1,20p' a",
            "sed -n '$p' a b",
            "sed -n '1p; 3,5p' a",
            "basename a/b",
            "sha256sum a",
            "tr a b",
            "nl a",
        ),
        *("git status", "git status --short", "git log --oneline -5", "git --no-pager log -p", "git diff HEAD~1 -- a"),
        *(
            "git show HEAD:a.py",
            "git blame a",
            "git branch -a",
            "git branch --show-current",
            "git tag",
            "git remote -v",
        ),
        *(
            "git rev-parse --short HEAD",
            "git ls-files",
            "git stash list",
            "git reflog show",
            "git grep -n x",
            "git worktree list",
        ),
        *(
            "python3 --version",
            "node --version",
            "git --version",
            "cd src && ls",
            "cd src; git log -1",
            "(ls; cat a) | wc",
        ),
        *("if test -f a; then cat a; fi", "ls 2>/dev/null", "ls 2>&1 | head", "! grep -q x a"),
    ],
)
def test_it_only_reads(line: str) -> None:
    assert reads(line)


@hard_input("Approvals", "a reading command with an option that runs, writes or waits", "asked about")
@pytest.mark.parametrize(
    "line",
    [
        *("find . -exec rm {} +", "find . -delete", "find . -fprint x", "find . -okdir a", "find . -fls x", "find *"),
        *(
            "sort -o a b",
            "sort -uoa b",
            "sort --output=a b",
            "sort --outp a b",
            "sort --compress-program=x a",
            "sort *",
        ),
        *("uniq a b", "rg --pre=x y", "rg --pre x y", "rg -z y", "rg --hostname-bin=x y", "tree -o x", "file -C -m x"),
        *(
            "tail -f a",
            "tail --follow a",
            "diff --paginate a b",
            "date -s x",
            "date --set=x",
            "date 01010101",
            "hostname x",
        ),
        *(
            "printf -v x y",
            "printf %n x",
            "printf '%5n' x",
            "test -v x",
            "sed -n '1w x' a",
            "sed -i -n 1p a",
            "sed -n 1p *",
        ),
        *(
            "sed -n 'e id' a",
            "sed -n -f x a",
            "sed 1p a",
            "sed -n 1p a -i",
            "xxd a b",
            "tee a",
            "env",
            "printenv",
        ),
        *(
            "git -c a=b log",
            "git -C x log",
            "git --git-dir=x log",
            "git log --output=x",
            "git diff --ext-diff",
            "git diff --ext",
        ),
        *(
            "git log --textconv",
            "git show --textc",
            "git grep -Oless x",
            "git grep --open-files-in-pager x",
            "git log -p *",
        ),
        *(
            "git branch x",
            "git branch -d x",
            "git branch -D",
            "git branch --delete",
            "git branch -m x",
            "git tag x",
            "git tag -d",
        ),
        *(
            "git remote add a b",
            "git stash",
            "git stash pop",
            "git stash drop",
            "git reflog expire",
            "git worktree add x",
        ),
        *(
            "git config --get x",
            "git config a b",
            "git fetch",
            "git checkout a",
            "git log --show-signature",
            "git log --format=%G?",
        ),
        *("git help", "git x", "git", "git --paginate log", "git -p log", "git --exec-path=x log", "git --no-pager"),
        *(
            "python3 -c x",
            "python3 --version x",
            "pytest --version",
            "./ls",
            "/bin/ls",
            "LS",
            "cd",
            "cd -",
            "cd a b",
            "command ls",
        ),
        *(
            "ls && rm x",
            "ls | xargs cat",
            "ls > x",
            "cat < x",
            "ls $x",
            "X=1 ls",
            "ls & rm x",
            "ls $(id)",
            "time ls",
            "sudo ls",
        ),
    ],
)
def test_it_may_do_more(line: str) -> None:
    assert not reads(line)


@hard_input("Approvals", "a reading command that names something outside the workspace", "asked about")
@pytest.mark.parametrize(
    "line",
    [
        *(
            "cat /etc/passwd",
            "cat ../x",
            "cat a/../../x",
            "cat ~/x",
            "cat ~",
            "ls ..",
            "grep x -f/etc/passwd",
            "ls ~root",
        ),
        *("grep --file=/etc/passwd x", "grep --file=../x y", "cd .. && ls", "cd a && cat ../../x", "cd a && cat ../x"),
        *(
            "cd ~ && ls",
            "cd /; cat x",
            "diff a /x",
            "find / -name x",
            "git show --ignore-revs-file=/x",
            "wc --files0-from=/x",
        ),
    ],
)
def test_it_leads_out(line: str) -> None:
    assert not reads(line)


def test_no_program_of_the_list_runs_others() -> None:
    for name in (
        "sh",
        "env",
        "xargs",
        "awk",
        "sed",
        "less",
        "man",
        "nice",
        "tee",
        "dd",
        "cp",
        "mv",
        "rm",
        "ln",
        "jq",
        "vi",
    ):
        assert name not in READERS
