"""Provider keys that people gave us: `credentials.toml` in the user's folder, readable by its owner alone.

Keys are stored by the name of the environment variable that litellm reads. A key in the environment goes before a
stored one. No error, no `repr` and no listing holds a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from .errors import ConfigError
from .small_files import parse_toml, read_small, write_private

FILE = "credentials.toml"
_MAX_FILE = 1024 * 1024
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_EXCEPTIONS = {
    "ollama_chat": "OLLAMA_API_KEY",
    "google": "GEMINI_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "together": "TOGETHERAI_API_KEY",
    "cohere_chat": "COHERE_API_KEY",
    "azure_text": "AZURE_API_KEY",
}
"""Providers whose variable is not `PROVIDER_API_KEY`, from litellm 1.110."""
PROVIDERS = (
    *("anthropic", "azure", "azure_ai", "cerebras", "cohere", "dashscope", "deepinfra", "deepseek", "fireworks_ai"),
    *("gemini", "github", "groq", "hosted_vllm", "huggingface", "lm_studio", "minimax", "mistral", "moonshot"),
    *("nvidia_nim", "ollama", "openai", "openrouter", "perplexity", "replicate", "sambanova", "together_ai"),
    *("voyage", "watsonx", "xai", "zai"),
)
"""Providers offered by name; any other of litellm's may be given too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The stored keys."""

    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """By the name of the environment variable."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """A stored key as it may be shown."""

    name: str
    hint: str
    """The key's last four characters, or less of a short one."""


def variable_for(provider: str) -> str:
    """The environment variable of `provider`: a provider's name, or such a variable's. Raises `ConfigError`."""
    name = provider.strip()
    if _VARIABLE.fullmatch(name):
        return name
    name = name.lower().replace("-", "_")
    if name not in PROVIDERS and name not in _EXCEPTIONS:
        _refuse_typo(provider, name)
    return _EXCEPTIONS.get(name, f"{name.upper()}_API_KEY")


def load_credentials(user_folder: Path) -> Credentials:
    """Reads the stored keys. Rights that are too wide are narrowed, with a notice. Raises `ConfigError`."""
    path = user_folder / FILE
    try:
        data, size = read_small(path, _MAX_FILE)
    except FileNotFoundError:
        return Credentials()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if size > _MAX_FILE:
        raise ConfigError(f"{path}: has {size:,} bytes; {_MAX_FILE:,} are the limit")
    return Credentials(keys=_keys(parse_toml(data, path).get("keys", {}), path), notices=_narrow(path))


def get_key(user_folder: Path, provider: str, environ: Mapping[str, str]) -> str | None:
    """The key of `provider`, from the environment, else stored; None where there is none. Raises `ConfigError`."""
    name = variable_for(provider)
    return environ.get(name) or load_credentials(user_folder).keys.get(name)


def set_key(user_folder: Path, provider: str, key: str) -> str:
    """Stores `key` and returns the variable's name. Raises `ConfigError` for what cannot be a key."""
    name = variable_for(provider)
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"this is no key for {name}: it must be one word of ASCII characters")
    _write(user_folder, {**load_credentials(user_folder).keys, name: key})
    return name


def remove_key(user_folder: Path, provider: str) -> bool:
    """Forgets the stored key of `provider`; False where there was none. Raises `ConfigError`."""
    keys = dict(load_credentials(user_folder).keys)
    if keys.pop(variable_for(provider), None) is None:
        return False
    _write(user_folder, keys)
    return True


def list_keys(user_folder: Path) -> tuple[StoredKey, ...]:
    """The stored keys by name, as they may be shown. Raises `ConfigError`."""
    keys = load_credentials(user_folder).keys
    return tuple(StoredKey(name=name, hint=_hint(keys[name])) for name in sorted(keys))


def _keys(table: object, path: Path) -> dict[str, str]:
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: keys is no table")
    found: dict[str, str] = {}
    for name, value in cast(dict[str, object], table).items():
        if not isinstance(value, str):
            raise ConfigError(f"{path}: keys.{name} is no text")
        found[name] = value
    return found


def _hint(key: str) -> str:
    return "…" + key[-min(4, len(key) // 4) :] if len(key) >= 4 else "…"


def _refuse_typo(provider: str, name: str) -> None:
    from difflib import get_close_matches

    near = get_close_matches(name, [*PROVIDERS, *_EXCEPTIONS], n=1, cutoff=0.8)
    if near:
        raise ConfigError(f"{provider} is no provider; did you mean {near[0]}?")
    if not _VARIABLE.fullmatch(name.upper()):
        raise ConfigError(f"{provider!r} is neither a provider nor the name of a variable such as OPENAI_API_KEY")


def _narrow(path: Path) -> tuple[str, ...]:
    mode = path.stat().st_mode & 0o777
    if not mode & 0o077:
        return ()
    try:
        path.chmod(0o600)
    except OSError as error:
        return (f"{path} can be read by others (mode {mode:o}) and its rights cannot be changed: {error.strerror}",)
    return (f"{path} could be read by others (mode {mode:o}); now by you alone. Consider new keys",)


def _write(user_folder: Path, keys: Mapping[str, str]) -> None:
    import tomli_w

    path = user_folder / FILE
    try:
        write_private(path, tomli_w.dumps({"keys": dict(sorted(keys.items()))}).encode())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
