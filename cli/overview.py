"""What the start of the screen tells: where we are, what answers, what is loaded, how the last session ended.

Gathered in a thread after the first frame. Importing this module loads nothing of the agent; how it is laid out is the
business of `cli.tui.start`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from ..agent.model.catalog import ModelInfo
    from ..agent.workspace import Workspace
    from ..context.budget import Window
    from ..context.view import View
    from .last_session import LastSession
    from .opening import Opened

_SOURCES = {"user": "set", "server": "as served", "overflow": "as the server said", "table": "table"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Something that every request begins with, or that a resumed session has already."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything that is told at the start. What came from files and servers is as it came: unsafe to print."""

    version: str = __version__
    folder: str
    """With `~` for the home folder."""
    git: str = ""
    """`main +3 ~2`; empty where there is no repository."""
    trusted: bool = False
    sandbox: str = ""
    """`sandbox bubblewrap, network asks`; empty where it is not known."""
    model: str = ""
    """Empty: there is none yet."""
    window: str = ""
    """`window 200k (table)`."""
    price: str = ""
    """`per million $3 in, 0.30 cached, 15 out`."""
    used: int = 0
    """Tokens of a request as it would be sent now: the gauge's figure."""
    exact: bool = False
    """The provider reported `used`."""
    loaded: tuple[Load, ...] = ()
    """Adds up to `used`."""
    notices: tuple[str, ...] = ()
    last: LastSession | None = None


def overview_of(opened: Opened, view: View | None = None) -> Overview:
    """What there is to tell about an agent that was opened, or about a place without a model. Takes a moment.

    In another thread than the agent's, hand in the session's `view`, taken on the agent's own.
    """
    from ..agent.git import state
    from .last_session import last_session

    workspace, agent = opened.workspace, opened.agent
    found = state(workspace.root) if workspace.git else None
    here = Overview(
        folder=shown_folder(workspace.cwd),
        git=found.label if found else "",
        trusted=opened.loaded.trusted,
        notices=opened.notices,
    )
    if agent is not None:
        here = replace(here, sandbox=_sandbox(agent))
    if agent is None:
        return replace(here, last=last_session(workspace, model=None, overhead=0))
    view = view or agent.session.view
    here = _with_agent(here, workspace, agent, view)
    if view.messages:
        return here
    overhead = sum(load.tokens for load in here.loaded[:-1])
    return replace(here, last=last_session(workspace, model=agent.parts.model.name, overhead=overhead))


def shown_folder(path: Path) -> str:
    """A folder with `~` for the home folder."""
    home = os.environ.get("HOME") or str(Path.home())
    text = str(path)
    return f"~{text[len(home) :]}" if text == home or text.startswith(f"{home.rstrip('/')}/") else text


def _with_agent(here: Overview, workspace: Workspace, agent: Agent, view: View) -> Overview:
    from ..agent.model.catalog import model_info

    model, window = agent.parts.model, agent.parts.budget.window
    account = agent.account(view)
    return replace(
        here,
        model=model.name,
        window=_window_text(window),
        price=_price_text(agent, model_info(model.name)),
        used=account.used,
        exact=account.source == "reported",
        loaded=tuple(_loads(agent, workspace, [(row.name, row.tokens) for row in account.rows])),
        notices=(*here.notices, *_window_notice(model.name, window)),
    )


def _sandbox(agent: Agent) -> str:
    settings, engine = agent.parts.settings.sandbox, agent.parts.sandbox.state().engine
    if engine is None:
        return "no command runs: nothing confines" if settings.mode == "strict" else "no sandbox"
    return f"sandbox {engine}, network {'open' if settings.network else 'asks'}"


def _window_text(window: Window) -> str:
    from .gauge import tokens

    return f"window {tokens(window.tokens)} ({_SOURCES.get(window.source, 'assumed')})"


def _window_notice(model: str, window: Window) -> Iterator[str]:
    if window.source == "assumed":
        yield (f"the window of {model} is not known: {window.tokens:,} tokens are assumed; --context-window N sets it")


def _price_text(agent: Agent, info: ModelInfo | None) -> str:
    from ..agent.model.choose import is_local

    model = agent.parts.model
    if model.name == "demo" or model.name.startswith("scripted:"):
        return "scripted, costs nothing"
    if is_local(model):
        return "served by this machine"
    if info is None or not info.prices:
        return "price unknown"
    price = info.prices[0]
    if not (price.input or price.output):
        return "costs nothing"
    cached = f", {_dollars(price.cache_read)} cached" if price.cache_read != price.input else ""
    more = ", more for long requests" if len(info.prices) > 1 else ""
    return f"per million ${_dollars(price.input)} in{cached}, {_dollars(price.output)} out{more}"


def _dollars(each: float) -> str:
    """US dollars of a million tokens: `3`, `0.30`, `0.075`."""
    price = round(each * 1_000_000, 4)
    if price == int(price):
        return str(int(price))
    return f"{price:.2f}" if round(price, 2) == price else f"{price:g}"


def _loads(agent: Agent, workspace: Workspace, rows: Sequence[tuple[str, int]]) -> Iterator[Load]:
    """The rows of the account as the start names them; what was said already is one."""
    said = 0
    for name, tokens in rows[:-1]:
        kind, _, count = name.partition(", ")
        match kind:
            case "System prompt":
                yield Load(name="prompt", tokens=tokens)
            case "Tools":
                yield Load(name=f"{count} tools", tokens=tokens)
            case "Memory":
                yield Load(name=_memory_name(agent, workspace), tokens=tokens)
            case "Skills":
                yield Load(name=_skills_name(workspace), tokens=tokens)
            case _:
                said += tokens
    if said:
        yield Load(name="conversation", tokens=said)
    name, rest = rows[-1]
    yield Load(name="margin" if "margin" in name else "not accounted for", tokens=rest)


def _memory_name(agent: Agent, workspace: Workspace) -> str:
    from ..agent.prompt_source import find_memory

    files = find_memory(workspace, agent.parts.settings.memory).files
    return f"{len(files)} memory files" if len(files) > 1 else files[0].path.name if files else "memory"


def _skills_name(workspace: Workspace) -> str:
    from ..agent.prompt_source import find_skills

    count = len(find_skills(workspace).skills)
    return "1 skill" if count == 1 else f"{count} skills"
