"""Sub-agents from Markdown files: front matter says what one is, the text below it what it is told.

`.deepagents/agents/*.md` of the project and of the user's folder; the project's wins. A file that cannot be understood
is reported with its reason, never passed over in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ...skills.read import Broken, one_line, read_document
from ..config import LimitSettings, settings_from
from ..errors import ConfigError
from ..workspace import Workspace
from .definition import GENERAL, Subagent

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LIMITS = ("max_turns", "max_tokens", "max_cost", "timeout")
_KNOWN = {"name", "description", "tools", "model", *_LIMITS}
_MOST = 100
"""Files that are looked at in one folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The sub-agents of some folders, and what is wrong with others."""

    agents: tuple[Subagent, ...]
    notices: tuple[str, ...]


def all_subagents(workspace: Workspace) -> tuple[dict[str, Subagent], tuple[str, ...]]:
    """All that there are in a workspace, by name, and notices about files that are none."""
    found = find_subagents(workspace.subagents, within=workspace.root)
    return {agent.name: agent for agent in (GENERAL, *found.agents)}, found.notices


def find_subagents(folders: tuple[Path, ...], *, within: Path | None = None) -> Found:
    """The sub-agents in `folders`, the first of each name. Raises nothing.

    `within` is the project: its files may not be links out of it, and choose no model, which would send what the agent
    sees elsewhere and at another price.
    """
    agents: dict[str, Subagent] = {}
    notices: list[str] = []
    for folder in folders:
        for path in _files(folder, notices):
            try:
                agent, more = _read(path, folder, within)
            except Broken as error:
                where = f"{path}:{error.line}" if error.line else str(path)
                notices.append(f"{where} {error.reason}; this sub-agent is not there")
            except (OSError, ConfigError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                notices.append(f"{path} cannot be used ({one_line(reason)}); this sub-agent is not there")
            else:
                notices += [f"{path} {text}" for text in more]
                agents.setdefault(agent.name, agent)
    return Found(agents=tuple(agents.values()), notices=tuple(notices))


def _files(folder: Path, notices: list[str]) -> Iterator[Path]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".md" and not path.name.startswith("."))
    except FileNotFoundError:
        return
    except OSError as error:
        notices.append(f"{folder} cannot be read ({error.strerror}); its sub-agents are not there")
        return
    if len(paths) > _MOST:
        notices.append(f"{folder} holds {len(paths):,} sub-agents; the first {_MOST} are looked at")
    yield from paths[:_MOST]


def _read(path: Path, folder: Path, within: Path | None) -> tuple[Subagent, tuple[str, ...]]:
    """One file. Raises `Broken`, `ConfigError` or `OSError`."""
    name = path.stem
    if not _NAME.fullmatch(name) or name == GENERAL.name:
        raise Broken("has a name that is taken or breaks the rule (a-z, 0-9 and single hyphens)")
    project = within if within is not None and folder.is_relative_to(within) else None
    if project is not None and not path.resolve(strict=True).is_relative_to(project.resolve()):
        raise Broken("is a link out of the project")
    document = read_document(path)
    notices = list(document.notices)
    if document.fields.get("name") not in (None, name):
        notices.append(f"has another name in its front matter; it is called {name}, like its file")
    notices += [f"has a field {field!r} that means nothing here" for field in document.fields if field not in _KNOWN]
    if project is not None and document.fields.get("model") is not None:
        notices.append("names a model, which only sub-agents in your own folder may")
    agent = Subagent(
        name=name,
        description=document.description,
        prompt=document.body,
        tools=_tools(document.fields.get("tools")),
        model=None if project is not None else _text(document.fields.get("model"), "model"),
        limits=_limits(document.fields),
        path=path,
    )
    return agent, tuple(notices)


def _tools(value: object) -> tuple[str, ...] | None:
    """Names in a list, or in one text with commas. A wrong value must not become "all"."""
    if value is None:
        return None
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in cast(list[object], items)):
        raise Broken("has tools that are no list of names")
    return tuple(filter(None, (item.strip() for item in cast(list[str], items))))


def _text(value: object, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise Broken(f"has a {name} that is no text")
    return value


def _limits(fields: Mapping[object, object]) -> LimitSettings:
    """Raises `ConfigError` that names the field."""
    return settings_from({"limits": {name: fields[name] for name in _LIMITS if name in fields}}).limits
