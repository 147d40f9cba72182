"""Which lane, address and key a name means; real endpoints are chosen, never reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from deepagent.agent.errors import AuthError, ConfigError
from deepagent.agent.model.catalog import model_info
from deepagent.agent.model.choose import is_local, open_model
from deepagent.agent.model.lean import LeanModel
from deepagent.agent.model.litellm_lane import LitellmModel
from deepagent.agent.model.patience import LOCAL_PATIENCE
from deepagent.agent.model.providers import PROVIDERS, is_loopback
from deepagent.agent.model.scripted import ScriptedModel
from deepagent.agent.model.types import ModelRequest
from deepagent.agent.model.wire import Form
from server import ModelServer

Chosen = LeanModel | LitellmModel
KEYS = {provider.keys[0]: f"key-of-{provider.prefix}" for provider in PROVIDERS.values()}
GATEWAY = {"OPENAI_BASE_URL": "https://gateway.example/v1/"}


def choose(
    name: str,
    keys: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
    lane: Literal["auto", "lean", "litellm"] = "auto",
    window: int | None = None,
) -> Chosen:
    model = open_model(name, lane=lane, keys=(KEYS if keys is None else keys).get, environ=environ or {}, window=window)
    return cast(Chosen, model)


def sent_key(model: Chosen) -> str:
    if isinstance(model, LeanModel):
        return model._headers.get("Authorization", "").removeprefix("Bearer ")
    return str(model._more["api_key"])


@pytest.mark.parametrize(
    ("name", "lane", "endpoint", "model", "key"),
    [
        ("gpt-5", "lean", "https://api.openai.com/v1", "gpt-5", "key-of-openai"),
        ("openai/gpt-4o", "lean", "https://api.openai.com/v1", "gpt-4o", "key-of-openai"),
        ("o3-mini", "lean", "https://api.openai.com/v1", "o3-mini", "key-of-openai"),
        ("openrouter/a/b:free", "lean", "https://openrouter.ai/api/v1", "a/b:free", "key-of-openrouter"),
        ("deepseek/deepseek-chat", "lean", "https://api.deepseek.com/v1", "deepseek-chat", "key-of-deepseek"),
        ("deepseek-chat", "lean", "https://api.deepseek.com/v1", "deepseek-chat", "key-of-deepseek"),
        ("groq/openai/gpt-oss-20b", "lean", "https://api.groq.com/openai/v1", "openai/gpt-oss-20b", "key-of-groq"),
        ("mistral/devstral-latest", "lean", "https://api.mistral.ai/v1", "devstral-latest", "key-of-mistral"),
        ("xai/grok-4.5", "lean", "https://api.x.ai/v1", "grok-4.5", "key-of-xai"),
        ("lm_studio/qwen", "lean", "http://localhost:1234/v1", "qwen", "key-of-lm_studio"),
        ("llamacpp/any", "lean", "http://localhost:8080/v1", "any", "key-of-llamacpp"),
        ("hosted_vllm/a/b", "lean", "http://localhost:8000/v1", "a/b", "key-of-hosted_vllm"),
        ("gpt-5-codex", "litellm", "", "openai/gpt-5-codex", "key-of-openai"),
        ("openai/gpt-5.4", "litellm", "", "openai/gpt-5.4", "key-of-openai"),
        ("gpt-6-sol", "litellm", "", "openai/gpt-6-sol", "key-of-openai"),
        ("anthropic/claude-sonnet-4-5", "litellm", "", "anthropic/claude-sonnet-4-5", "key-of-anthropic"),
        ("claude-sonnet-4-5", "litellm", "", "anthropic/claude-sonnet-4-5", "key-of-anthropic"),
        ("gemini/gemini-2.5-pro", "litellm", "", "gemini/gemini-2.5-pro", "key-of-gemini"),
        ("bedrock/anthropic.claude-opus-4-6-v1", "litellm", "", "bedrock/anthropic.claude-opus-4-6-v1", "None"),
        ("vertex_ai/gemini-2.5-pro", "litellm", "", "vertex_ai/gemini-2.5-pro", "None"),
        ("some_provider/some-model", "litellm", "", "some_provider/some-model", "None"),
        ("ollama_chat/qwen3:8b", "litellm", "http://localhost:11434", "ollama_chat/qwen3:8b", "none"),
        ("ollama/qwen3:8b", "litellm", "http://localhost:11434", "ollama_chat/qwen3:8b", "none"),
    ],
)  # fmt: skip
def test_names(*, name: str, lane: str, endpoint: str, model: str, key: str) -> None:
    chosen = choose(name)
    assert (chosen.name, chosen.lane, chosen.endpoint) == (name, lane, endpoint)
    assert chosen._origin.model == model
    assert sent_key(chosen) == key


@pytest.mark.parametrize(
    ("name", "model"),
    [("gpt-5", "gpt-5"), ("openai/gpt-5.4", "gpt-5.4"), ("my-model", "my-model"), ("org/my-model", "org/my-model"),
     ("openai/org/model", "org/model"), ("anthropic/claude-x", "anthropic/claude-x"), ("claude-sonnet-4-5",) * 2],
)  # fmt: skip
@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_a_server_of_ones_own_takes_any_name(name: str, model: str, variable: str) -> None:
    chosen = choose(name, keys={}, environ={variable: "https://gateway.example/v1/"})
    assert (chosen.lane, chosen.endpoint) == ("lean", "https://gateway.example/v1")
    assert chosen._origin.model == model
    assert sent_key(chosen) == ""


def test_a_provider_with_a_key_goes_before_a_server_of_ones_own() -> None:
    assert choose("groq/llama", environ=GATEWAY).endpoint == "https://api.groq.com/openai/v1"
    assert choose("lm_studio/qwen", keys={}, environ=GATEWAY).endpoint == "http://localhost:1234/v1"
    assert choose("ollama_chat/qwen", keys={}, environ=GATEWAY).endpoint == "http://localhost:11434"


@pytest.mark.parametrize(
    ("name", "environ", "endpoint"),
    [
        ("openrouter/a/b", {"OPENROUTER_API_BASE": "http://127.0.0.1:1/v1"}, "http://127.0.0.1:1/v1"),
        ("groq/x", {"GROQ_API_BASE": "http://127.0.0.1:1/v1/chat/completions"}, "http://127.0.0.1:1/v1"),
        ("lm_studio/x", {"LM_STUDIO_API_BASE": "127.0.0.1:9/v1"}, "http://127.0.0.1:9/v1"),
        ("hosted_vllm/x", {"HOSTED_VLLM_API_BASE": "http://gpu:8000/v1"}, "http://gpu:8000/v1"),
        ("ollama_chat/x", {"OLLAMA_API_BASE": "http://gpu:11434/v1"}, "http://gpu:11434"),
        ("ollama_chat/x", {"OLLAMA_HOST": "0.0.0.0:11434"}, "http://0.0.0.0:11434"),
        ("anthropic/claude-x", {"ANTHROPIC_API_BASE": "http://127.0.0.1:1"}, "http://127.0.0.1:1"),
    ],
)
def test_addresses_in_the_environment(name: str, environ: dict[str, str], endpoint: str) -> None:
    assert choose(name, environ=environ).endpoint == endpoint


def test_keys_come_from_the_keeper_or_the_environment() -> None:
    assert sent_key(choose("gpt-5", keys={}, environ={"OPENAI_API_KEY": "e"})) == "e"
    assert sent_key(choose("gpt-5", keys={"OPENAI_API_KEY": "k"}, environ={"OPENAI_API_KEY": "e"})) == "k"
    assert sent_key(choose("openrouter/a/b", keys={"OR_API_KEY": "k"})) == "k"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", ["OPENAI_API_KEY", "deepagent auth set openai"]),
        ("anthropic/claude-sonnet-4-5", ["ANTHROPIC_API_KEY", "deepagent auth set anthropic"]),
        ("claude-sonnet-4-5", ["ANTHROPIC_API_KEY"]),
        ("openrouter/a/b", ["OPENROUTER_API_KEY", "openrouter/a/b"]),
    ],
)
def test_a_missing_key_is_told_at_once(name: str, words: list[str]) -> None:
    with pytest.raises(AuthError) as caught:
        choose(name, keys={})
    for word in words:
        assert word in str(caught.value)


def test_names_that_mean_nothing() -> None:
    with pytest.raises(ConfigError, match="provider/model"):
        choose("nonsense")
    with pytest.raises(ConfigError, match="claude-sonnet-4-5"):
        choose("clade-sonnet-4-5")
    with pytest.raises(ConfigError):
        choose("demo")


def test_lanes_can_be_asked_for() -> None:
    assert choose("gpt-5", lane="litellm").lane == "litellm"
    assert choose("my-model", keys={}, environ=GATEWAY, lane="litellm")._origin.model == "openai/my-model"
    assert choose("gpt-5", lane="lean").lane == "lean"
    with pytest.raises(ConfigError, match="lean lane"):
        choose("anthropic/claude-sonnet-4-5", lane="lean")


def test_scripts_and_the_demo(tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("steps: [{text: hi}]")
    model = open_model(f"scripted:{script}", keys=KEYS.get, environ={})
    assert isinstance(model, ScriptedModel)
    assert (model.name, model.lane) == (f"scripted:{script}", "scripted")
    assert isinstance(open_model("demo", keys=KEYS.get, environ={}, demo=script), ScriptedModel)
    with pytest.raises(ConfigError, match=r"missing\.yaml"):
        open_model(f"scripted:{tmp_path / 'missing.yaml'}", keys=KEYS.get, environ={})


def test_local_servers_get_time_and_no_proxy() -> None:
    local = choose("lm_studio/x")
    assert is_local(local)
    assert local._patience is LOCAL_PATIENCE
    assert isinstance(local, LeanModel)
    assert not local._proxies
    assert is_local(choose("ollama_chat/x"))
    assert not is_local(choose("gpt-5"))
    assert not is_local(choose("anthropic/claude-sonnet-4-5"))


@pytest.mark.parametrize(
    ("endpoint", "local"),
    [
        *(("http://localhost:1234/v1", True), ("http://127.0.0.1:1/v1", True), ("http://127.9.9.9", True)),
        *(("http://[::1]:8080/v1", True), ("http://0.0.0.0:11434", True), ("http://api.localhost/v1", True)),
        *(("https://api.openai.com/v1", False), ("http://192.168.1.7:8080", False), ("", False), ("nonsense", False)),
        *(("https://localhost.example.com", False), ("https://127.0.0.1.example.com", False)),
    ],
)
def test_loopback(endpoint: str, local: bool) -> None:
    assert is_loopback(endpoint) is local


def body(model: Chosen, **fields: Any) -> Form:
    return model._wire.body(ModelRequest(system="", messages=(), **fields))


def test_profiles_follow_the_provider() -> None:
    assert body(choose("gpt-5"), max_output=9)["max_completion_tokens"] == 9
    assert body(choose("gpt-5", keys={}, environ=GATEWAY), max_output=9)["max_tokens"] == 9
    assert body(choose("gpt-5"), effort="high")["reasoning_effort"] == "high"
    assert "reasoning_effort" not in body(choose("gpt-4o"), effort="high"), "it would be refused"


def test_claude_gets_room_for_its_answer() -> None:
    assert body(choose("anthropic/claude-sonnet-4-5"))["max_tokens"] == 26_000
    assert body(choose("anthropic/claude-sonnet-4-5"), max_output=500)["max_tokens"] == 500


@pytest.mark.parametrize("name", ["gpt-5", "anthropic/claude-sonnet-4-5"])
def test_the_most_that_a_model_answers_is_known(name: str) -> None:
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    model: Any = open_model(name, keys=keys.get, environ={})
    info = model_info(name)
    assert info is not None
    assert info.max_output is not None
    assert model._wire._profile.most_output == info.max_output


def test_the_long_window_is_a_header_not_a_name() -> None:
    model = choose("anthropic/claude-sonnet-4-5[1m]")
    assert isinstance(model, LitellmModel)
    assert model._origin.model == "anthropic/claude-sonnet-4-5"
    assert "context-1m" in model._more["extra_headers"]["anthropic-beta"]


def test_ollama_is_told_the_window() -> None:
    model = choose("ollama_chat/qwen3", window=16_000)
    assert isinstance(model, LitellmModel)
    assert model._more["num_ctx"] == 16_000
    assert cast(LitellmModel, choose("anthropic/claude-sonnet-4-5", window=16_000))._more["num_ctx"] is None


async def test_it_answers(model_server: Callable[..., ModelServer], ask: Any, run: Any) -> None:
    server = model_server({"text": "hi"})
    model = choose("anything", keys={}, environ={"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"})
    await run(model, ask("hello"))
    await model.aclose()
    assert server.bodies[0]["model"] == "anything"
    assert server.requests[0].headers["authorization"] == "Bearer k"
