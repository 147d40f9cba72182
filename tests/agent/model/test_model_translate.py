"""What providers say, as our errors: real phrasings, their look-alikes, and what people are told."""

from __future__ import annotations

import email.utils
import json
import socket
import ssl
import time
from pathlib import Path

import pytest
import yaml
from deepagent.agent.errors import (
    AuthError,
    BadRequestError,
    BrokenStreamError,
    ConnectionFailed,
    ContextOverflowError,
    ModelError,
    OutOfCreditError,
    RateLimitError,
    ServerError,
    UnknownModelError,
)
from deepagent.agent.model.overflow import overflow_in
from deepagent.agent.model.retry_after import retry_after
from deepagent.agent.model.translate import Origin, exception_error, http_error, stream_error

ORIGIN = Origin(provider="openai", model="gpt-5", endpoint="https://api.openai.com/v1", key="OPENAI_API_KEY")

PHRASINGS = yaml.safe_load((Path(__file__).parent / "phrasings.yaml").read_text("utf-8"))
OVERFLOWS: list[tuple[int, str, int | None]] = [tuple(row) for row in PHRASINGS["overflows"]]
LOOK_ALIKES: list[tuple[int, str, str]] = [tuple(row) for row in PHRASINGS["look_alikes"]]


def openai_body(message: str) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})


@pytest.mark.parametrize(("status", "message", "window"), OVERFLOWS)
def test_overflows(status: int, message: str, window: int | None) -> None:
    for body in (openai_body(message), json.dumps({"object": "error", "message": message}), message):
        error = http_error(status, body, {}, ORIGIN)
        assert type(error) is ContextOverflowError, body
        assert error.window == window
        assert error.status == status


@pytest.mark.parametrize(("status", "message", "window"), [case for case in OVERFLOWS if case[1]])
def test_overflows_deep_in_a_chain(status: int, message: str, window: int | None) -> None:
    class Wrapped(Exception):
        status_code = status

    def raise_wrapped() -> None:
        try:
            try:
                try:
                    raise Wrapped(openai_body(message))
                except Wrapped as inner:
                    raise RuntimeError("the call failed") from inner
            except RuntimeError:
                raise ValueError("agent error")  # noqa: B904  # a context, not a cause, is what is wanted
        except ValueError as outer:
            raise ExceptionGroup("several", [outer]) from None

    with pytest.raises(ExceptionGroup) as caught:
        raise_wrapped()
    error = exception_error(caught.value, ORIGIN)
    assert type(error) is ContextOverflowError
    assert error.window == window


@pytest.mark.parametrize(("status", "message", "window"), [case for case in OVERFLOWS if case[1]])
def test_overflows_inside_a_stream(status: int, message: str, window: int | None) -> None:
    error = stream_error({"message": message, "code": status}, ORIGIN)
    assert isinstance(error, ContextOverflowError)
    assert error.window == window


@pytest.mark.parametrize(
    "code", ["context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"]
)
def test_overflows_by_code_alone(code: str) -> None:
    error = http_error(400, json.dumps({"error": {"message": "No.", "code": code, "n_ctx": 4096}}), {}, ORIGIN)
    assert isinstance(error, ContextOverflowError)
    assert error.window == 4096


@pytest.mark.parametrize(("status", "message", "kind"), LOOK_ALIKES)
def test_look_alikes(status: int, message: str, kind: str) -> None:
    assert type(http_error(status, openai_body(message), {}, ORIGIN)).__name__ == kind


def test_the_table_is_large() -> None:
    assert len(OVERFLOWS) > 40
    assert len(LOOK_ALIKES) > 15


def test_a_request_repeated_in_an_error_says_nothing() -> None:
    body = {"error": {"message": "bad role"}, "input": [{"content": "prompt is too long: 5 tokens > 4000 maximum"}]}
    assert type(http_error(400, json.dumps(body), {}, ORIGIN)) is BadRequestError
    detail = [
        {"type": "missing", "loc": ["body"], "msg": "Field required", "input": "maximum context length is 9 tokens"}
    ]
    assert type(http_error(422, json.dumps({"detail": detail}), {}, ORIGIN)) is BadRequestError


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *(
            (401, AuthError),
            (402, OutOfCreditError),
            (403, AuthError),
            (404, UnknownModelError),
            (400, BadRequestError),
        ),
        *((408, ServerError), (409, ServerError), (422, BadRequestError), (429, RateLimitError), (500, ServerError)),
        *((502, ServerError), (503, ServerError), (529, ServerError), (418, BadRequestError)),
    ],
)
def test_statuses_without_words(status: int, kind: type[ModelError]) -> None:
    error = http_error(status, "", {}, ORIGIN)
    assert type(error) is kind
    assert "openai" in str(error)


def test_texts_help() -> None:
    wrong_key = http_error(401, openai_body("Incorrect API key provided: sk-abcdefghijklmnop."), {}, ORIGIN)
    assert "OPENAI_API_KEY" in str(wrong_key)
    assert "`deepagent auth set openai`" in str(wrong_key)
    assert "abcdefgh" not in str(wrong_key), "a key is never repeated"
    unknown = http_error(404, openai_body("The model does not exist"), {}, ORIGIN)
    assert "gpt-5" in str(unknown)
    assert "https://api.openai.com/v1" in str(unknown)
    page = http_error(502, "<html><head><title>Bad gateway</title></head>" + "x" * 5_000, {}, ORIGIN)
    assert "Bad gateway" in str(page)
    assert len(str(page)) < 200


def test_a_long_text_is_cut() -> None:
    assert len(str(http_error(400, openai_body("x" * 5_000), {}, ORIGIN))) < 800


def test_nested_and_wrapped_bodies() -> None:
    raw = json.dumps({"error": {"message": "prompt is too long: 9 tokens > 4096 maximum", "type": "x"}})
    routed = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    error = http_error(400, json.dumps(routed), {}, ORIGIN)
    assert isinstance(error, ContextOverflowError)
    assert error.window == 4096
    listed = json.dumps([{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}])
    assert isinstance(http_error(400, listed, {}, ORIGIN), AuthError)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ConnectionRefusedError(111, "Connection refused"), ConnectionFailed, "api.openai.com:443"),
        (socket.gaierror(-2, "Name or service not known"), ConnectionFailed, "cannot be found"),
        (ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED self-signed"), ConnectionFailed, "SSL_CERT_FILE"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), ConnectionFailed, "plain http"),
        (ConnectionResetError(104, "Connection reset by peer"), BrokenStreamError, "reset by peer"),
        (TimeoutError(), BrokenStreamError, "too long"),
        (type("ProxyError", (Exception,), {})("407 Proxy Authentication Required"), ConnectionFailed, "HTTPS_PROXY"),
        (type("ConnectTimeout", (Exception,), {})(""), ConnectionFailed, "not reached"),
        (type("RemoteProtocolError", (Exception,), {})("peer closed"), BrokenStreamError, "peer closed"),
        (ValueError("a bug"), ModelError, "ValueError: a bug"),
    ],
)  # fmt: skip
def test_errors_below_http(error: Exception, kind: type[ModelError], words: str) -> None:
    translated = exception_error(error, ORIGIN)
    assert type(translated) is kind
    assert words in str(translated)


def test_our_own_errors_pass_through() -> None:
    ours = RateLimitError("slow down", retry_after=3)
    wrapped = RuntimeError("failed")
    wrapped.__cause__ = ours
    assert exception_error(wrapped, ORIGIN) is ours


def test_a_cycle_of_causes_ends() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__context__, second.__context__ = second, first
    assert isinstance(exception_error(first, ORIGIN), ModelError)


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": email.utils.formatdate(NOW + 90, usegmt=True)}, "", 90.0),
        ({"retry-after": email.utils.formatdate(NOW - 90, usegmt=True)}, "", 0.0),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"retry-after": "nonsense"}, "", None),
        ({"retry-after": "-3"}, "", 0.0),
        ({}, "Please try again in 7.66s.", 7.66),
        ({}, "Please try again in 1m30s.", 90.0),
        ({}, "Please try again in 250ms", 0.25),
        ({}, "Please retry in 12.5s.", 12.5),
        ({}, "try again in 20 seconds", 20.0),
        ({}, '{"retryDelay": "34s"}', 34.0),
        ({}, "slow down", None),
    ],
)
def test_retry_after(headers: dict[str, str], body: str, seconds: float | None) -> None:
    assert retry_after(headers, body, NOW) == seconds


def test_retry_after_reaches_the_error() -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    error = http_error(503, "busy", {"Retry-After": date}, ORIGIN)
    assert isinstance(error, ServerError)
    assert error.retry_after is not None
    assert 20 < error.retry_after <= 30


def test_a_quota_that_passes_is_a_rate_limit() -> None:
    body = json.dumps({"error": {"message": "You exceeded your current quota", "details": [{"retryDelay": "34s"}]}})
    error = http_error(429, body, {}, ORIGIN)
    assert isinstance(error, RateLimitError)
    assert error.retry_after == 34


def test_ordinary_text_is_no_overflow() -> None:
    for text in ("", "ok", "the context was lost", "token", "length must be positive", "window closed"):
        assert overflow_in(text) is None
