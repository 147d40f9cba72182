"""Failed attempts are repeated, and what they had said is withdrawn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import pytest
from deepagent.agent.errors import (
    AuthError,
    BadRequestError,
    BrokenStreamError,
    ConnectionFailed,
    ContextOverflowError,
    ModelError,
    RateLimitError,
    RetryableError,
    ServerError,
)
from deepagent.agent.model.retry import RetryingModel, RetryPolicy
from deepagent.agent.model.scripted import ScriptedModel
from deepagent.agent.model.types import Completed, Delta, ModelRequest, TextDelta, Withdrawn
from deepagent.context.messages import Text

REQUEST = ModelRequest(system="", messages=())


class Waits:
    """Notes the waits instead of waiting."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def failing(kind: str, times: int | None, **fields: Any) -> ScriptedModel:
    error = {"kind": kind, "times": times, "after": 1, **fields}
    return ScriptedModel({"steps": [{"text": "a whole answer", "error": error}]}, record=True)


async def play(model: RetryingModel) -> list[Delta]:
    return [delta async for delta in model.stream(REQUEST)]


async def test_an_attempt_is_repeated_and_withdrawn() -> None:
    waits = Waits()
    model = RetryingModel(failing("server", 2), sleep=waits, random=lambda: 0.5)
    deltas = await play(model)
    withdrawn = [d for d in deltas if isinstance(d, Withdrawn)]
    assert [(w.attempt, w.wait) for w in withdrawn] == [(2, 1.0), (3, 2.0)]
    assert waits.seconds == [1.0, 2.0]
    after = deltas[deltas.index(withdrawn[-1]) + 1 :]
    assert "".join(d.text for d in after if isinstance(d, TextDelta)) == "a whole answer"
    assert isinstance(deltas[-1], Completed)
    assert deltas[-1].content == (Text(text="a whole answer"),)


async def test_attempts_are_limited() -> None:
    inner, waits = failing("server", None), Waits()
    with pytest.raises(ServerError):
        await play(RetryingModel(inner, RetryPolicy(attempts=5), sleep=waits, random=lambda: 0.5))
    assert len(inner.requests) == 5
    assert waits.seconds == [1.0, 2.0, 4.0, 8.0]


async def test_what_is_not_reached_is_given_up_sooner() -> None:
    inner = failing("connection", None)
    with pytest.raises(ConnectionFailed):
        await play(RetryingModel(inner, sleep=Waits()))
    assert len(inner.requests) == 3


@pytest.mark.parametrize("kind", ["auth", "unknown_model", "bad_request", "overflow", "out_of_credit"])
async def test_what_does_not_pass_is_raised_at_once(kind: str) -> None:
    inner, waits = failing(kind, None), Waits()
    with pytest.raises(ModelError) as caught:
        await play(RetryingModel(inner, sleep=waits))
    assert not isinstance(caught.value, RetryableError)
    assert len(inner.requests) == 1
    assert not waits.seconds


@pytest.mark.parametrize("kind", ["rate_limit", "server", "broken_stream"])
async def test_what_passes_is_repeated(kind: str) -> None:
    inner = failing(kind, 1)
    await play(RetryingModel(inner, sleep=Waits()))
    assert len(inner.requests) == 2


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (0.2, 1.0), (90.0, 60.0), (120.0, 60.0)])
async def test_the_provider_says_how_long(asked: float, waited: float) -> None:
    waits = Waits()
    await play(RetryingModel(failing("rate_limit", 1, retry_after=asked), sleep=waits, random=lambda: 0.5))
    assert waits.seconds == [waited]


async def test_too_long_a_wait_is_raised_at_once() -> None:
    inner, waits = failing("rate_limit", None, retry_after=121), Waits()
    with pytest.raises(RateLimitError) as caught:
        await play(RetryingModel(inner, sleep=waits))
    assert caught.value.retry_after == 121
    assert not waits.seconds
    assert len(inner.requests) == 1


async def test_waits_are_spread_and_bounded() -> None:
    for number, shortest in ((0.0, 0.75), (1.0, 1.25)):
        waits = Waits()
        policy = RetryPolicy(attempts=9)
        model = RetryingModel(failing("server", 8), policy, sleep=waits, random=lambda number=number: number)
        await play(model)
        assert waits.seconds[0] == shortest
        assert max(waits.seconds) == 60


async def test_cancelling_ends_the_wait() -> None:
    inner = failing("server", None)
    model = RetryingModel(inner, RetryPolicy(base=100))
    task = asyncio.create_task(play(model))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)
    assert len(inner.requests) == 1


async def test_leaving_closes_the_attempt() -> None:
    closed: list[bool] = []

    class Endless:
        name = "endless"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            try:
                while True:
                    yield TextDelta(text="x")
            finally:
                closed.append(True)

        async def aclose(self) -> None:
            closed.append(False)

    model = RetryingModel(Endless())
    stream = cast(AsyncGenerator[Delta, None], model.stream(REQUEST))
    assert await anext(stream) == TextDelta(text="x")
    await stream.aclose()
    assert closed == [True]
    await model.aclose()
    assert closed == [True, False]


async def test_it_looks_like_what_it_wraps() -> None:
    model = RetryingModel(ScriptedModel({"steps": []}, name="demo"))
    assert (model.name, model.lane, model.endpoint) == ("demo", "scripted", "")


def test_kinds_of_errors() -> None:
    assert issubclass(ContextOverflowError, BadRequestError)
    assert not issubclass(AuthError, RetryableError)
    assert issubclass(BrokenStreamError, RetryableError)
