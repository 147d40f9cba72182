"""What a provider says that a call used, in one form: `input` includes what was read from or written to a cache.

Providers differ: OpenAI's input includes cached tokens, Anthropic's own does not; Gemini's output leaves out thoughts,
xAI's too. Prices are `agent.model.prices`' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ...context.entries import Usage

Raw = Mapping[str, Any]
"""A usage object as it came."""


def merged(first: Raw, second: Raw) -> dict[str, Any]:
    """Two reports of one call as one: the later figure counts, unless it is nothing."""
    return {**first, **{key: value for key, value in second.items() if value}}


def usage_of(raw: Raw) -> Usage | None:
    """The usage in `raw`, or None where it names neither input nor output."""
    given, output = _first(raw, "prompt_tokens", "input_tokens", "promptTokenCount"), _output(raw)
    read, write = _cache_read(raw), _cache_write(raw)
    if not given and not output and not read:
        return None
    # Anthropic's own form counts cached tokens apart; so does whoever reports less input than came from the cache
    apart = "prompt_tokens" not in raw and "input_tokens" in raw and "cache_read_input_tokens" in raw
    total = given + read + write if apart or given < read + write else given
    return Usage(input=total, output=output, cache_read=read, cache_write=write)


def cost_of(raw: Raw) -> float | None:
    """US dollars where the provider names the price of the call itself, else None."""
    cost = raw.get("cost")
    if isinstance(cost, Mapping):
        cost = cast(Mapping[str, object], cost).get("total_cost")
    if isinstance(cost, bool) or not isinstance(cost, (int, float)):
        return None
    if raw.get("is_byok"):  # OpenRouter with the user's own key: its fee, and what the provider takes
        upstream = _within(raw, "cost_details", "upstream_inference_cost")
        cost += upstream if isinstance(upstream, (int, float)) else 0
    return float(cost)


def _output(raw: Raw) -> int:
    output = _first(raw, "completion_tokens", "output_tokens")
    if "candidatesTokenCount" in raw:
        return _int(raw["candidatesTokenCount"]) + _int(raw.get("thoughtsTokenCount"))
    thought = _int(_within(raw, "completion_tokens_details", "reasoning_tokens"))
    left_out = _int(raw.get("total_tokens")) - _first(raw, "prompt_tokens", "input_tokens") - output
    return output + thought if thought and left_out == thought else output


def _cache_read(raw: Raw) -> int:
    return (
        _first(raw, "cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens", "cachedContentTokenCount")
        or _int(_within(raw, "prompt_tokens_details", "cached_tokens"))
        or _int(_within(raw, "input_tokens_details", "cached_tokens"))
    )


def _cache_write(raw: Raw) -> int:
    return (
        _int(raw.get("cache_creation_input_tokens"))
        or _int(_within(raw, "prompt_tokens_details", "cache_write_tokens"))
        or _int(_within(raw, "prompt_tokens_details", "cache_creation_tokens"))
    )


def _first(raw: Raw, *keys: str) -> int:
    """The first figure that is something."""
    return next((value for key in keys if (value := _int(raw.get(key)))), 0)


def _within(raw: Raw, key: str, inner: str) -> object:
    value = raw.get(key)
    return cast(Mapping[str, object], value).get(inner) if isinstance(value, Mapping) else None


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return max(int(value), 0)
