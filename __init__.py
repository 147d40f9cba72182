"""deepagent: a terminal coding agent whose speciality is context engineering.

This file lies at the root of the repository because the repository root *is* the package `deepagent`: the folder
`context/` is `deepagent.context`, and so on. Generic names such as `context` would collide in site-packages.

The public names are handed out lazily, so that `import deepagent` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agent.agent import Agent as Agent
    from .agent.build import create_deep_agent as create_deep_agent
    from .agent.runtime import ToolRuntime as ToolRuntime
    from .agent.tool import tool as tool

__version__ = "0.1.0"

__all__ = ["Agent", "ToolRuntime", "__version__", "create_deep_agent", "tool"]


def __getattr__(name: str) -> object:
    if name not in __all__:  # first: pytest asks this file, loaded under another name, for names of its own
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import agent

    return getattr(agent, name)
