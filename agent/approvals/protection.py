"""What asks in every mode unless a rule names it: places whose content something else runs or obeys, and deletions
that nothing brings back.

`docs/approvals.md` has the list for people.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ..backends.paths import DATA_FOLDERS, HOME_NAME
from .guard import program
from .words import ACTIVE, UNKNOWN, glob_regex, has_pattern, names, written

Resolve = Callable[[str], str]
"""Names a path as rules know it: relative to the workspace, or absolute. The workspace is `.`, what it lies in `..`."""

_START_UP = names(
    """.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
    .kshrc .cshrc .tcshrc .login .logout .inputrc .xprofile .xinitrc .envrc config.fish .gitconfig .pam_environment"""
)
"""Files that a shell, or git, reads when it starts: what stands in them runs outside of any sandbox."""
_KEYS = names(
    """id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk authorized_keys .netrc .git-credentials .pypirc
    .pgpass"""
)
_KEY_FOLDERS = names(".ssh .gnupg .aws .kube")
_SETTINGS = {("git",), ("gh",), ("fish",), ("autostart",), ("systemd",), ("environment.d",)}
"""Folders within `.config` that hold what is run, or keys."""
_CHANGES = names("rm rmdir unlink shred mv tee truncate chmod chown chgrp touch dd sed setfacl chattr patch")
"""Programs that change or remove what any of their arguments names."""
_MAKES = names("cp ln install rsync scp")
"""Programs that change what their last argument names."""
_REMOVES = names("rm rmdir unlink shred mv")
_SAMPLES = (".git", HOME_NAME, ".ssh", ".gnupg", ".bashrc", ".profile", ".zshrc", ".gitconfig", *DATA_FOLDERS)
"""Names that a pattern may stand for."""
_GIT_VALUES = names("-C -c --git-dir --work-tree --namespace --config-env --exec-path --super-prefix")
"""Options of git that take the next word."""
_TAME = re.compile(r"(user|author|committer|color|advice|pull|push|fetch|rebase|merge|branch|init|i18n|log)\.[\w.-]+")
"""Settings of git that run nothing, as far as they are single values."""
_RUNNING = re.compile(r".*\.(\w*(driver|program|command|cmd|path|helper|editor|tool)|textconv)", re.IGNORECASE)
_READING = names("--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --list -l get list")


def protected(path: str) -> str | None:
    """Why a file must not be written without a word, whatever the mode, or None."""
    *folders, name = _plain(path).split("/")
    if ".git" in (*folders, name):
        return "what git finds in .git may run as a program"
    if HOME_NAME in folders and name.endswith(".toml"):
        return "it is this agent's own configuration"
    if _in_settings(folders, name) or name in _START_UP or ".ssh" in folders:
        return "a shell, git or ssh reads it when it starts"
    if name in _KEYS or _KEY_FOLDERS.intersection(folders) or folders[-1:] == [".docker"]:
        return "keys lie there"
    return None


def irreplaceable(path: str) -> str | None:
    """Why a file or folder must not be removed without a word, whatever the mode, or None."""
    parts = _plain(path).rstrip("/").split("/")
    name = parts[-1]
    if any(parts[at] == HOME_NAME and parts[at + 1] in DATA_FOLDERS for at in range(len(parts) - 1)):
        return "the session's own record lies there"
    if name == HOME_NAME:
        return "the session's own record lies in it"
    if name in _KEY_FOLDERS:
        return "keys lie there"
    return None


def risk_of_write(path: str, resolve: Resolve) -> str | None:
    """Why a redirection to `path` asks in every mode, or None."""
    return next((why for name in {path, resolve(path)} if (why := protected(name) or irreplaceable(name))), None)


def risk(words: Sequence[str], resolve: Resolve) -> str | None:
    """Why a command asks in every mode, or None. Words as `shell` and `suspects` give them."""
    name = program(words[0])
    if name == "git":
        return _risk_of_git(words[1:])
    targets = list(_targets(name, words[1:]))
    for target in targets:
        for spelled in spellings(target):
            if why := risk_of_write(spelled, resolve):
                return f"{written(target)}: {why}"
            if name in _REMOVES and _holds_all(spelled, resolve):
                return f"{written(target)}: the whole workspace lies there"
    return None


def _plain(path: str) -> str:
    """A path as file systems that are lenient see it: no case, no characters that do not count."""
    return "".join(c for c in path.casefold() if unicodedata.category(c) != "Cf")


def _in_settings(folders: Sequence[str], name: str) -> bool:
    if ".config" not in folders:
        return False
    inner = (*folders[folders.index(".config") + 1 :], name)
    return len(inner) > 1 and inner[:1] in _SETTINGS


def _targets(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """What a program changes, as far as its arguments tell."""
    plain = [word for word in arguments if not word.startswith("-")]
    if name == "sed" and not any(word.startswith(("-i", "--in-place")) for word in arguments):
        return
    if name in _CHANGES:
        yield from (word.partition("of=")[2] or word for word in plain)
    elif name in _MAKES:
        yield from plain[-1:]
        yield from (word.partition("=")[2] for word in arguments if word.startswith("--target-directory="))
        yield from (word for before, word in pairwise(arguments) if before == "-t")
    elif name == "find" and "-delete" in arguments:
        yield from plain[:1]


def spellings(target: str) -> Iterator[str]:
    """The paths that a word may stand for, as far as it tells."""
    if UNKNOWN in target:
        return
    if target.startswith(ACTIVE["~"]):
        yield "/" if target.rstrip("/") == ACTIVE["~"] else f"/~/{written(target[1:].lstrip('/'))}"
        return
    yield written(target)
    if has_pattern(target):
        *folders, name = target.split("/")
        for sample in _SAMPLES:
            if sample.startswith(".") <= name.startswith(".") and re.fullmatch(glob_regex(name), sample):
                yield "/".join([*map(written, folders), sample])


def _holds_all(path: str, resolve: Resolve) -> bool:
    return path == "/" or set(resolve(path).split("/")) <= {".", ".."}


def _risk_of_git(arguments: Sequence[str]) -> str | None:
    words = list(arguments)
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] in _GIT_VALUES else 1]
    if not words:
        return None
    command, *rest = words
    clusters = [word for word in rest if re.fullmatch(r"-[A-Za-z]+", word)]
    if command == "clean" and any("x" in word.casefold() for word in clusters):
        return "git clean -x removes files that git cannot bring back"
    if command == "config" and not _READING.intersection(rest):
        return _risk_of_git_config([word for word in rest if not word.startswith("-")], rest)
    return None


def _risk_of_git_config(plain: Sequence[str], rest: Sequence[str]) -> str | None:
    if plain[:1] in (["set"], ["unset"], ["rename-section"], ["remove-section"], ["edit"]):
        plain = plain[1:]
    elif len(plain) < 2 and not any(word.startswith(("-e", "--edit", "--unset", "--re")) for word in rest):
        return None  # a question
    key = plain[0] if plain else ""
    if _TAME.fullmatch(key) and not _RUNNING.fullmatch(key):
        return None
    return "what git finds in its configuration may run as a program"
