"""The way to a provider: proxies, certificates, plain and odd servers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.errors import BadRequestError, ConfigError, ConnectionFailed, UnknownModelError
from deepagent.agent.model.choose import open_model
from deepagent.agent.model.lean import LeanModel
from deepagent.agent.model.patience import Patience
from deepagent.agent.model.quirks import Profile
from deepagent.agent.model.tls import trust
from deepagent.agent.model.translate import Origin
from deepagent.agent.model.types import Model
from deepagent.context.messages import Text
from proxy import Proxy
from server import ModelServer

Server = Callable[..., "ModelServer"]
MakeProxy = Callable[..., "Proxy"]
Lane = Callable[..., Model]


@pytest.fixture(autouse=True)
def no_caller_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes away proxies and certificates of the machine that the tests run on."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for name in (*names, *map(str.lower, names), "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


def lean(url: str, **more: Any) -> LeanModel:
    origin = Origin(provider="openai", model="m", endpoint=url, key="OPENAI_API_KEY")
    return LeanModel("openai/m", origin=origin, profile=Profile(), **more)


async def test_a_proxy_for_plain_addresses(
    *, lane: Lane, model_server: Server, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch, ask: Any, run: Any
) -> None:
    server = model_server({"text": "through"})
    between = proxy(server.port)
    monkeypatch.setenv("HTTP_PROXY", between.url)
    monkeypatch.setenv("http_proxy", between.url)
    _, whole = await run(lane("http://models.example/v1"), ask("hi"))
    assert whole.content == (Text(text="through"),)
    assert between.asked == ["http://models.example/v1/chat/completions"]


async def test_a_proxy_and_an_authority_of_ones_own(
    *,
    lane: Lane,
    model_server: Server,
    proxy: MakeProxy,
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    ask: Any,
    run: Any,
) -> None:
    server = model_server({"text": "tunnelled"}, tls=certificate)
    between = proxy(server.port)
    monkeypatch.setenv("HTTPS_PROXY", between.url)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    _, whole = await run(lane("https://models.example/v1"), ask("hi"))
    assert whole.content == (Text(text="tunnelled"),)
    assert between.asked == ["models.example:443"]


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
async def test_an_authority_of_ones_own(
    *,
    lane: Lane,
    model_server: Server,
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    ask: Any,
    run: Any,
) -> None:
    server = model_server({"text": "secure"}, tls=certificate)
    monkeypatch.setenv(variable, str(certificate[0]))
    _, whole = await run(lane(server.url), ask("hi"))
    assert whole.content == (Text(text="secure"),)


async def test_an_unknown_authority(
    *, lane: Lane, model_server: Server, certificate: tuple[Path, Path], ask: Any, fails: Any
) -> None:
    server = model_server({"text": "secure"}, tls=certificate)
    _, caught = await fails(lane(server.url), ask("hi"))
    assert type(caught) is ConnectionFailed
    assert "SSL_CERT_FILE" in str(caught)
    assert not server.requests


async def test_a_proxy_that_refuses(
    *, lane: Lane, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch, ask: Any, fails: Any
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy(1, refuse=True).url)
    _, caught = await fails(lane("https://models.example/v1"), ask("hi"))
    assert type(caught) is ConnectionFailed
    assert "proxy" in str(caught).lower()
    assert "HTTPS_PROXY" in str(caught)


async def test_no_proxy_is_respected(
    *, lane: Lane, model_server: Server, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch, ask: Any, run: Any
) -> None:
    server = model_server({"text": "direct"})
    between = proxy(server.port)
    monkeypatch.setenv("HTTP_PROXY", between.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    await run(lane(server.url), ask("hi"))
    assert between.asked == []


async def test_a_local_server_is_reached_without_the_proxy(
    *, model_server: Server, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch, ask: Any, run: Any
) -> None:
    server = model_server({"text": "direct"})
    between = proxy(server.port)
    monkeypatch.setenv("HTTP_PROXY", between.url)
    model = open_model("m", keys={"": ""}.get, environ={"OPENAI_BASE_URL": server.url})
    await run(model, ask("hi"))
    await model.aclose()
    assert between.asked == []


async def test_a_proxy_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://proxy")
    with pytest.raises(ConfigError, match="proxy"):
        await anext(lean("https://models.example/v1").stream(ask("hi")))


def test_trust_is_built_only_where_it_is_needed(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    assert trust("http://127.0.0.1:1/v1", {}).get_ca_certs() == []
    assert len(trust("https://models.example", {}).get_ca_certs()) > 50
    assert len(trust("https://models.example", {"SSL_CERT_FILE": str(certificate[0])}).get_ca_certs()) == 1
    assert trust("https://models.example", {"SSL_CERT_DIR": str(tmp_path)}).verify_mode is ssl.CERT_REQUIRED
    with pytest.raises(ConfigError, match="SSL_CERT_FILE="):
        trust("https://models.example", {"SSL_CERT_FILE": str(tmp_path / "missing.pem")})


async def test_an_answer_that_is_not_streamed(model_server: Server, ask: Any, run: Any) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 6}
    call = {"name": "read_file", "arguments": {"path": "a"}}
    model = lean(model_server({"whole": True, "text": "at once", "calls": [call], "usage": usage}).url)
    _, whole = await run(model, ask("hi"))
    await model.aclose()
    assert whole.content[0] == Text(text="at once")
    assert whole.content[1].arguments == {"path": "a"}
    assert whole.usage.output == 6


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            {"body": "<html><title>Login</title></html>", "headers": {"content-type": "text/html"}},
            BadRequestError,
            "/v1",
        ),
        ({"status": 404, "body": "<html><title>Not Found</title></html>"}, UnknownModelError, "Not Found"),
        (
            {"status": 308, "body": "", "headers": {"location": "https://new.example/v1"}},
            BadRequestError,
            "new.example",
        ),
        ({"body": {"error": {"message": "bad", "code": 400}}}, BadRequestError, "bad"),
    ],
)
async def test_odd_servers(
    *, model_server: Server, ask: Any, fails: Any, answer: dict[str, Any], kind: type, words: str
) -> None:
    model = lean(model_server(answer).url)
    _, caught = await fails(model, ask("hi"))
    await model.aclose()
    assert type(caught) is kind
    assert words in str(caught)


async def test_a_stream_that_stays_open_after_its_end(model_server: Server, ask: Any, run: Any) -> None:
    end = {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}
    model = lean(model_server({"chunks": [end, "data: [DONE]\n\n", 3]}).url)
    async with asyncio.timeout(2):
        _, whole = await run(model, ask("hi"))
    await model.aclose()
    assert whole.content == (Text(text="a"),)


async def test_a_stream_that_breaks_after_its_end_is_whole(model_server: Server, ask: Any, run: Any) -> None:
    end = {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}
    model = lean(model_server({"chunks": [end, "data: x\n\n"], "cut": 1}).url)
    _, whole = await run(model, ask("hi"))
    await model.aclose()
    assert whole.content == (Text(text="a"),)


async def test_comments_keep_a_stream_alive(model_server: Server, ask: Any, run: Any) -> None:
    waits: list[object] = [0.1, ": PROCESSING\n\n"] * 4
    end = {"choices": [{"delta": {"content": "b"}, "finish_reason": "stop"}]}
    start = {"choices": [{"delta": {"content": "a"}}]}
    model = lean(model_server({"chunks": [start, *waits, end, "data: [DONE]\n\n"]}).url, patience=Patience(next=0.3))
    _, whole = await run(model, ask("hi"))
    await model.aclose()
    assert whole.content == (Text(text="ab"),)


async def test_it_can_be_used_again_after_closing(model_server: Server, ask: Any, run: Any) -> None:
    model = lean(model_server({"text": "one"}, {"text": "two"}).url)
    await run(model, ask("hi"))
    await model.aclose()
    _, whole = await run(model, ask("hi"))
    await model.aclose()
    await model.aclose()
    assert whole.content == (Text(text="two"),)


async def test_requests_side_by_side(model_server: Server, ask: Any, run: Any) -> None:
    model = lean(model_server(*({"text": "answer", "pace": 0.02} for _ in range(5))).url)
    answers = await asyncio.gather(*(run(model, ask(f"question {n}")) for n in range(5)))
    await model.aclose()
    assert [whole.content for _, whole in answers] == [(Text(text="answer"),)] * 5
