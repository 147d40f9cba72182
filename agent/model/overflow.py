"""Recognises that a request was longer than the model's window, from what providers and servers say of it.

The table is ours: libraries map some of these phrasings to plain bad requests. Each entry names who speaks so; a group
`window` is the limit that the text names. What follows from it is `agent.model.translate`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_N = r"(?P<window>[\d][\d,_.]*\s?[kKmM]?)\b"
_LEAST_WINDOW = 256
"""A smaller number in such a text is something else."""

_PHRASES = tuple(
    re.compile(phrase, re.IGNORECASE | re.DOTALL)
    for phrase in (
        # OpenAI, Azure, DeepSeek, vLLM; OpenRouter: "This endpoint's …"
        rf"maximum (?:context|model|sequence|input|prompt) length (?:is|of|for this model is):?\s*{_N}",
        # Azure's newer form
        rf"input tokens exceed the configured limit of {_N}",
        # OpenAI responses, Codex
        r"exceeds? the (?:model's )?context (?:window|length|limit)",
        # codes of OpenAI, Groq, OpenRouter, Anthropic, Zhipu, llama.cpp, GitHub; litellm's class
        r"(?:model_)?context_(?:length|window|size)_exceeded|exceed_context_size|max_prompt_tokens_exceeded",
        r"ContextWindowExceeded",
        # Anthropic
        rf"prompt is too long: [\d,]+ tokens > {_N} maximum",
        rf"exceed(?:s|ed)? context limit: [\d,]+ \+ [\d,]+ > {_N}",
        r"exceed(?:s|ed)? (?:the )?context limit",
        # Bedrock, Vertex, Ollama
        r"(?:input|prompt|context|conversation|message|query)s? (?:is|are|was) too (?:long|large)",
        r"prompt too long|input too long",
        # Gemini
        rf"input token count.{{0,40}}exceeds the maximum number of tokens allowed \(?{_N}",
        r"exceeds the maximum number of (?:input )?tokens",
        # Mistral
        rf"too large for model with {_N} maximum context length",
        # xAI
        rf"maximum prompt length is {_N}",
        # Groq, Cerebras, Together
        rf"current length is [\d,]+ while limit is {_N}",
        r"reduce (?:the length of|your) (?:the )?(?:messages?|prompt|input)\b",
        rf"should not exceed max_num_tokens \({_N}",
        # Moonshot
        rf"exceeded model token limit:? {_N}",
        r"exceed(?:s|ed)?(?: the)? model(?:'s)? token limit",
        # Zhipu, MiniMax, DashScope
        r"prompt exceeds (?:the )?max(?:imum)? length",
        r"context window exceeds limit",
        rf"range of input length should be \[\d+, ?{_N}",
        # llama.cpp, Lemonade
        rf"exceeds the available context size \({_N}",
        r"exceeds the available context size|context size has been exceeded|context shift is disabled",
        # LM Studio
        rf"loaded with context length of only {_N}|reached context length of (?P<window2>\d+)",
        r"greater than the context length|context the overflows|context overflow",
        # vLLM
        rf"longer than the maximum model length of {_N}",
        rf"context length is only {_N}",
        rf"exceeds model'?s? maximum context length \({_N}",
        r"max_tokens must be at least 1, got -\d",
        # SGLang
        rf"longer than the model's context length \({_N}",
        r"exceeds the model's maximum context length",
        # TGI, Together
        rf"`inputs` tokens \+ `max_new_tokens` must be <= {_N}",
        rf"`inputs` must have less than {_N} tokens",
        # Cohere, watsonx, Copilot, Fireworks, Cloudflare
        rf"tokens in the prompt cannot exceed {_N}",
        rf"input tokens [\d,]+ cannot exceed the total tokens limit {_N}",
        rf"prompt token count of [\d,]+ exceeds the limit of {_N}",
        rf"model maximum context length: {_N}",
        rf"exceeded this model context window limit \({_N}",
        rf"maximum input length is {_N} tokens",
        rf"supports only {_N} context",
        # GitHub's models
        rf"request body too large for .{{1,80}}?max size: {_N} tokens",
        # one text over a field's limit (OpenAI), a body over a server's limit (Anthropic, Gemini, proxies):
        # nothing but a shorter request helps
        r"messages\[\d+\]\.content\S*: string too long",
        r"request_too_large|request exceeds the maximum size|payload size exceeds|(?:payload|entity|content) too large",
        # generic
        r"maximum context (?:length|window|limit|size)|context (?:length|window|limit|size) (?:is |was )?exceeded",
        r"too many (?:input |prompt )?tokens",
        r"(?:输入|上下文).{0,12}(?:超出|超过)",
    )
)

_LOOK_ALIKE = re.compile(
    r"tokens per (?:minute|hour|day|month)|\bTP[MD]\b|requests? per (?:minute|second|day)"
    r"|rate[\s_-]?limit|too many requests|quota|concurren|please wait|try(?:ing)? again (?:later|in \d)"
    r"|max_(?:completion_|output_)?tokens`?'? (?:must|should|has to) be (?:less|smaller|lower|<=?|at most|between)"
    r"|(?:output|completion|generated) tokens (?:must|exceed|allowed)|invalid 'user'",
    re.IGNORECASE,
)
"""Limits that are not the window's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """A request was longer than the window."""

    window: int | None
    """The window that the text names, in tokens."""


def overflow_in(text: str) -> Overflow | None:
    """What `text` (messages and codes of an error and of its causes) says of an overflow, or None if it is none."""
    if _LOOK_ALIKE.search(text):
        return None
    found = [match for phrase in _PHRASES if (match := phrase.search(text))]
    if not found:
        return None
    windows = (_tokens(number) for match in found for number in match.groups() if number)
    return Overflow(window=next((window for window in windows if window >= _LEAST_WINDOW), None) or _named_size(text))


def _named_size(text: str) -> int | None:
    """llama.cpp puts the window into a field beside the message."""
    match = re.search(r"n_ctx['\"]?\s*[:=]\s*(\d+)", text)
    return int(match[1]) if match and int(match[1]) >= _LEAST_WINDOW else None


def _tokens(number: str) -> int:
    """`200,000`, `8192.0`, `256K` as tokens."""
    number = number.strip()
    scale = {"k": 1_024, "m": 1_048_576}.get(number[-1].lower(), 1)
    digits = re.sub(r"\.0+$", "", number.rstrip("kKmM ").rstrip(".,_")).replace(",", "").replace("_", "")
    return int(digits.replace(".", "") or 0) * scale
