"""Opens an agent as options, settings and keys say: the same way for headless runs and for the screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..agent.agent import Agent
from ..agent.build import Extras, build
from ..agent.credentials import load_credentials
from ..agent.sessions import Choice
from ..agent.workspace import Workspace, find_workspace
from .first_steps import default_model
from .options import RunOptions
from .settings import LoadedSettings, load_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What there is before anything is sent."""

    workspace: Workspace
    loaded: LoadedSettings
    agent: Agent | None
    """None where no model is set and no key suggests one."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know."""
        return (*self.loaded.notices, *(self.agent.notices if self.agent else self.workspace.notices))


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens agents with the same options again and again."""

    options: RunOptions
    interactive: bool = False
    """Somebody watches the events and answers questions."""

    def open(
        self,
        *,
        session: str | None = None,
        model: str | None = None,
        on_loaded: Callable[[LoadedSettings], None] = lambda _: None,
    ) -> Opened:
        """Reads settings anew and opens the agent. Raises `DeepagentError` or `StorageError`.

        `on_loaded` gets the settings before anything is made of them.
        """
        options = self.options
        workspace = find_workspace(options.cwd or Path(), environ=os.environ)
        flags = options.flags if model is None else {**options.flags, "model": model}
        loaded = load_settings(workspace, environ=os.environ, flags=flags, trust=options.trust)
        on_loaded(loaded)
        settings = loaded.settings
        if settings.model is None:
            keys = load_credentials(workspace.user).keys
            settings = replace(settings, model=default_model({*os.environ, *keys}))
        if settings.model is None:
            return Opened(workspace=workspace, loaded=loaded, agent=None)
        choice = Choice(session=session, fork=options.fork and session is not None, persist=options.persist)
        extras = Extras(add_dirs=options.add_dirs, demo=options.demo, interactive=self.interactive)
        agent = build(settings, workspace, environ=os.environ, choice=choice, extras=extras)
        return Opened(workspace=workspace, loaded=loaded, agent=agent)
