"""Puts an agent together from settings and a place: model, window, session, tools, prompt, policies.

The only module that knows all of these. It opens files, but asks no network; models connect on their first request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from ..context.budget import Budget, budget_for
from ..context.session import Session
from ..context.storage import StorageError
from ..context.tokens import Counter
from .agent import Agent
from .approvals.policy import Policy
from .approvals.rules import parse_rules
from .backends.environment import command_environment
from .backends.local import LocalBackend
from .checkpoints.files import Files
from .checkpoints.opening import open_checkpoints
from .checkpoints.retention import forget, tidy
from .checkpoints.store import Store
from .config import LimitSettings, PermissionMode, Settings
from .credentials import load_credentials
from .errors import ConfigError
from .git import GitError
from .known_windows import KnownWindows
from .middleware.approvals import Approvals, InForce
from .middleware.base import Middleware
from .middleware.checkpoints import Checkpoints
from .middleware.confinement import Confinement
from .middleware.guard import Guard
from .middleware.jobs import JobsEnded
from .middleware.limits import Limits
from .middleware.masking import Masking
from .middleware.quoting import Quoting
from .middleware.upkeep import Upkeep
from .model.choose import returned_by
from .model.types import Model
from .opened_models import Models, open_models
from .parts import Parts
from .prompt_source import PromptSource, skill_roots
from .removal import remove_expired
from .runtime import Context
from .sandbox.opening import open_sandbox
from .sandbox.sandbox import Sandbox
from .secrets import Masker, secret_values
from .sessions import Choice, open_session, open_storage, put_back
from .small_files import expand, read_small
from .storage import DiskStorage
from .subagents.definition import PREAMBLE, Subagent
from .subagents.files import all_subagents
from .subagents.tasks import Tasks
from .tokenizer import load_encoder
from .tool import Tool
from .tools import builtin_tools
from .workspace import Workspace, find_workspace

_SUMMARY_PROMPT = 20_000
"""Bytes of a file with the user's own words on summaries."""


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
    subagents: tuple[Subagent, ...] = ()
    """Further kinds of sub-agents; before those of files."""


def create_deep_agent(
    model: str | Model | None = None,
    *,
    tools: Sequence[Tool] = (),
    system_prompt: str | Callable[[Context], str] = "",
    middleware: Sequence[Middleware] = (),
    context: Context | None = None,
    cwd: str | Path = ".",
    settings: Settings | None = None,
    session: str | None = None,
    interactive: bool = False,
    subagents: Sequence[Subagent] = (),
) -> Agent:
    """An agent for Python programs: the same one that the command line runs.

    `model` is a name as `--model` takes it, or a `Model`. `system_prompt`, a text or a function of `context`, stands
    before our own. `session` continues an earlier one (empty: the newest). Nothing is read from settings files.
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
        prompt=cast(str | Callable[[object], str], system_prompt),
        interactive=interactive,
        model=None if isinstance(model, str) else model,
        subagents=tuple(subagents),
    )
    return build(settings, workspace, environ=os.environ, choice=Choice(session=session), extras=extras)


def build(
    settings: Settings, workspace: Workspace, *, environ: Mapping[str, str], choice: Choice, extras: Extras
) -> Agent:
    """The agent. Raises `ConfigError`, `AuthError`, `SessionError` or `StorageError`."""
    if missing := [folder for folder in extras.add_dirs if not folder.is_dir()]:
        raise ConfigError(f"--add-dir: {missing[0]} is no folder")
    credentials = load_credentials(workspace.user)
    known = KnownWindows(workspace.user / "cache" / "windows.json")
    models = open_models(settings, environ, credentials.keys, known, given=extras.model, demo=extras.demo)
    storage, on_close = open_storage(workspace, choice)
    try:
        session, notices = open_session(storage, workspace, choice)
    except BaseException:
        on_close()
        raise
    place = _Place(settings=settings, workspace=workspace, environ=environ, choice=choice, storage=storage)
    masker = Masker(secret_values(environ, credentials.keys, settings.secrets))
    notices = (*workspace.notices, *credentials.notices, *notices)
    try:
        return Agent(
            _parts(place, extras, session=session, models=models, masker=masker, notices=notices, on_close=on_close)
        )
    except BaseException:
        session.close()
        on_close()
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where an agent works, and by which settings."""

    settings: Settings
    workspace: Workspace
    environ: Mapping[str, str]
    choice: Choice
    storage: DiskStorage


def _parts(
    place: _Place,
    extras: Extras,
    *,
    session: Session,
    models: Models,
    masker: Masker,
    notices: tuple[str, ...],
    on_close: Callable[[], None],
    task: _Task | None = None,
) -> Parts:
    settings, workspace = place.settings, place.workspace
    budget = budget_for(models.window, settings.context)
    tools = (*builtin_tools(), *extras.tools)
    if task is not None and task.agent.tools is not None:
        tools = tuple(tool for tool in tools if tool.name in task.agent.tools)
    sandbox = open_sandbox(
        settings.sandbox, workspace, command_environment(place.environ, settings.secrets), extras.add_dirs
    )
    backend = _backend(place, extras, sandbox)
    counter = Counter(load_encoder, returned=returned_by(models.work))
    prompt = _prompt(place, extras, session=session, tools=tools, counter=counter, budget=budget)
    approvals = _approvals(place, backend, sandbox, extras, task)
    files, inner = _inner(place, extras, session=session, backend=backend, masker=masker, task=task)
    tasks, found = _tasks(place, extras, session=session, models=models, masker=masker, approvals=approvals, task=task)
    outer = (Masking(masker), Quoting(), Limits(settings.limits), *extras.middleware, Guard())
    return Parts(
        workspace=workspace,
        session=session,
        model=models.work,
        summary_model=models.summary,
        summary_window=models.summary_window,
        known_windows=models.known,
        summary_prompt=_summary_prompt(settings, workspace),
        cache=models.cache,
        budget=budget,
        settings=settings,
        backend=backend,
        sandbox=sandbox,
        tools=tools,
        middleware=(*outer, approvals, *inner, *tasks),
        files=files,
        masker=masker,
        counter=counter,
        prompt=prompt,
        price=models.price,
        summary_price=models.summary_price,
        sees=models.sees if settings.provider.images is None else settings.provider.images,
        context=extras.context,
        notices=(*notices, *prompt.notices(), *found),
        lent=task is not None and task.agent.model is None,
        set_mode=_mode_setter(approvals, prompt),
        allow=approvals.allow,
        on_close=partial(_leave, place, session.id, on_close),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What the agent of a task has from its parent."""

    agent: Subagent
    session: Session
    """The parent's: changes of files are taken down there."""
    in_force: InForce


def _tasks(
    place: _Place,
    extras: Extras,
    *,
    session: Session,
    models: Models,
    masker: Masker,
    approvals: Approvals,
    task: _Task | None,
) -> tuple[tuple[Middleware, ...], tuple[str, ...]]:
    """The tool that hands work on, unless this agent works for another, and notices about files of sub-agents."""
    settings, workspace = place.settings, place.workspace
    if task is not None or not settings.subagents.enabled:
        return (), ()
    agents, notices = all_subagents(workspace)
    agents |= {agent.name: agent for agent in extras.subagents}

    def spawn(agent: Subagent, limits: LimitSettings) -> Agent:
        changed = replace(settings, limits=limits, model=agent.model or settings.model)
        text = "\n\n".join(filter(None, (PREAMBLE, agent.prompt)))
        child = Session.start_task(session)
        return Agent(
            _parts(
                replace(place, settings=changed),
                replace(extras, prompt=text, middleware=()),
                session=child,
                models=_own_models(changed, place, models.known) if agent.model else models,
                masker=masker,
                notices=(),
                on_close=lambda: None,
                task=_Task(agent=agent, session=session, in_force=approvals.in_force),
            )
        )

    tasks = Tasks(agents, spawn, limits=settings.limits, at_once=settings.subagents.at_once, folder=workspace.prefix)
    return (tasks,), notices


def _prompt(
    place: _Place, extras: Extras, *, session: Session, tools: Sequence[Tool], counter: Counter, budget: Budget
) -> PromptSource:
    return PromptSource(
        settings=place.settings,
        workspace=place.workspace,
        session=session,
        tools=tuple(tool.name for tool in tools),
        counter=counter,
        budget=budget,
        mode=place.settings.permissions.mode,
        custom=extras.prompt,
        context=extras.context,
    )


def _own_models(settings: Settings, place: _Place, known: KnownWindows) -> Models:
    return open_models(settings, place.environ, load_credentials(place.workspace.user).keys, known)


def _leave(place: _Place, session: str, on_close: Callable[[], None]) -> None:
    """What is done when a session was closed: old ones go, if that is wished for, and old states of files."""
    if place.settings.keep_days is not None and place.choice.persist:
        with suppress(StorageError, OSError):  # next time
            for removed in remove_expired(place.storage, place.settings.keep_days, keep=session):
                forget(place.workspace.checkpoints, removed)
    if place.choice.persist:
        with suppress(GitError, OSError):  # next time
            tidy(Store(place.workspace.checkpoints))
    on_close()


def _summary_prompt(settings: Settings, workspace: Workspace) -> str:
    """What the user wants a summary to hold. Raises `ConfigError` if the file cannot be read."""
    if settings.summary_prompt is None:
        return ""
    path = workspace.root / expand(settings.summary_prompt)
    try:
        data, size = read_small(path, _SUMMARY_PROMPT)
        if size > _SUMMARY_PROMPT:
            raise ConfigError(f"summary_prompt: {path} has more than {_SUMMARY_PROMPT:,} bytes")
        return data.decode()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"summary_prompt: {path} cannot be read: {error}") from error


def _mode_setter(approvals: Approvals, prompt: PromptSource) -> Callable[[PermissionMode], None]:
    def set_mode(mode: PermissionMode) -> None:
        approvals.set_mode(mode)
        prompt.mode = mode

    return set_mode


def _inner(
    place: _Place, extras: Extras, *, session: Session, backend: LocalBackend, masker: Masker, task: _Task | None
) -> tuple[Files, tuple[Middleware, ...]]:
    """What lies closest around a call of a tool, and what it knows of files. What is not kept needs no upkeep."""
    folder = place.workspace.checkpoints if place.choice.persist else place.storage.root / "checkpoints"
    origin = task.agent.name if task else ""
    opened = open_checkpoints(place.workspace, task.session if task else session, folder, mask=masker.mask)
    upkeep = Upkeep(partial(put_back, place.storage, place.workspace, session.id))
    around = Checkpoints(
        opened.keeper,
        backend.resolve,
        masker.mask,
        interactive=extras.interactive,
        session=task.session if task else None,
    )
    ended = JobsEnded(backend, masker.mask)
    confinement = Confinement(interactive=extras.interactive, origin=origin)
    return opened.files, (ended, confinement, *((upkeep,) if place.choice.persist else ()), around)


def _approvals(place: _Place, backend: LocalBackend, sandbox: Sandbox, extras: Extras, task: _Task | None) -> Approvals:
    permissions = place.settings.permissions
    policy = Policy(
        mode=permissions.mode,
        allow=parse_rules(permissions.allow),
        ask=parse_rules(permissions.ask),
        deny=parse_rules(permissions.deny),
    )
    return Approvals(
        task.in_force if task else policy,
        backend,
        interactive=extras.interactive,
        root=place.workspace.root,
        confined=lambda: sandbox.state().engine is not None,
        origin=task.agent.name if task else "",
    )


def _backend(place: _Place, extras: Extras, sandbox: Sandbox) -> LocalBackend:
    workspace = place.workspace
    return LocalBackend(
        workspace.root,
        workspace.cwd,
        extra=(
            *extras.add_dirs,
            *(root.path for root in skill_roots(workspace)),
            workspace.user / "AGENTS.md",
        ),
        data=place.storage.root,
        environ=place.environ,
        hidden_env=place.settings.secrets,
        sandbox=sandbox,
    )
