"""The provider table: every chat model of it gives sane figures, and names are found as people write them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from deepagent.agent.model import catalog
from deepagent.agent.model.catalog import ModelInfo, chat_models, cost, model_info
from deepagent.context.entries import Usage
from hypothesis import given
from hypothesis import strategies as st


def test_every_chat_model_is_sane() -> None:
    names = chat_models()
    assert len(names) > 2_000
    priced = 0
    for name in names:
        info = model_info(name)
        assert info is not None, name
        assert info.max_input is None or 0 < info.max_input < 100_000_000, name
        assert info.max_output is None or info.max_output > 0, name
        if info.max_input and info.max_output:
            assert info.max_output <= info.max_input, name
            assert info.total is not None
            assert info.total >= info.max_input
        assert not info.input_only or (info.max_input and info.max_output), name
        assert [step.above for step in info.prices] == sorted({step.above for step in info.prices}), name
        dollars = cost(info, Usage(input=1_000, output=100, cache_read=500))
        if info.prices:
            assert dollars is not None
            assert 0 <= dollars < 10, name
            priced += 1
        else:
            assert dollars is None
    assert priced > 0.8 * len(names)


def known(name: str) -> ModelInfo:
    info = model_info(name)
    assert info, name
    return info


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("gpt-5", "gpt-5"),
        ("openai/gpt-5", "gpt-5"),
        ("OpenAI/GPT-5", "gpt-5"),
        ("openai/gpt-5-2025-08-07", "gpt-5-2025-08-07"),
        ("openai/gpt-5-2031-01-01", "gpt-5"),
        ("openrouter/openai/gpt-5", "gpt-5"),
        ("openrouter/openai/gpt-5:nitro", "gpt-5"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5-20310101", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter/google/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("gemini/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("deepseek/deepseek-chat", "deepseek/deepseek-chat"),
        ("mistral/mistral-large-latest", "mistral/mistral-large-latest"),
        ("ollama_chat/llama3.1", "ollama/llama3.1"),
        ("ollama_chat/llama3.1:70b-instruct", "ollama/llama3.1"),
        ("openrouter/anthropic/claude-sonnet-4.5:thinking", "claude-sonnet-4-5"),
        ("openrouter/deepseek/deepseek-r1-0528:free", "deepseek/deepseek-r1"),
        ("claude-sonnet-4-5@default", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@bedrock", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5@bedrock", "claude-sonnet-4-5"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "vertex_ai/claude-sonnet-4-5@20250929"),
        ("gemini/gemini-2.5-pro-preview-06-05", "gemini/gemini-2.5-pro"),
        ("gemini/gemini-2.5-pro-preview-09-2025", "gemini/gemini-2.5-pro"),
        ("gemini-2.5-pro-exp-03-25", "gemini-2.5-pro"),
        ("gemini/models/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("vertex_ai/gemini-2.5-pro@001", "gemini-2.5-pro"),
        ("ft:gpt-4o-2024-08-06:org::id", "ft:gpt-4o-2024-08-06"),
        ("dashscope/qwen3-coder-plus-2031-09-23", "dashscope/qwen3-coder-plus"),
        ("bedrock/us-east-1/anthropic.claude-3-5-sonnet-20240620-v1:0", "anthropic.claude-3-5-sonnet-20240620-v1:0"),
        (
            "bedrock/arn:aws:bedrock:us-east-1:1234:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        ),
        (
            "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        ),
    ],
)
def test_names(name: str, row: str) -> None:
    assert known(name).name == row


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "/", "x/unknown-1", "[1m]", "openai/", ":free", "a/b"),
        "hosted_vllm/gpt-5",
        "lm_studio/gpt-5",
        "groq/gpt-5",
    ],
)
def test_unknown_names(name: str) -> None:
    assert model_info(name) is None


@given(st.text(st.sampled_from("abgpt-5/.:@[]1m20 "), max_size=24) | st.text(max_size=24))
def test_no_name_raises(name: str) -> None:
    model_info(name)


def test_the_long_window() -> None:
    assert known("anthropic/claude-sonnet-4-5").max_input == 200_000
    assert known("anthropic/claude-sonnet-4-5[1m]").max_input == 1_000_000
    assert known("claude-sonnet-4-5[1m]").prices
    assert known("openrouter/anthropic/claude-sonnet-4.5[1m]:beta").max_input == 1_000_000


def test_free_variants_cost_nothing() -> None:
    assert cost(known("openrouter/deepseek/deepseek-chat:free"), Usage(input=9, output=9)) == 0
    assert (cost(known("openrouter/deepseek/deepseek-chat"), Usage(input=9, output=9)) or 0) > 0


@pytest.mark.parametrize(
    ("name", "input_only"),
    [
        ("gpt-5", True),  # 272,000 + 128,000 = 400,000
        ("gemini/gemini-2.5-pro", True),
        ("gpt-4o", False),  # 128,000 is the whole window
        ("o3", False),
        ("claude-sonnet-4-5", False),
        ("mistral/mistral-large-latest", False),
        ("deepseek/deepseek-chat", False),
    ],
)
def test_what_the_input_limit_means(name: str, input_only: bool) -> None:
    info = known(name)
    assert info.input_only is input_only
    assert info.max_input
    assert info.max_output
    assert info.total == info.max_input + (info.max_output if input_only else 0)


def test_what_models_can() -> None:
    info = known("gpt-5")
    assert (info.mode, info.provider) == ("chat", "openai")
    assert info.supports_reasoning
    assert info.supports_tools
    assert info.supports_vision
    assert known("gpt-5-codex").mode == "responses"
    assert not known("gpt-4o").supports_reasoning


def test_aliases_take_what_they_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        "real": {"mode": "chat", "max_input_tokens": 9_000},
        "short": {"alias_of": "real"},
        "lost": {"alias_of": "no"},
    }
    monkeypatch.setattr(catalog, "_table", lambda: rows)
    model_info.cache_clear()
    assert known("short").max_input == 9_000
    assert known("lost").max_input is None
    model_info.cache_clear()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"max_input_tokens": "8192", "max_output_tokens": "4096"}, (8192, 4096)),
        ({"max_input_tokens": "max input tokens", "max_output_tokens": 0}, (None, None)),
        ({"max_input_tokens": 1_000, "max_output_tokens": 4_000}, (1_000, 1_000)),
        ({"max_tokens": 4_096}, (4_096, None)),
        ({"max_tokens": 4_096, "max_output_tokens": 4_096}, (None, 4_096)),
        ({"max_input_tokens": True, "max_output_tokens": -5}, (None, None)),
        ({"max_input_tokens": 8192.0}, (8192, None)),
    ],
)
def test_odd_rows(
    row: dict[str, object], expected: tuple[int | None, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "_table", lambda: {"odd": {"mode": "chat", **row}})
    model_info.cache_clear()
    info = known("odd")
    model_info.cache_clear()
    assert (info.max_input, info.max_output) == expected


def test_a_table_that_cannot_be_read_makes_models_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_FILE", "no-such-file.json")
    catalog._table.cache_clear()
    model_info.cache_clear()
    try:
        assert model_info("gpt-5") is None
        assert chat_models() == ()
    finally:
        catalog._table.cache_clear()
        model_info.cache_clear()


def test_the_table_is_read_without_importing_litellm() -> None:
    code = (
        "import sys\n"
        "from deepagent.agent.model.catalog import model_info\n"
        "assert model_info('gpt-5').max_input\n"
        "assert 'litellm' not in sys.modules and 'httpx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
