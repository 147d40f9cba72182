"""What a provider wants otherwise than the plain OpenAI chat form, as data. `agent.model.wire` acts on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Lane = Literal["lean", "litellm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How requests to one model are written. The defaults are the plain form."""

    vendor: str = ""
    """Who made the model: what a model thought is returned to models of the same vendor only."""
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    default_output: int | None = None
    """Tokens for the answer where a request names none; None where the provider then leaves it to the model."""
    most_output: int | None = None
    """Tokens that the model answers with at most, as far as is known: an answer of just so many was cut."""
    effort: Literal["reasoning_effort", "reasoning", "none"] = "reasoning_effort"
    """`reasoning`: as an object `{"effort": …}`; `none`: the model takes no effort."""
    thought: bool = False
    """Turns with tool calls must carry their reasoning again, as `reasoning_content`."""
    needs_thoughts: bool = False
    """A model that is to think refuses results whose calls came without its thoughts: then no effort is asked for."""
    returned: tuple[str, ...] = ()
    """Fields of `Reasoning.data` that go back as they came."""
    usage_option: bool = True
    """The provider knows `stream_options`; the others report usage unasked."""
    cache_key: bool = False
    """The provider routes by `prompt_cache_key`."""
    cache_marks: Literal["none", "litellm", "parts"] = "none"
    """Where `cache_control` marks go: nowhere; on messages and tools as litellm takes them; on text parts only."""
    bridge_user: bool = False
    """A user message must not follow a tool message: a short answer goes between."""
    distinct_calls: bool = False
    """No two calls of an answer may be the same: litellm leaves out the second for Gemini, but not its result."""
    call_ids: Literal["any", "plain", "nine"] = "any"
    """Ids of calls: as they are; at most 40 letters, digits, `_`, `-`; or nine letters and digits."""


_VENDORS = (
    ("anthropic", r"claude|anthropic"),
    ("google", r"gemini|gemma"),
    ("moonshot", r"kimi|moonshot"),
    ("deepseek", r"deepseek"),
    ("mistral", r"mistral|mixtral|codestral|devstral|magistral|ministral|pixtral"),
    ("openai", r"\bgpt-|\bo[134](?:-|$)|codex|chatgpt"),
    ("zai", r"\bglm-"),
    ("minimax", r"minimax"),
    ("qwen", r"qwen|qwq"),
    ("xai", r"grok"),
    ("xiaomi", r"mimo"),
)
_THOUGHT_WANTED = frozenset({"moonshot", "deepseek", "zai", "minimax", "xiaomi"})
"""Vendors whose models reason between tool calls and want to see it again."""
_OLDER_OPENAI = re.compile(r"gpt-(?:3|4)|chatgpt-4o")


def vendor_of(model: str) -> str:
    """Who made the model of this name; the name itself, without its provider, where nobody is known."""
    lower = model.lower()
    return next((vendor for vendor, pattern in _VENDORS if re.search(pattern, lower)), lower.rpartition("/")[2])


def profile_of(provider: str, model: str, lane: Lane) -> Profile:
    """The profile of `model` at `provider` (a prefix such as `openrouter`; empty: some server of the same API)."""
    return _litellm(provider, model) if lane == "litellm" else _lean(provider, model)


def _lean(provider: str, model: str) -> Profile:
    vendor = vendor_of(model)
    match provider:
        case "openai":
            newer = not _OLDER_OPENAI.search(model)
            return Profile(
                vendor=vendor,
                max_tokens="max_completion_tokens" if newer else "max_tokens",
                cache_key=True,
                call_ids="plain",
            )
        case "openrouter":
            return Profile(
                vendor=vendor,
                effort="reasoning",
                returned=("reasoning_details",),
                cache_marks="parts" if vendor == "anthropic" else "none",
                call_ids="plain",
            )
        case "mistral":
            return Profile(vendor=vendor, usage_option=False, cache_key=True, bridge_user=True, call_ids="nine")
        case "groq" | "xai":
            return Profile(vendor=vendor)
        case "deepseek":
            return Profile(vendor=vendor, thought=True)
        case _:
            return _some_server(vendor)


def _some_server(vendor: str) -> Profile:
    """A server that we know by its protocol alone; its chat template may be strict."""
    return Profile(
        vendor=vendor,
        thought=vendor in _THOUGHT_WANTED,
        bridge_user=True,
        call_ids="nine" if vendor == "mistral" else "any",
    )


def _litellm(provider: str, model: str) -> Profile:
    vendor = vendor_of(model)
    match vendor:
        case "anthropic":
            return Profile(
                vendor=vendor,
                needs_thoughts=True,
                returned=("thinking_blocks",),
                cache_marks="litellm",
                call_ids="plain",
            )
        case "openai":
            fields = ("provider_specific_fields", "reasoning_items")
            return Profile(vendor=vendor, returned=fields, cache_key=provider in {"openai", "azure"}, call_ids="plain")
        case "mistral":
            return Profile(vendor=vendor, bridge_user=True, call_ids="nine")
        case "google":
            return Profile(vendor=vendor, distinct_calls=True, bridge_user=provider.startswith("ollama"))
        case _:
            return Profile(vendor=vendor, thought=vendor in _THOUGHT_WANTED, bridge_user=provider.startswith("ollama"))
