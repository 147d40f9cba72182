"""The system prompt as an ordered list of parts, each counted, logged and shown by its name.

Our own words lie in the `*.md` files beside this module. A line in them that begins with `[if …]` is kept when its
facts hold: names of tools that are present, `mode:NAME` of the approvals, `git`; joined by `and`, alternatives by `or`.
So no hint names a tool that the model does not have. `*-small.md` hold the same in fewer words, for small windows. The
words of memory and skills come from `agent.memory` and `skills.catalogue`; when a part is sent again is the business of
`agent.head`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from ..context.messages import clean
from .config import PermissionMode
from .workspace import Workspace

Context = TypeVar("Context")
_CONDITION = re.compile(r"\[if ([^\]]+)\] (.*)")
_PLATFORMS = {"linux": "Linux", "darwin": "macOS"}
_ORDER = {
    name: place
    for place, name in enumerate(("custom", "base", "planning", "memory", "skills", "files", "subagents", "approvals"))
}
_DATA = ".deepagents/"
"""How our texts name the data folder; replaced where it lies elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A part of the system prompt. Names are unique within a prompt."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the model is told of where it works. Fixed for a session, so that the prompt's bytes stay the same."""

    workspace: str
    cwd: str
    platform: str
    date: str
    """The day on which the session began: `2026-11-30`."""
    git: bool
    data: str = ".deepagents"
    """The folder of our data, as `read_file` takes it."""


def environment_of(workspace: Workspace, today: date) -> Environment:
    """The facts about `workspace` on this machine."""
    return Environment(
        workspace=str(workspace.root),
        cwd=str(workspace.cwd),
        platform=_PLATFORMS.get(sys.platform, sys.platform),
        date=today.isoformat(),
        git=workspace.git,
        data=workspace.prefix,
    )


def build_prompt(
    *,
    environment: Environment,
    tools: Iterable[str],
    mode: PermissionMode,
    context: Context,
    small: bool = False,
    custom: str | Callable[[Context], str] = "",
    memory: str = "",
    skills: str = "",
    subagents: str = "",
    middleware: Iterable[tuple[str, str | Callable[[Context], str]]] = (),
) -> tuple[PromptPart, ...]:
    """The prompt's parts in their order; empty ones are left out.

    `tools` are the names of those present; `small` takes our texts in their short form. A part may be a function of
    `context`, the run's own data; it is called once. `middleware` are names and texts. Raises `ValueError` if two parts
    have one name.
    """
    facts = frozenset((*tools, f"mode:{mode}", *(("git",) if environment.git else ())))
    own = partial(_own, facts=facts, environment=environment, small=small)
    texts: list[tuple[str, str | Callable[[Context], str]]] = [
        ("custom", custom),
        ("base", f"{own('base')}\n\n{_describe(environment)}"),
        ("planning", own("planning")),
        ("memory", memory),
        ("skills", skills if "read_file" in facts else ""),
        ("files", own("files")),
        ("subagents", subagents),
        *middleware,
        ("approvals", own("approvals")),
    ]
    names = [name for name, _ in texts]
    if len(set(names)) < len(names):
        raise ValueError(f"two parts of the prompt have one name: {', '.join(sorted(names))}")
    resolved = ((name, clean(text if isinstance(text, str) else text(context)).strip()) for name, text in texts)
    return tuple(PromptPart(name=name, text=text) for name, text in resolved if text)


def in_order(parts: Iterable[PromptPart]) -> tuple[PromptPart, ...]:
    """Parts in the order of `build_prompt`; those of middleware as they come."""
    return tuple(sorted(parts, key=lambda part: _ORDER.get(part.name, _ORDER["subagents"])))


def prompt_text(parts: Iterable[PromptPart]) -> str:
    """The whole prompt as it is sent."""
    return "\n\n".join(part.text for part in parts)


def _own(name: str, *, facts: frozenset[str], environment: Environment, small: bool) -> str:
    """Our text `name` without the lines whose facts do not hold; empty if nothing but a heading is left."""
    kept = [line for line in (_kept(text, facts) for text in _lines(name, small)) if line is not None]
    if not any(line and not line.startswith("#") for line in kept):
        return ""
    return "\n".join(kept).strip().replace(_DATA, f"{environment.data}/")


@cache
def _lines(name: str, small: bool) -> tuple[str, ...]:
    path, short = (Path(__file__).with_name(f"{name}{form}.md") for form in ("", "-small"))
    return tuple((short if small and short.exists() else path).read_text("utf-8").splitlines())


def _kept(line: str, facts: frozenset[str]) -> str | None:
    condition = _CONDITION.fullmatch(line)
    if condition is None:
        return line
    holds = any(facts.issuperset(choice.split(" and ")) for choice in condition[1].split(" or "))
    return condition[2] if holds else None


def _describe(environment: Environment) -> str:
    kind = "a git repository" if environment.git else "not a git repository"
    return "\n".join(
        (
            f"Workspace: {environment.workspace} ({kind})",
            f"Working directory, where relative paths begin: {environment.cwd}",
            f"Platform: {environment.platform}. Date when the session began: {environment.date}",
        )
    )
