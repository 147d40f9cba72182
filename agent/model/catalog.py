"""What is known of a model by its name: window, output limit, prices, abilities.

From the table in litellm's package, read as a file: litellm itself is not imported. The table is read at the first
question, in some 50 ms. What a server really serves, and what the user set, stand above it (DESIGN §4).
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from ...context.entries import Usage
from .prices import Prices, prices_in
from .prices import cost as _cost

Row = Mapping[str, Any]

_FILE = "model_prices_and_context_window_backup.json"
_CHAT = frozenset({"chat", "responses", "completion"})
_SELF_HOSTED = frozenset({"hosted_vllm", "lm_studio", "llamacpp", "llamafile", "ollama", "ollama_chat", "vllm"})
"""What such a server serves depends on how it was started, whatever the model can."""
_ROUTERS = frozenset({"openrouter", "vercel_ai_gateway"})
"""They pass on the models of others, under `vendor/name`, at the vendor's price."""
_OTHER_PREFIX = {
    "google": "gemini",
    "x-ai": "xai",
    "mistralai": "mistral",
    "moonshotai": "moonshot",
    "z-ai": "zai",
    "ollama_chat": "ollama",
    "converse": "bedrock",
}
_TOTALS = frozenset({128_000, 400_000, 1_050_000})
"""Whole windows of OpenAI's models: a row whose input and output add up to one of them states the input alone."""
_MILLION = "[1m]"
_FREE = (Prices(above=0, input=0.0, output=0.0, cache_read=0.0, cache_write=0.0),)
_DATE = re.compile(r"[-@](?:\d{4}-\d\d-\d\d|\d\d-\d{4}|\d\d-\d\d|\d{8}|\d{6}|\d{4}|latest|preview|exp|experimental)$")
_PLACE = re.compile(r"^bedrock/(?:arn:.*/|(?:us|eu|ap|sa|ca|me|af)(?:-gov)?-[a-z]+-\d/|invoke/)")
"""Where Bedrock serves the model: the same model has other rows too."""
_FAMILY = re.compile(r"^(?:(gemini/)|)models/")
"""Google's own names begin with it."""
_TAG = re.compile(r"@[a-z0-9_-]*$")
"""Vertex's version, or a host that a user's own naming adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """A model as the table knows it. Sizes are tokens."""

    name: str
    """The row's name."""
    provider: str
    mode: str
    """`chat`, `responses` (only OpenAI's responses API serves it), `completion`, `embedding`, …"""
    max_input: int | None
    """The window that a budget works with; the answer counts against it unless `input_only`."""
    max_output: int | None
    input_only: bool
    """`max_input` leaves out the answer: nothing has to be kept free for it."""
    prices: tuple[Prices, ...]
    """By growing input; empty where unknown."""
    supports_vision: bool
    supports_reasoning: bool
    supports_tools: bool

    @property
    def total(self) -> int | None:
        """Input and output together."""
        if self.max_input is None:
            return None
        return self.max_input + (self.max_output or 0) if self.input_only else self.max_input


def cost(info: ModelInfo | None, usage: Usage) -> float | None:
    """US dollars for a call, or None where the price is unknown."""
    return _cost(info.prices, usage) if info else None


@lru_cache(maxsize=512)
def model_info(name: str) -> ModelInfo | None:
    """What is known of the model of this name, or None. Never raises.

    `name` is as users write it: with a provider's prefix or without, a date, a variant (`:free`), `[1m]`.
    """
    plain = name.strip().lower()
    if _MILLION in plain:
        info = model_info(plain.replace(_MILLION, ""))
        return replace(info, max_input=1_000_000, input_only=False) if info else None
    for key in _keys(plain):
        if row := _row(key):
            info = _info(key, row)
            return replace(info, prices=_FREE) if plain.endswith(":free") else info
    return None


def chat_models() -> tuple[str, ...]:
    """The names of all rows that are models to talk with, sorted."""
    return tuple(sorted(name for name in _table() if (row := _row(name)) and row.get("mode") in _CHAT))


def _keys(name: str) -> Iterator[str]:
    """Names under which a row may stand, best first."""
    yield from _spellings(name)
    elsewhere = _FAMILY.sub(r"\1", _PLACE.sub("bedrock/", name))
    if elsewhere != name:
        yield from _keys(elsewhere)
        return
    prefix, slash, rest = name.partition("/")
    if not slash:
        yield from _dated(name)
        return
    other = _OTHER_PREFIX.get(prefix)
    if other:
        yield from _spellings(f"{other}/{rest}")
    if prefix in _ROUTERS:
        yield from _keys(rest)
    elif prefix not in _SELF_HOSTED:
        provider = other or prefix
        yield from (key for key in _keys(rest) if _provider(key).startswith(provider))


def _spellings(name: str) -> Iterator[str]:
    """`name`, without a variant or tag, with the other dots or dashes, without dates and stages, best first."""
    tuned, colon, base = name.partition(":") if name.startswith("ft:") else ("", "", name)
    plain = base.partition(":")[0]
    for spelled in dict.fromkeys((base, plain, _TAG.sub("", plain))):
        one = tuned + colon + spelled
        while one:
            yield one
            yield re.sub(r"(\d)\.(\d)", r"\1-\2", one)
            shorter = _DATE.sub("", re.sub(r"-v\d+(?::\d+)?$", "", one))
            one = shorter if shorter != one else ""


def _dated(name: str) -> Iterator[str]:
    """The newest row that is `name` and a date."""
    dated = [key for key in _table() if key.startswith(f"{name}-") and _DATE.sub("", key) == name]
    yield from sorted(dated)[-1:]


def _provider(key: str) -> str:
    return str((_row(key) or {}).get("litellm_provider", ""))


def _row(key: str) -> Row | None:
    """The row of this name; one that is another's alias takes what the other says."""
    row = _table().get(key)
    if not row:
        return None
    alias = row.get("alias_of")
    return {**_table().get(alias, {}), **row} if isinstance(alias, str) else row


def _info(key: str, row: Row) -> ModelInfo:
    max_input, max_output = _size(row.get("max_input_tokens")), _size(row.get("max_output_tokens"))
    if max_input is None and max_output is None:
        max_input = _size(row.get("max_tokens"))  # older tables: the window where nothing else is said
    input_only = _is_input_only(key, max_input, max_output)
    if max_input and max_output and not input_only:
        max_output = min(max_output, max_input)
    return ModelInfo(
        name=key,
        provider=str(row.get("litellm_provider", "")),
        mode=str(row.get("mode", "chat")),
        max_input=max_input,
        max_output=max_output,
        input_only=input_only,
        prices=prices_in(row),
        supports_vision=row.get("supports_vision") is True,
        supports_reasoning=row.get("supports_reasoning") is True,
        supports_tools=row.get("supports_function_calling") is True,
    )


def _is_input_only(key: str, max_input: int | None, max_output: int | None) -> bool:
    """Whether a row's input limit leaves out the answer. Said only where it is known; else the answer is kept free.

    Google states input and output limits apart for Gemini. OpenAI's rows state the whole window for some models and
    the input alone for others: those add up, with the output, to a window that OpenAI sells.
    """
    if not max_input or not max_output or max_output >= max_input:
        return False
    return "gemini" in key or ("gpt" in key and max_input + max_output in _TOTALS)


def _size(value: object) -> int | None:
    """A number of tokens, or None for what is none."""
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e12:
        return None
    return int(value)


@cache
def _table() -> Mapping[str, Row]:
    """All rows; empty where the file cannot be read, which makes every model unknown."""
    spec = importlib.util.find_spec("litellm")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    try:
        rows: object = json.loads(Path(folders[0], _FILE).read_bytes())
    except (OSError, ValueError, IndexError):
        return {}
    named = cast(dict[str, object], rows) if isinstance(rows, dict) else {}
    return {name.lower(): cast(Row, row) for name, row in named.items() if isinstance(row, dict)}
