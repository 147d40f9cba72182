"""Fixtures of the model tests: servers, proxies, a certificate, requests, and the lanes."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.errors import ModelError
from deepagent.agent.model.litellm_lane import LitellmModel
from deepagent.agent.model.patience import Patience
from deepagent.agent.model.quirks import Profile, profile_of
from deepagent.agent.model.translate import Origin
from deepagent.agent.model.types import Completed, Delta, Model, ModelRequest, TextDelta, ToolSchema
from deepagent.context.messages import Message, Text, UserMessage
from proxy import Proxy

TESTS = Path(__file__).parents[2]

Lane = Callable[..., Model]
"""Makes a model of one lane: `lane(url, patience=…, environ=…)`."""


@pytest.fixture
def proxy() -> Iterator[Callable[..., Proxy]]:
    """Makes proxies: `proxy(server.port)`; they stop with the test."""
    proxies: list[Proxy] = []

    def make(target: int, **options: bool) -> Proxy:
        proxies.append(Proxy(target, **options))
        return proxies[-1]

    yield make
    for one in proxies:
        one.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files of a self-signed certificate for `models.example` and 127.0.0.1, and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=models.example"]
    names = ["-addext", "subjectAltName=DNS:models.example,IP:127.0.0.1"]
    subprocess.run([*command, *names, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


@pytest.fixture
def ask() -> Callable[..., ModelRequest]:
    """Makes requests: `ask("hi")`, `ask(message, …, tools=…)`."""

    def make(*messages: str | Message, **fields: Any) -> ModelRequest:
        given = tuple(
            UserMessage(id=str(i), time="", content=(Text(text=m),)) if isinstance(m, str) else m
            for i, m in enumerate(messages)
        )
        base: dict[str, Any] = {"system": "Be brief.", "messages": given, "tools": (READ,)}
        return ModelRequest(**base | fields)

    return make


READ = ToolSchema(
    name="read_file",
    description="Reads a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


@pytest.fixture
def run() -> Callable[..., Any]:
    """Plays a stream to its end: `await run(model, request)` gives the deltas and the whole answer."""

    async def play(model: Model, request: ModelRequest) -> tuple[list[Delta], Completed]:
        deltas = [delta async for delta in model.stream(request)]
        assert [type(d) for d in deltas].count(Completed) == 1
        last = deltas[-1]
        assert isinstance(last, Completed)
        assert (
            "".join(d.text for d in deltas if isinstance(d, TextDelta)).strip()
            == "".join(part.text for part in last.content if isinstance(part, Text)).strip()
        )
        return deltas, last

    return play


@pytest.fixture
def fails() -> Callable[..., Any]:
    """Plays a stream that fails: `await fails(model, request)` gives the deltas before the error, and the error."""

    async def play(model: Model, request: ModelRequest) -> tuple[list[Delta], ModelError]:
        deltas: list[Delta] = []
        with pytest.raises(ModelError) as caught:
            async for delta in model.stream(request):
                deltas.append(delta)  # noqa: PERF401  # what came before the error is wanted
        return deltas, caught.value

    return play


@pytest.fixture(scope="session")
def litellm_loaded() -> None:
    """Imports litellm once, as its lane does. It warns of itself, which is no test's fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from deepagent.agent.model import litellm_lane

        litellm_lane._litellm()


_ITS_OWN_WARNINGS = (
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
)


@pytest.fixture(params=["lean", pytest.param("litellm", marks=_ITS_OWN_WARNINGS)])
async def lane(request: pytest.FixtureRequest) -> AsyncIterator[Lane]:
    """Each of the two lanes in turn. Its models are closed with the test."""
    models: list[Model] = []

    def make(url: str, *, patience: Patience | None = None, profile: Profile | None = None, **more: Any) -> Model:
        origin = Origin(provider="openai", model="test-model", endpoint=url, key="OPENAI_API_KEY")
        profile = profile or profile_of("", "test-model", "lean")
        models.append(_make(request.param, origin, profile, patience, more))
        return models[-1]

    if request.param == "litellm":
        request.getfixturevalue("litellm_loaded")
    yield make
    for model in models:
        await model.aclose()


def _make(lane: str, origin: Origin, profile: Profile, patience: Patience | None, more: dict[str, Any]) -> Model:
    from dataclasses import replace

    from deepagent.agent.model.lean import LeanModel

    if lane == "lean":
        return LeanModel("openai/test-model", origin=origin, profile=profile, key="sk-test", patience=patience, **more)
    origin = replace(origin, model=f"openai/{origin.model}")
    return LitellmModel("openai/test-model", origin=origin, profile=profile, key="sk-test", patience=patience)
