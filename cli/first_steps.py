"""What to do when no model is named: the model that a key suggests, or what a newcomer can do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from ..agent.local_servers import LocalServer, find_local_servers

DEFAULTS = (
    ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-latest"),
    ("OPENAI_API_KEY", "openai/gpt-5.2"),
    ("GEMINI_API_KEY", "gemini/gemini-pro-latest"),
    ("OPENROUTER_API_KEY", "openrouter/anthropic/claude-sonnet-5"),
    ("DEEPSEEK_API_KEY", "deepseek/deepseek-chat"),
    ("MISTRAL_API_KEY", "mistral/devstral-medium-latest"),
    ("XAI_API_KEY", "xai/grok-build-latest"),
    ("GROQ_API_KEY", "groq/openai/gpt-oss-120b"),
)
"""The model that each key stands for when none is named; the first key that is there decides."""


def default_model(names: Collection[str]) -> str | None:
    """The model for the first of our providers whose key is among `names`."""
    return next((model for variable, model in DEFAULTS if variable in names), None)


async def first_steps(find: Callable[[], Awaitable[tuple[LocalServer, ...]]] = find_local_servers) -> str:
    """What a person can do who has no model yet, with the local servers that `find` finds."""
    lines = [
        "no model is set and no key was found. One of these is enough:",
        "  export OPENAI_API_KEY=…  (or ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …)",
        "  deepagent auth set openai  (stores a key after one test request)",
    ]
    for server in await find():
        models = ", ".join(server.models[:3]) or "no model loaded"
        lines.append(f"  {server.name} listens on {server.url}: {models}. {_use(server)}")
    lines.append("  deepagent demo  (needs neither key nor network)")
    return "\n".join(lines)


def _use(server: LocalServer) -> str:
    model = server.models[0] if server.models else "MODEL"
    return f"OPENAI_BASE_URL={server.url}/v1 deepagent -m openai/{model} -p …"
