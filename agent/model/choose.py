"""Opens the model that a name means: which provider, which lane, which address, which key.

The lanes are imported when one is used: the lean lane costs httpx, litellm costs seconds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ...context.messages import AssistantMessage
from ...context.tokens import Returned, as_thought
from ..errors import AuthError, ConfigError
from .catalog import chat_models, model_info
from .providers import OLLAMA, OLLAMA_ENDPOINT, OPENAI, PROVIDERS, Provider, is_loopback
from .quirks import profile_of
from .served import Server
from .translate import Origin
from .types import Model

Keys = Callable[[str], str | None]
"""The key behind the name of an environment variable (`OPENAI_API_KEY`), from wherever keys are kept; None: no key."""

_OPENAI_NAMES = re.compile(r"(?:gpt-|chatgpt-|codex-|o\d(?:-|$)|ft:)")
_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_MILLION = "[1m]"
_MILLION_HEADERS = {"anthropic-beta": "context-1m-2025-08-07"}
_NO_KEY = "none"
"""litellm sends no request without a key, even to servers that want none."""
_NO_EFFORT = frozenset({"openai", "groq", "mistral", "xai"})
"""Providers that refuse an effort for models that do not reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """What a name means."""

    name: str
    """As the user gave it."""
    provider: Provider
    model: str
    """As the provider knows it."""
    endpoint: str
    """Empty: litellm knows it."""
    key: str | None
    lean: bool


def open_model(
    name: str,
    *,
    lane: Literal["auto", "lean", "litellm"] = "auto",
    keys: Keys,
    environ: Mapping[str, str],
    window: int | None = None,
    demo: Path | None = None,
) -> Model:
    """The model of this name, ready for requests; nothing is sent yet.

    `keys` gives keys by the names of their variables, `environ` those that it has not, and addresses. `window`
    (tokens) is for servers that are told what to serve. `demo` is the script behind the name `demo`. The model has the
    attributes `lane` and `endpoint`. Raises `AuthError` for a missing key, `ConfigError` for a name that means nothing.
    """
    script = Path(name.removeprefix("scripted:")) if name.startswith("scripted:") else demo if name == "demo" else None
    if script:
        from .scripted import ScriptedModel

        return ScriptedModel(script, name=name)
    target = _target(name.strip(), keys, environ)
    lean = target.lean and lane != "litellm"
    if lane == "lean" and not lean:
        raise ConfigError(f"{name} cannot be reached by the lean lane; use the lane `auto` or `litellm`")
    _need_key(target)
    return _open_lean(target, environ) if lean else _open_litellm(target, window)


def is_local(model: Model) -> bool:
    """Whether the model is served by this machine: what window it has, only the server knows."""
    return is_loopback(getattr(model, "endpoint", ""))


def server_of(model: Model) -> Server | None:
    """The user's own server behind the model, which can be asked for the window; None for providers, who state it."""
    return getattr(model, "server", None)


async def prepare(model: Model) -> None:
    """Loads what a model's first request needs, in a thread: litellm, where the model is reached through it."""
    load: Callable[[], Awaitable[None]] | None = getattr(model, "prepare", None)
    if load is not None:
        await load()


def returned_by(model: Model) -> Callable[[AssistantMessage], Returned]:
    """What of its reasoning goes back to the model with each request."""
    return getattr(model, "returned", as_thought)


def _target(name: str, keys: Keys, environ: Mapping[str, str]) -> _Target:
    prefix, slash, rest = name.partition("/")
    if prefix in {"ollama", "ollama_chat"} and rest:
        return _ollama(name, rest, keys, environ)
    named = PROVIDERS.get(prefix) if slash else None
    configured = named and (named is OPENAI or named.keyless or _key(named, keys, environ))
    if OPENAI.base(environ) and not configured:
        provider, model = OPENAI, name  # a server of that shape, whatever it calls its models
    elif named:
        provider, model = named, rest
    else:
        provider, model = _provider_of(name), name
    endpoint = provider.base(environ) or provider.endpoint
    lean = bool(provider.endpoint) and not _needs_responses(provider, model, endpoint)
    key = _key(provider, keys, environ)
    return _Target(name=name, provider=provider, model=model, endpoint=endpoint, key=key, lean=lean)


def _ollama(name: str, model: str, keys: Keys, environ: Mapping[str, str]) -> _Target:
    """Ollama's own API, which alone takes the window; the older `ollama/` means the same."""
    endpoint = OLLAMA.base(environ).removesuffix("/v1") or OLLAMA_ENDPOINT
    key = _key(OLLAMA, keys, environ)
    return _Target(name=name, provider=OLLAMA, model=model, endpoint=endpoint, key=key, lean=False)


def _provider_of(name: str) -> Provider:
    """The provider of a name without a prefix of our table: as litellm resolves it."""
    if _OPENAI_NAMES.match(name):
        return OPENAI
    info = model_info(name)
    if info:
        return PROVIDERS.get(info.provider) or Provider(prefix=info.provider, keys=(), keyless=True)
    if "/" in name:  # a provider that litellm may know
        return Provider(prefix=name.partition("/")[0], keys=(), keyless=True)
    near = difflib.get_close_matches(name.lower(), chat_models(), n=3, cutoff=0.75)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    raise ConfigError(f"No provider is known for the model {name!r}. Name it as `provider/model`.{hint}")


def _key(provider: Provider, keys: Keys, environ: Mapping[str, str]) -> str | None:
    return next((key for name in provider.keys if (key := keys(name) or environ.get(name))), None)


def _needs_responses(provider: Provider, model: str, endpoint: str) -> bool:
    """Whether only OpenAI's responses API serves the model with tools; litellm speaks that one.

    The table says so of some models. From GPT-5.4 on, OpenAI's own chat endpoint refuses tools while a model reasons,
    which the table does not tell.
    """
    if endpoint != provider.endpoint:
        return False
    info = model_info(f"{provider.prefix}/{model}")
    version = _VERSION.match(model) if provider is OPENAI else None
    recent = bool(version) and (int(version[1]), int(version[2] or 0)) >= (5, 4)
    return recent or bool(info and info.mode == "responses")


def _need_key(target: _Target) -> None:
    provider = target.provider
    own_server = provider is OPENAI and target.endpoint != OPENAI.endpoint
    if target.key or provider.keyless or own_server:
        return
    raise AuthError(
        f"There is no key for {provider.prefix}, which {target.name} needs. "
        f"Set {provider.keys[0]} or run `deepagent auth set {provider.prefix}`."
    )


def _open_lean(target: _Target, environ: Mapping[str, str]) -> Model:
    from .lean import LeanModel
    from .patience import LOCAL_PATIENCE

    provider, endpoint = target.provider, target.endpoint
    known = endpoint == provider.endpoint and not is_loopback(endpoint)
    profile, info = profile_of(provider.prefix if known else "", target.model, "lean"), model_info(target.name)
    profile = replace(profile, most_output=info.max_output if info else None)
    if provider.prefix in _NO_EFFORT and info and not info.supports_reasoning:
        profile = replace(profile, effort="none")
    organization = environ.get("OPENAI_ORGANIZATION") if known and provider is OPENAI else None
    return LeanModel(
        target.name,
        origin=_origin(target, target.model),
        profile=profile,
        key=target.key,
        headers={"OpenAI-Organization": organization} if organization else None,
        patience=LOCAL_PATIENCE if is_loopback(endpoint) else None,
        proxies=not is_loopback(endpoint),
        server=_server(target),
        environ=environ,
    )


def _open_litellm(target: _Target, window: int | None) -> Model:
    from .litellm_lane import LitellmModel
    from .patience import LOCAL_PATIENCE

    provider, model = target.provider, target.model
    million = model.endswith(_MILLION)
    model = model.removesuffix(_MILLION)
    full = model if provider.keys == () or model.startswith(f"{provider.prefix}/") else f"{provider.prefix}/{model}"
    profile, info = profile_of(provider.prefix, model, "litellm"), model_info(target.name)
    profile = replace(profile, most_output=info.max_output if info else None)
    if profile.vendor == "anthropic" or provider.prefix.startswith("bedrock"):
        profile = replace(profile, default_output=_room(target.name))
    own_address = target.endpoint if target.endpoint != provider.endpoint or is_loopback(target.endpoint) else ""
    return LitellmModel(
        target.name,
        origin=replace(_origin(target, full), endpoint=own_address),
        profile=profile,
        key=target.key or (_NO_KEY if own_address else None),
        headers=_MILLION_HEADERS if million and provider.prefix == "anthropic" else None,
        window=window,
        patience=LOCAL_PATIENCE if is_loopback(target.endpoint) else None,
        server=_server(target),
    )


def _server(target: _Target) -> Server | None:
    """Who can be asked: a server that speaks OpenAI's API or Ollama's, and is not the provider's own."""
    ollama, usual = target.provider is OLLAMA, target.provider.endpoint
    if not (ollama or usual) or (target.endpoint == usual and not is_loopback(usual)):
        return None
    return Server(endpoint=target.endpoint, model=target.model, key=target.key, ollama=ollama)


def _room(name: str) -> int | None:
    """Tokens for an answer at providers that else stop at a few thousand: what the budget keeps free (DESIGN §4)."""
    info = model_info(name)
    if not info or not info.max_output or not info.max_input:
        return None
    return min(info.max_output, info.max_input * 13 // 100, 32_000)


def _origin(target: _Target, model: str) -> Origin:
    provider = target.provider
    known = not provider.endpoint or target.endpoint == provider.endpoint
    return Origin(
        provider=provider.prefix if known else "",
        model=model,
        endpoint=target.endpoint,
        key=provider.keys[0] if provider.keys else "",
    )
