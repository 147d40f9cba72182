"""Notes: what has changed in a part of the prompt, said in the conversation, as the prompt itself must not change.

Memory and skills consist of items, a file or a skill each, and a note names those that changed. Any other part is one
item. `items` and `noted` read prompts and notes back, so that the log alone tells what a model knows; the texts that
they read are made by `agent.memory` and `skills.catalogue`. When a note is due is the business of `agent.head`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..context.stubs import NOTE_MARK

Items = Mapping[str, str]
"""Texts by the path of a file, the name of a skill, or the empty name."""

_HEADINGS = {
    "memory": "AGENTS.md files have changed. What is said here replaces what was said of these files before.",
    "skills": "Skills have changed. What is said here replaces what was said of these skills before.",
}
HEADING = NOTE_MARK + ": {}"
_OTHER = "the system prompt has changed in one part, `{}`. What follows replaces it."
_GONE = "Gone, and no longer to be followed:"
_FENCE = re.compile("`{3,}")
_CUT = re.compile(r" \(the first [\d,]+ of [\d,]+ bytes; [^()]*\)$")
_SKILL = re.compile(r"^- ([^\s:]+): .*$", re.MULTILINE)


def items(part: str, text: str) -> Items:
    """The items of a part's text."""
    match part:
        case "memory":
            return dict(_files(text))
        case "skills":
            return {found[1]: found[0] for found in _SKILL.finditer(text)}
        case _:
            return {"": text} if text else {}


def changes(before: Items, now: Items) -> tuple[Items, tuple[str, ...]]:
    """The items that are new or different now, and the names of those that are gone."""
    return {k: v for k, v in now.items() if before.get(k) != v}, tuple(k for k in before if k not in now)


def note(part: str, changed: Items, gone: Sequence[str]) -> str:
    """What is said of the changes."""
    heading = HEADING.format(_HEADINGS.get(part) or _OTHER.format(part))
    lost = _lost(name or part for name in gone) if gone else ""
    between = "\n" if part == "skills" else "\n\n"
    return "\n\n".join(filter(None, (heading, lost, between.join(changed.values()))))


def noted(part: str, before: Items, text: str) -> Items:
    """What a model knows that knew `before` and was told the note `text`."""
    body = text.partition("\n\n")[2]
    if part not in _HEADINGS:
        return {} if body == _lost([part]) else items(part, body)
    gone: frozenset[str] = frozenset()
    if body.startswith(_GONE):
        lost, _, body = body.partition("\n\n")
        gone = frozenset(line.removeprefix("- ") for line in lost.split("\n")[1:])
    return {name: item for name, item in before.items() if name not in gone} | dict(items(part, body))


def _lost(names: Iterable[str]) -> str:
    return "\n".join((_GONE, *(f"- {name}" for name in names)))


def _files(text: str) -> Iterator[tuple[str, str]]:
    """Path and block of each file: a line that names it, then a fence that nothing in the file can close."""
    lines = text.split("\n")
    at = 1
    while at < len(lines):
        if _FENCE.fullmatch(lines[at]):
            end = next((n for n in range(at + 1, len(lines)) if lines[n] == lines[at]), len(lines) - 1)
            yield _CUT.sub("", lines[at - 1]), "\n".join(lines[at - 1 : end + 1])
            at = end
        at += 1
