"""Puts an agent together from settings and a place: model, window, session, tools, prompt, policies.

The only module that knows all of these. It opens files, but asks no network; models connect on their first request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..context.budget import budget_for
from ..context.tokens import Counter
from .agent import Agent, Parts
from .approvals.policy import Policy
from .approvals.rules import parse_rules
from .backends.local import LocalBackend
from .config import Settings
from .credentials import load_credentials
from .errors import ConfigError
from .middleware.approvals import Approvals
from .middleware.base import Middleware
from .middleware.guard import Guard
from .middleware.limits import Limits
from .middleware.masking import Masking
from .model.catalog import model_info
from .model.choose import open_model
from .model.retry import RetryingModel, RetryPolicy
from .model.types import Model
from .prompt_source import PromptSource, skill_roots
from .secrets import Masker, secret_values
from .sessions import Choice, open_session, open_storage
from .storage import DiskStorage
from .tokenizer import load_encoder
from .tool import Tool
from .tools import builtin_tools
from .windows import check_price, price_of, window_of
from .workspace import Workspace, find_workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a caller adds to an agent."""

    tools: tuple[Tool, ...] = ()
    middleware: tuple[Middleware, ...] = ()
    context: object = None
    prompt: str | Callable[[object], str] = ""
    """Text, or a function of the context, at the head of the system prompt."""
    add_dirs: tuple[Path, ...] = ()
    interactive: bool = False
    """Somebody watches the events and answers `ApprovalAsked`."""
    model: Model | None = None
    """A model of the caller's own, instead of the one that the settings name."""
    demo: Path | None = None
    """The script behind the model name `demo`."""


def create_deep_agent(
    model: str | Model | None = None,
    *,
    tools: Sequence[Tool] = (),
    system_prompt: str | Callable[[object], str] = "",
    middleware: Sequence[Middleware] = (),
    context: object = None,
    cwd: str | Path = ".",
    settings: Settings | None = None,
    session: str | None = None,
    interactive: bool = False,
) -> Agent:
    """An agent for Python programs: the same one that the command line runs.

    `model` is a name as `--model` takes it, or a `Model`. `session` continues an earlier one (empty: the newest).
    Raises `ConfigError`, `AuthError`, `SessionError` or `StorageError`.
    """
    workspace = find_workspace(Path(cwd), environ=os.environ)
    settings = settings or Settings()
    if isinstance(model, str):
        settings = replace(settings, model=model)
    extras = Extras(
        tools=tuple(tools),
        middleware=tuple(middleware),
        context=context,
        prompt=system_prompt,
        interactive=interactive,
        model=None if isinstance(model, str) else model,
    )
    return build(settings, workspace, environ=os.environ, choice=Choice(session=session), extras=extras)


def build(
    settings: Settings, workspace: Workspace, *, environ: Mapping[str, str], choice: Choice, extras: Extras
) -> Agent:
    """The agent. Raises `ConfigError`, `AuthError`, `SessionError` or `StorageError`."""
    credentials = load_credentials(workspace.user)
    open_named = partial(_open_model, settings=settings, environ=environ, keys=credentials.keys, demo=extras.demo)
    model = extras.model or open_named(_model_name(settings))
    summary_model = open_named(settings.summary_model) if settings.summary_model else model
    info = model_info(model.name)
    check_price(settings, info, model)
    storage, on_close = open_storage(workspace, choice)
    masker = Masker(secret_values(environ, credentials.keys, settings.secrets))
    session, session_notices = open_session(storage, workspace, choice)
    budget = budget_for(window_of(settings, model, info), settings.context)
    tools = (*builtin_tools(), *extras.tools)
    try:
        backend = _backend(workspace, storage, environ, settings, extras)
        prompt = PromptSource(
            settings=settings,
            workspace=workspace,
            session=session,
            tools=tuple(tool.name for tool in tools),
            budget=budget,
            custom=extras.prompt,
            context=extras.context,
        )
        return Agent(
            Parts(
                workspace=workspace,
                session=session,
                model=_retrying(model, settings),
                summary_model=_retrying(summary_model, settings),
                summary_window=window_of(settings, summary_model, model_info(summary_model.name)).tokens,
                budget=budget,
                settings=settings,
                backend=backend,
                tools=tools,
                middleware=_middleware(settings, masker, backend, extras),
                masker=masker,
                counter=Counter(load_encoder),
                prompt=prompt.parts,
                price=partial(price_of, info),
                max_output=None,
                context=extras.context,
                notices=(*workspace.notices, *credentials.notices, *session_notices, *prompt.notices()),
                on_close=on_close,
            )
        )
    except BaseException:
        session.close()
        on_close()
        raise


def _middleware(settings: Settings, masker: Masker, backend: LocalBackend, extras: Extras) -> tuple[Middleware, ...]:
    """The policies, the outermost first."""
    permissions = settings.permissions
    policy = Policy(mode=permissions.mode, allow=parse_rules(permissions.allow), deny=parse_rules(permissions.deny))
    return (
        Masking(masker),
        Limits(settings.limits),
        *extras.middleware,
        Guard(),
        Approvals(policy, backend, interactive=extras.interactive),
    )


def _model_name(settings: Settings) -> str:
    if settings.model is None:
        raise ConfigError("no model is set")
    return settings.model


def _open_model(
    name: str, *, settings: Settings, environ: Mapping[str, str], keys: Mapping[str, str], demo: Path | None
) -> Model:
    return open_model(
        name,
        lane=settings.provider.lane,
        keys=lambda variable: environ.get(variable) or keys.get(variable),
        environ=environ,
        window=settings.context.window,
        demo=demo,
    )


def _retrying(model: Model, settings: Settings) -> Model:
    return RetryingModel(model, RetryPolicy(attempts=settings.provider.retries + 1))


def _backend(
    workspace: Workspace, storage: DiskStorage, environ: Mapping[str, str], settings: Settings, extras: Extras
) -> LocalBackend:
    return LocalBackend(
        workspace.root,
        workspace.cwd,
        extra=(*extras.add_dirs, *(root.path for root in skill_roots(workspace))),
        data=storage.root,
        environ=environ,
        hidden_env=settings.secrets,
    )
