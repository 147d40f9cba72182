"""`deepagent auth set`: asks for a key without echo, tries it with one request, and stores it."""

from __future__ import annotations

import getpass
import os
import sys

from ..agent.credentials import set_key, variable_for
from ..agent.errors import AuthError, ModelError
from ..agent.model.choose import open_model
from ..agent.model.types import ModelRequest
from ..agent.workspace import Workspace
from ..context.messages import Text, UserMessage, new_id, timestamp
from .first_steps import DEFAULTS

_OUTPUT = 16
"""Tokens that the test request may bring back."""


async def set_key_asking(provider: str, workspace: Workspace, *, test: bool) -> int:
    """The exit code. A key that the provider refuses is not stored; one that could not be tried is, and it says so."""
    name = variable_for(provider)
    key = _ask(name)
    problem = await _try(name, key) if test and key else None
    if isinstance(problem, AuthError):
        print(f"deepagent: not stored. {problem}", file=sys.stderr)
        return 1
    set_key(workspace.user, provider, key)
    untested = f" It could not be tried: {problem}" if problem else ""
    print(f"Stored {name}.{untested}")
    return 0


def _ask(name: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"{name} (not shown): ").strip()
    return sys.stdin.readline().strip()


async def _try(name: str, key: str) -> Exception | None:
    """Sends one small request with the key; what went wrong, if anything."""
    model_name = dict(DEFAULTS).get(name)
    if model_name is None:
        return ModelError("no model of this provider is known here")
    model = open_model(model_name, lane="auto", keys={name: key}.get, environ=os.environ, window=None)
    message = UserMessage(id=new_id(), time=timestamp(), content=(Text(text="Say ok."),))
    try:
        async for _ in model.stream(ModelRequest(system="", messages=(message,), max_output=_OUTPUT)):
            pass
    except ModelError as error:
        return error
    finally:
        await model.aclose()
    return None
