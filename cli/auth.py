"""Keys: tried with one request, then stored. Serves `deepagent auth set` and the screen's login alike."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..agent.credentials import set_key, variable_for
from ..agent.errors import AuthError, ConfigError, DeepagentError, UnknownModelError
from ..agent.model.choose import open_model
from ..agent.model.types import ModelRequest
from ..agent.small_files import parse_toml, write_private
from ..agent.workspace import Workspace
from ..context.messages import Text, UserMessage, new_id, timestamp
from .first_steps import DEFAULTS
from .settings import FILE
from .trust import read_settings

_OUTPUT = 16
"""Tokens that the test request may bring back."""
_SECONDS = 45.0
"""How long the test request may take; litellm alone needs up to 17 to load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a test request came to."""

    problem: str = ""
    """What went wrong, without the key in it; empty where the provider answered."""
    refused: bool = False
    """The key, or the model that was named with it, is of no use: there is nothing to store."""


async def set_key_asking(provider: str, workspace: Workspace, *, test: bool) -> int:
    """The exit code. A key that the provider refuses is not stored; one that could not be tried is, and it says so."""
    name = variable_for(provider)
    key = _ask(name)
    trial = await try_key(name, key, environ=os.environ) if test and key else Trial()
    if trial.refused:
        print(f"deepagent: not stored. {trial.problem}", file=sys.stderr)
        return 1
    set_key(workspace.user, provider, key)
    untested = f" It could not be tried: {trial.problem}" if trial.problem else ""
    print(f"Stored {name}.{untested}")
    return 0


def _ask(name: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"{name} (not shown): ").strip()
    return sys.stdin.readline().strip()


def model_of_key(variable: str) -> str | None:
    """The model that a key stands for when none is named; None where we know of none."""
    return dict(DEFAULTS).get(variable)


async def try_key(variable: str, key: str, *, environ: Mapping[str, str], model: str | None = None) -> Trial:
    """Sends one small request with the key, to `model` or to the one that the key stands for. Raises nothing."""
    name = model or model_of_key(variable)
    if name is None:
        return Trial(problem="no model of this provider is known here")
    try:
        async with asyncio.timeout(_SECONDS):
            await _send(name, {**environ, variable: key} if key else environ)
    except TimeoutError:
        return Trial(problem=f"no answer came within {_SECONDS:.0f} s")
    except DeepagentError as error:
        refused = isinstance(error, AuthError) or (model is not None and isinstance(error, _NAME_IS_WRONG))
        return Trial(problem=_without(key, str(error)), refused=refused)
    return Trial()


_NAME_IS_WRONG = (UnknownModelError, ConfigError)


async def _send(name: str, environ: Mapping[str, str]) -> None:
    model = open_model(name, lane="auto", keys=environ.get, environ=environ, window=None)
    message = UserMessage(id=new_id(), time=timestamp(), content=(Text(text="Say ok."),))
    try:
        async for _ in model.stream(ModelRequest(system="", messages=(message,), max_output=_OUTPUT)):
            pass
    finally:
        await model.aclose()


def _without(key: str, text: str) -> str:
    """`text` without the key: some providers repeat it in what they say."""
    return text.replace(key, "…") if key else text


def keep_model(user: Path, name: str) -> Path | None:
    """Makes `name` the model of this user's settings, where they name none. Raises `ConfigError`.

    Returns the file, or None where it names a model already: that is then for its owner to change.
    """
    import tomli_w

    path = user / FILE
    data = read_settings(path) or b""
    if "model" in parse_toml(data, path):
        return None
    line = tomli_w.dumps({"model": name}).encode()
    try:
        write_private(path, line + data.removeprefix(b"\xef\xbb\xbf"))  # a key of no table stands before all tables
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    return path
