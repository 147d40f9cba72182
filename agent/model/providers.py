"""Providers as data: their prefix, address, and the names of their variables, as litellm has them.

Those with an `endpoint` speak OpenAI's chat stream and are reached by the lean lane; the others by litellm, and stand
here so that a missing key is told at once. What is chosen is `agent.model.choose`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider."""

    prefix: str
    """What stands before the slash in a model's name, and what `deepagent auth set` takes."""
    keys: tuple[str, ...]
    """Environment variables for the key; the first is the one that texts name."""
    endpoint: str = ""
    """The address up to `/chat/completions`; empty: litellm knows it."""
    bases: tuple[str, ...] = ()
    """Environment variables for another address."""
    keyless: bool = False
    """It works without a key, as servers of one's own do."""

    def base(self, environ: Mapping[str, str]) -> str:
        """The address in the environment, without a slash at its end; empty where there is none."""
        found = next((environ[name] for name in self.bases if environ.get(name)), "")
        found = found.strip().rstrip("/").removesuffix("/chat/completions")
        return found if "://" in found or not found else f"http://{found}"


def _lean(prefix: str, endpoint: str, *more_keys: str, keyless: bool = False) -> Provider:
    name = prefix.upper()
    return Provider(
        prefix=prefix,
        keys=(f"{name}_API_KEY", *more_keys),
        endpoint=endpoint,
        bases=(f"{name}_API_BASE", f"{name}_BASE_URL"),
        keyless=keyless,
    )


def _litellm(prefix: str, *keys: str) -> Provider:
    name = prefix.upper()
    return Provider(prefix=prefix, keys=keys, bases=(f"{name}_API_BASE", f"{name}_BASE_URL"))


OPENAI = Provider(
    prefix="openai",
    keys=("OPENAI_API_KEY",),
    endpoint="https://api.openai.com/v1",
    bases=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
)

_ALL = (
    OPENAI,
    _lean("openrouter", "https://openrouter.ai/api/v1", "OR_API_KEY"),
    _lean("deepseek", "https://api.deepseek.com/v1"),
    _lean("groq", "https://api.groq.com/openai/v1"),
    _lean("mistral", "https://api.mistral.ai/v1"),
    _lean("xai", "https://api.x.ai/v1"),
    _lean("lm_studio", "http://localhost:1234/v1", keyless=True),
    _lean("llamacpp", "http://localhost:8080/v1", keyless=True),
    _lean("llamafile", "http://localhost:8080/v1", keyless=True),
    _lean("hosted_vllm", "http://localhost:8000/v1", keyless=True),
    _litellm("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    _litellm("azure", "AZURE_API_KEY", "AZURE_AD_TOKEN", "AZURE_CLIENT_ID"),
    _litellm("azure_ai", "AZURE_AI_API_KEY"),
    _litellm("cerebras", "CEREBRAS_API_KEY"),
    _litellm("cohere_chat", "COHERE_API_KEY", "CO_API_KEY"),
    _litellm("dashscope", "DASHSCOPE_API_KEY"),
    _litellm("deepinfra", "DEEPINFRA_API_KEY"),
    _litellm("fireworks_ai", "FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
    _litellm("gemini", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
    _litellm("minimax", "MINIMAX_API_KEY"),
    _litellm("moonshot", "MOONSHOT_API_KEY"),
    _litellm("nvidia_nim", "NVIDIA_NIM_API_KEY"),
    _litellm("perplexity", "PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    _litellm("together_ai", "TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_TOKEN"),
    _litellm("vercel_ai_gateway", "VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
    _litellm("zai", "ZAI_API_KEY"),
)
PROVIDERS: Mapping[str, Provider] = {provider.prefix: provider for provider in _ALL}

OLLAMA = Provider(
    prefix="ollama_chat", keys=("OLLAMA_API_KEY",), bases=("OLLAMA_API_BASE", "OLLAMA_HOST"), keyless=True
)
OLLAMA_ENDPOINT = "http://localhost:11434"


def is_loopback(endpoint: str) -> bool:
    """Whether an address is this machine."""
    host = (urlsplit(endpoint).hostname or "").lower().rstrip(".")
    if host in {"localhost", "host.docker.internal"} or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
