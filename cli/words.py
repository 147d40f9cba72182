"""The names of the sub-commands, as data: help, dispatch and the check for typos read them here."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "demo": "watch a small repair, without network or key",
    "doctor": "check what the agent finds here, and say what is missing",
    "auth": "store, list and remove API keys",
    "config": "show every setting and where it comes from",
    "sessions": "list the sessions of this workspace, or remove one",
    "archive": "search and read what was ever said",
    "context": "show what a request holds, or check it in CI",
    "skills": "list, show and check skills",
    "memory": "list the AGENTS.md files in the prompt",
}
"""Each sub-command with one line of help, in the order of the help page."""


def nearest_command(word: str) -> str | None:
    """The sub-command that is one typo away from a single word, or None."""
    if not word or word.startswith("-") or any(c.isspace() for c in word):
        return None
    return next((name for name in COMMANDS if _one_typo(word, name)), None)


def _one_typo(word: str, name: str) -> bool:
    """Whether one letter added, left out, changed, or swapped with its neighbour makes `name` of `word`."""
    if word == name or abs(len(word) - len(name)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name)))
    rest, wanted = word[at:], name[at:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    return wanted in (rest[1:], swapped) or rest == wanted[1:] or rest[1:] == wanted[1:]
