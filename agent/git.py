"""Git, through GitPython: the one module that imports it.

Our own calls run no hooks, no signing and no file system monitor of the repository.
"""

from __future__ import annotations

from pathlib import Path

from git import Actor, Repo

_QUIET = (("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false"), ("commit.gpgsign", "false"))


def make_repository(folder: Path, message: str) -> None:
    """Makes a repository of everything in `folder`, with one commit on `main`."""
    author = Actor("deepagent", "deepagent@localhost")
    with Repo.init(folder, initial_branch="main") as repo:
        with repo.config_writer() as config:
            for key, value in _QUIET:
                section, _, name = key.partition(".")
                config.set_value(section, name, value)
        repo.git.add("--all")
        repo.index.commit(message, author=author, committer=author, skip_hooks=True)


def changes(folder: Path) -> str:
    """The uncommitted changes of the repository at `folder`, as a diff without colours."""
    with Repo(folder) as repo:
        return repo.git.diff("--no-ext-diff", "--no-textconv", "--no-color")
