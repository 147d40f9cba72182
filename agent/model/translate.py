"""What providers, servers and libraries say went wrong, as our errors (`agent.errors`). Nothing else makes those.

Reads status, body and headers of an answer, error objects inside a stream, and exceptions with all their causes. It
knows no library: transport errors are told by the names of their classes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..errors import (
    AuthError,
    BadRequestError,
    BrokenStreamError,
    ContextOverflowError,
    ModelError,
    OutOfCreditError,
    RateLimitError,
    ServerError,
    UnknownModelError,
)
from .overflow import overflow_in
from .retry_after import retry_after
from .said import said
from .transport import transport_error

Headers = Mapping[str, str]

_SPEED = re.compile(r"per minute|\bTPM\b|rate[ _]limit|too many requests", re.IGNORECASE)
_KEY_WRONG = re.compile(
    r"(?:api|access)[ _-]?key|\bunauthori[sz]ed|authentication|invalid[ _]token|not logged in", re.IGNORECASE
)
_KEY_REFUSED = re.compile(
    r"(?:invalid|incorrect|wrong|no|missing|expired|revoked)\b.{0,20}\bapi[ _-]?key|api[ _-]?key\b.{0,30}"
    r"(?:not valid|invalid|incorrect|must be set|not found|missing|required|expired)|invalid_api_key",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient (?:balance|credit|funds)|credit balance|out of credit|more credits|billing"
    r"|payment required|exceeded your current quota",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|(?:no such|unknown|invalid|unsupported) model\b"
    r"|model\b.{0,120}?(?:not found|does(?: not|n't) exist|not exist|is not supported|not available|not a valid)"
    r"|not a valid model|llm provider not provided|no endpoints found|model is not loaded|not mapped",
    re.IGNORECASE | re.DOTALL,
)
_TYPES: Mapping[str, int] = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "insufficient_quota": 402,
    "billing_error": 402,
    "not_found_error": 404,
    "model_not_found": 404,
    "invalid_request_error": 400,
    "bad_request": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
    "server_error": 500,
    "api_error": 500,
    "internal_server_error": 500,
    "timeout_error": 504,
}
"""Statuses for the words by which errors inside a stream name themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an error comes from, for texts that help."""

    provider: str
    """As `deepagent auth set` takes it; empty for a server that we know by its address alone."""
    model: str = ""
    endpoint: str = ""
    key: str = ""
    """The environment variable of the key, or empty."""

    @property
    def name(self) -> str:
        """What texts call the other side."""
        return self.provider or self.endpoint or "the model's provider"


def http_error(status: int, body: str, headers: Headers, origin: Origin) -> ModelError:
    """The error that an answer with this status is."""
    told = said(body)
    return _error(
        _Failure(status=status, message=told.message, text=told.text, wait=retry_after(headers, body)), origin
    )


def stream_error(error: object, origin: Origin) -> ModelError:
    """The error that an error object inside a stream is; one of an unknown kind may pass with another attempt."""
    body = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str)
    told = said(body)
    numbers = [int(code) for code in told.codes if re.fullmatch(r"[45]\d\d", code)]
    named = [_TYPES[code.lower()] for code in told.codes if code.lower() in _TYPES]
    spoken = [429] if _SPEED.search(told.text) else []
    status = (*numbers, *named, *spoken, 500)[0]
    return _error(_Failure(status=status, message=told.message, text=told.text, wait=retry_after({}, body)), origin)


def broken_answer(error: Exception, origin: Origin) -> ModelError:
    """The error that an answer is which cannot be read."""
    return BrokenStreamError(f"The answer of {origin.name} cannot be read: {error}")


def exception_error(error: BaseException, origin: Origin) -> ModelError:
    """The error that an exception of a library is, whatever it is wrapped in."""
    chain = list(_chain(error))
    if ours := next((e for e in chain if isinstance(e, ModelError)), None):
        return ours
    words = " ".join(f"{type(e).__name__} {_text(e)}" for e in chain)
    told = [said(_text(e)) for e in reversed(chain)]
    message = next((t.message for t in told if t.structured), said(_text(error)).message)
    text = " ".join((*(t.text for t in told), *(type(e).__name__ for e in chain)))
    innermost_first = chain[::-1]  # the innermost says what happened, the outer ones what a library made of it
    for e in innermost_first:
        if transport := transport_error(e, words, origin.endpoint, origin.name):
            return transport
    if status := next((status for e in innermost_first if (status := _status(e))), None):
        wait = retry_after(_headers(chain), words)
        return _error(_Failure(status=status, message=message, text=text, wait=wait), origin)
    if overflow := overflow_in(text):
        return ContextOverflowError(_sentence(origin, "says the request is too long", message), window=overflow.window)
    return ModelError(f"{origin.name}: {type(error).__name__}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """What is known of a failed request."""

    status: int
    message: str
    """For people."""
    text: str
    """To look for phrases in."""
    wait: float | None
    """Seconds that the provider asks to wait."""


def _error(failure: _Failure, origin: Origin) -> ModelError:
    status, text, wait = failure.status, failure.text, failure.wait
    if status != 429 and (overflow := overflow_in(text)):
        told = _sentence(origin, "says the request is too long", failure.message)
        return ContextOverflowError(told, status=status, window=overflow.window)
    if status == 402 or (status in {400, 403, 429} and wait is None and _NO_CREDIT.search(text)):
        told = _sentence(origin, "says the account has no credit left", failure.message)
        return OutOfCreditError(told, status=status)
    if status == 429 or (status == 413 and _SPEED.search(text)):
        told = _sentence(origin, "asks to slow down", failure.message)
        return RateLimitError(told, status=status, retry_after=wait)
    if status >= 500 or status in {408, 409, 425}:
        told = _sentence(origin, f"failed with status {status}", failure.message)
        return ServerError(told, status=status, retry_after=wait)
    return _refusal(status, failure.message, text, origin)


def _refusal(status: int, message: str, text: str, origin: Origin) -> ModelError:
    """The error for a status that another attempt will not change."""
    if status == 401 or (status == 403 and _KEY_WRONG.search(text)) or (status == 400 and _KEY_REFUSED.search(text)):
        return AuthError(_sentence(origin, "refuses the key", message, _how_to_set_key(origin)), status=status)
    if status == 403:
        return AuthError(_sentence(origin, "forbids the request", message), status=status)
    if status == 413:
        return ContextOverflowError(_sentence(origin, "says the request is too long", message), status=status)
    if status == 404 or (status in {400, 422} and _NO_MODEL.search(text)):
        what = f"does not know the model {origin.model!r}" if origin.model else "does not know the model"
        hint = "Check the model's name" + (f" and the address {origin.endpoint}." if origin.endpoint else ".")
        return UnknownModelError(_sentence(origin, what, message, hint), status=status)
    return BadRequestError(_sentence(origin, "refuses the request", message), status=status)


def _sentence(origin: Origin, what: str, message: str, hint: str = "") -> str:
    """`openai refuses the key: … Set …` in one line."""
    told = f"{origin.name} {what}" + (f": {message.rstrip('.')}." if message else ".")
    return f"{told} {hint}".strip()


def _how_to_set_key(origin: Origin) -> str:
    command = f"`deepagent auth set {origin.provider}`" if origin.provider else ""
    variable = f"set {origin.key}" if origin.key else ""
    ways = " or run ".join(way for way in (variable, command) if way)
    return f"{ways[0].upper()}{ways[1:]}." if variable else f"Run {ways}." if ways else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error` and everything that it was raised from, wraps or groups, outermost first."""
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        e = waiting.pop(0)
        if not isinstance(e, BaseException) or id(e) in seen:
            continue
        seen.add(id(e))
        yield e
        hidden = e.__suppress_context__ and e.__cause__ is None
        waiting += [e.__cause__, None if hidden else e.__context__, getattr(e, "original_exception", None), *e.args]
        waiting += cast(tuple[object, ...], getattr(e, "exceptions", ()))


def _text(error: BaseException) -> str:
    body = getattr(error, "body", None)
    told = str(error)
    extra = json.dumps(body, ensure_ascii=False, default=str) if isinstance(body, (dict, list)) else str(body or "")
    return told if not extra or extra in told else f"{told} {extra}"


def _status(error: BaseException) -> int | None:
    """The HTTP status that an exception carries in one of the usual places."""
    places = (error, getattr(error, "response", None))
    values = (getattr(place, name, None) for place in places for name in ("status_code", "http_status", "status"))
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and 400 <= v < 600), None)


def _headers(chain: list[BaseException]) -> Headers:
    """The headers of the answer that the innermost exception with an answer carries."""
    for e in reversed(chain):
        found = getattr(getattr(e, "response", None), "headers", None) or getattr(e, "headers", None)
        if found:
            return cast(Headers, found)
    return {}
