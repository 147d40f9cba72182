"""`deepagent doctor` and `/doctor`: what the agent finds here, and what would help. Asks no network."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .. import __version__

if TYPE_CHECKING:
    from ..agent.workspace import Workspace
    from .settings import LoadedSettings

_SPACE = 1024**3
"""Free bytes below which a disk is told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "note", "bad"]
    """`note`: it works, but not everything does; `bad`: the agent cannot work like this."""
    text: str
    """What was found, and what would help."""


SIGNS = {"ok": "✓", "note": "!", "bad": "✗"}


def checks(cwd: Path, *, environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> tuple[Check, ...]:
    """Looks at everything. Raises nothing: what cannot be looked at is a finding."""
    from ..agent.errors import DeepagentError
    from ..agent.workspace import find_workspace
    from .settings import load_settings

    found = [
        Check(name="deepagent", state="ok", text=f"{__version__}, Python {sys.version.split()[0]}, {sys.platform}")
    ]
    try:
        workspace = find_workspace(cwd, environ=environ)
        found += _place(workspace)
        loaded = load_settings(workspace, environ=environ, flags=flags or {})
        found += _settings(loaded)
        found += _model(loaded, workspace, environ)
        found += _sandbox(loaded, workspace, environ)
        found += _texts(loaded, workspace)
    except DeepagentError as error:
        found.append(Check(name="settings", state="bad", text=str(error)))
    return (*found, *_programs(environ), *_terminal(environ))


def text_of(found: tuple[Check, ...]) -> str:
    """The findings, one below the other."""
    width = max(len(check.name) for check in found)
    rows: list[str] = []
    for check in found:
        first, *rest = check.text.splitlines() or [""]
        rows += [f"{SIGNS[check.state]} {check.name:<{width}}  {first}", *(f"{'':<{width + 4}}{line}" for line in rest)]
    return "\n".join(rows)


def _place(workspace: Workspace) -> Iterator[Check]:
    from ..agent.git import state

    kind = "git repository" if workspace.git else "no git repository: changes can be undone all the same"
    git = state(workspace.root) if workspace.git else None
    label = f"{kind}, {git.label}" if git else kind
    broken = workspace.git and git is None
    yield Check(
        name="workspace",
        state="note" if broken else "ok",
        text=f"{workspace.root} ({'git cannot read it' if broken else label})",
    )
    for notice in workspace.notices:
        yield Check(name="data", state="note", text=notice)
    where = workspace.data if workspace.data.exists() else workspace.root
    free = shutil.disk_usage(where).free
    if free < _SPACE:
        yield Check(name="disk", state="note", text=f"{free:,} bytes are free where conversation data goes")


def _settings(loaded: LoadedSettings) -> Iterator[Check]:
    said = "trusted" if loaded.trusted else "not trusted" if loaded.ignored else "none of this folder"
    yield Check(name="settings", state="ok", text=f"project settings: {said}")
    for notice in loaded.notices:
        yield Check(name="settings", state="note", text=notice)


def _model(loaded: LoadedSettings, workspace: Workspace, environ: Mapping[str, str]) -> Iterator[Check]:
    from ..agent.credentials import load_credentials
    from ..agent.errors import DeepagentError
    from ..agent.model.catalog import model_info
    from ..agent.model.choose import open_model
    from .first_steps import default_model
    from .options import DEMO_SCRIPT

    credentials = load_credentials(workspace.user)
    for notice in credentials.notices:
        yield Check(name="keys", state="note", text=notice)
    name = loaded.settings.model or default_model({*environ, *credentials.keys})
    if name is None:
        yield Check(
            name="model", state="bad", text="none is set, and no key suggests one: /login, or deepagent auth set"
        )
        return
    try:
        open_model(
            name,
            lane=loaded.settings.provider.lane,
            keys=lambda variable: environ.get(variable) or credentials.keys.get(variable),
            environ=environ,
            window=loaded.settings.context.window,
            demo=DEMO_SCRIPT,
        )
    except DeepagentError as error:
        yield Check(name="model", state="bad", text=f"{name}: {error}")
        return
    known = model_info(name)
    window = f"window {known.max_input:,}" if known and known.max_input else "its window is found out on the first call"
    yield Check(name="model", state="ok", text=f"{name}, {window}")


def _sandbox(loaded: LoadedSettings, workspace: Workspace, environ: Mapping[str, str]) -> Iterator[Check]:
    from ..agent.backends.environment import command_environment
    from ..agent.sandbox.opening import open_sandbox

    kept = command_environment(environ, loaded.settings.secrets)
    state = open_sandbox(loaded.settings.sandbox, workspace, kept).state()
    lacks = "".join(f"\nit does not keep commands from: {lack}" for lack in state.lacks)
    yield Check(
        name="sandbox", state="ok" if state.engine else "note", text=f"{state.engine or 'none'}: {state.reason}{lacks}"
    )


def _texts(loaded: LoadedSettings, workspace: Workspace) -> Iterator[Check]:
    from ..agent.prompt_source import find_memory, find_skills

    memory = find_memory(workspace, loaded.settings.memory)
    skills = find_skills(workspace)
    yield Check(name="memory", state="ok", text=f"{len(memory.files)} AGENTS.md or further files")
    yield Check(name="skills", state="ok", text=f"{len(skills.skills)}")
    for problem in (*memory.notices, *map(str, skills.problems)):
        yield Check(name="skills" if problem not in memory.notices else "memory", state="note", text=problem)


def _programs(environ: Mapping[str, str]) -> Iterator[Check]:
    path = environ.get("PATH", os.defpath)
    for name, without in _PROGRAMS.items():
        where = shutil.which(name, path=path)
        yield Check(name=name, state="ok" if where else "note", text=where or f"not found: {without}")


_PROGRAMS = {
    "bash": "commands run through /bin/sh",
    "git": "there is no branch, no /diff, and undo knows only what the file tools wrote",
    "rg": "searches take longer; the results are the same",
}


def _terminal(environ: Mapping[str, str]) -> Iterator[Check]:
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    if "utf" not in locale.lower():
        yield Check(
            name="locale", state="note", text=f"{locale or 'none'} is no UTF-8: letters beyond ASCII may look wrong"
        )
    if environ.get("TERM", "") in ("", "dumb"):
        yield Check(name="terminal", state="note", text="TERM names no terminal for the screen; headless runs work")
