"""Repositories that try to make whoever looks at them run a program of theirs."""

from __future__ import annotations

import subprocess
from pathlib import Path

_HOOKS = ("post-index-change", "pre-commit", "post-checkout", "reference-transaction", "pre-auto-gc", "post-rewrite")
_PROGRAMS = (
    *("core.fsmonitor", "core.pager", "core.editor", "core.askPass", "core.sshCommand", "core.gitProxy"),
    *("diff.external", "filter.p.process", "credential.helper", "gpg.program", "uploadpack.packObjectsHook"),
    *("filter.a=b.c.clean", "filter.a=b.c.smudge", "diff.x.textconv", "diff.x.command", "merge.x.driver"),
)


def git(folder: Path, *args: str) -> str:
    """Runs git as a user would."""
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "protocol.file.allow=always")
    command = ("git", *who, *args)
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def set_traps(repo: Path, folder: Path) -> Path:
    """Makes the repository run programs wherever it can; each writes its name to the file that is returned."""
    mark = folder / "ran"
    trap = folder / "trap"
    trap.write_text(f'#!/bin/sh\nbasename "$0" >> {mark}\ncat\n')
    trap.chmod(0o755)

    def named(name: str) -> str:
        (folder / name).symlink_to(trap)
        return str(folder / name)

    hook = named("hook")
    (repo / ".git" / "hooks").mkdir(exist_ok=True)
    for name in _HOOKS:
        (repo / ".git" / "hooks" / name).symlink_to(hook)
    (repo / "git").symlink_to(named("local-git"))
    for name in ("status", "diff", "ls-files", "update-index"):
        git(repo, "config", f"alias.{name}", f"!{trap}")
    for key in _PROGRAMS:
        git(repo, "config", key, named(key.replace("=", "-")))
    git(repo, "config", "filter.a=b.c.required", "true")
    git(repo, "config", "filter.p.required", "true")
    rules = "*.txt filter=a=b.c diff=x merge=x\n*.bin filter=p\n"
    (repo / ".git" / "info" / "attributes").write_text(rules)
    (repo / ".gitattributes").write_text(rules)
    return mark


def lose_a_blob(repo: Path, path: str, mark: Path) -> None:
    """Takes the content of a committed file away; a program that writes `fetch` to `mark` is to bring it."""
    fetch = mark.with_name("fetch")
    fetch.write_text(f"#!/bin/sh\necho fetch >> {mark}\n")
    fetch.chmod(0o755)
    oid = git(repo, "rev-parse", f"HEAD:{path}").strip()
    (repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    for key, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", f"ext::{fetch} %S"),
        ("remote.origin.promisor", "true"),
        ("protocol.ext.allow", "always"),
    ):
        git(repo, "config", key, value)
