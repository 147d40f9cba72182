"""The agent: the loop, models, tools, middleware, approvals, memory, and the library's public names.

Imports from `context` and `skills`, never from `cli`. The names below load on first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agent import Agent as Agent
    from .build import create_deep_agent as create_deep_agent
    from .runtime import ToolRuntime as ToolRuntime
    from .tool import tool as tool

__all__ = ["Agent", "ToolRuntime", "create_deep_agent", "tool"]

_HOME = {"Agent": "agent", "ToolRuntime": "runtime", "create_deep_agent": "build", "tool": "tool"}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(ModuleType):
    """This package, whose `tool` is the function whatever was imported before: the import of the module of that name
    makes the module an attribute of the package, and the lazy name above would never be asked for."""

    @property
    def tool(self) -> object:
        """The function."""
        return import_module(".tool", __name__).tool

    @tool.setter
    def tool(self, module: ModuleType) -> None:
        """Forgets the module, which is found by its own name."""


sys.modules[__name__].__class__ = _Package
