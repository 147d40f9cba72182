"""Whole answers of many providers: which mean that the request was too long, and which only look like it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from deepagent.agent.errors import ContextOverflowError
from deepagent.agent.model.translate import Origin, exception_error, http_error, stream_error
from server import ModelServer

Case = tuple[str, int, Any, int | None]

TABLE: dict[str, list[list[Any]]] = yaml.safe_load((Path(__file__).parent / "overflows.yaml").read_text("utf-8"))
OVERFLOWS: list[Case] = [(row[0], row[1], row[2], row[3]) for row in TABLE["overflows"]]
LOOK_ALIKES: list[tuple[str, int, Any, str]] = [(row[0], row[1], row[2], row[3]) for row in TABLE["look_alikes"]]
ORIGIN = Origin(provider="", model="m", endpoint="http://127.0.0.1:1/v1")


def written(body: object) -> str:
    return body if isinstance(body, str) else json.dumps(body)


def test_the_table_is_large() -> None:
    assert len({name.split()[0] for name, *_ in OVERFLOWS}) >= 25
    assert len(LOOK_ALIKES) >= 12


@pytest.mark.parametrize(("name", "status", "body", "window"), OVERFLOWS, ids=[case[0] for case in OVERFLOWS])
def test_overflows(name: str, status: int, body: object, window: int | None) -> None:
    error = http_error(status, written(body), {}, ORIGIN)
    assert type(error) is ContextOverflowError, f"{name}: {error!r}"
    assert error.window == window


@pytest.mark.parametrize(("name", "status", "body", "window"), OVERFLOWS, ids=[case[0] for case in OVERFLOWS])
def test_overflows_as_a_librarys_exception(name: str, status: int, body: object, window: int | None) -> None:
    class APIError(Exception):
        status_code = status

    try:
        try:
            raise APIError(f"Error code: {status} - {written(body)}")
        except APIError as inner:
            raise RuntimeError("the call failed") from inner
    except RuntimeError as outer:
        error = exception_error(outer, ORIGIN)
    assert type(error) is ContextOverflowError, f"{name}: {error!r}"
    assert error.window == window


@pytest.mark.parametrize(("name", "status", "body", "kind"), LOOK_ALIKES, ids=[case[0] for case in LOOK_ALIKES])
def test_look_alikes(name: str, status: int, body: object, kind: str) -> None:
    assert type(http_error(status, written(body), {}, ORIGIN)).__name__ == kind, name
    assert not isinstance(stream_error(body, ORIGIN), ContextOverflowError), name


IN_STREAMS = [case for case in OVERFLOWS if isinstance(case[2], dict)]


@pytest.mark.parametrize("case", IN_STREAMS, ids=[case[0] for case in IN_STREAMS])
async def test_overflows_inside_a_stream(
    model_server: Callable[..., ModelServer],
    lean: Callable[[str], Any],
    ask: Any,
    fails: Any,
    case: Case,
) -> None:
    name, status, body, window = case
    told = body if "error" in body else {"error": body}
    server = model_server({"chunks": [{"choices": [{"index": 0, "delta": {"content": "I"}}]}, told]})
    deltas, error = await fails(lean(server.url), ask("hi"))
    assert [delta.text for delta in deltas] == ["I"]
    assert type(error) is ContextOverflowError, f"{name} ({status}): {error!r}"
    assert error.window == window


@pytest.fixture
async def lean() -> AsyncIterator[Callable[[str], Any]]:
    """Makes models of the lean lane."""
    from deepagent.agent.model.lean import LeanModel
    from deepagent.agent.model.quirks import Profile

    models: list[LeanModel] = []

    def make(url: str) -> LeanModel:
        models.append(LeanModel("openai/m", origin=Origin(provider="", model="m", endpoint=url), profile=Profile()))
        return models[-1]

    yield make
    for model in models:
        await model.aclose()
