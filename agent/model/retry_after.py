"""How long a provider asks to wait before the next attempt, from its headers or its words."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPELLED = re.compile(
    r"(?:try again|retry|wait)\w*\W{1,4}(?:in |after |for )?((?:\d+(?:\.\d+)?\s?(?:ms|h|m|s)\w*\s?)+)"
    r"|retry_?delay['\"]?\s*[:=]\s*['\"]?((?:\d+(?:\.\d+)?(?:ms|h|m|s))+)",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s?(ms|h|m|s)")


def retry_after(headers: Mapping[str, str], body: str, now: float | None = None) -> float | None:
    """Seconds to wait, never negative; None where nothing is said. `now` is the time since the epoch."""
    given = {key.lower(): value for key, value in headers.items()}
    if (ms := _number(given.get("retry-after-ms"))) is not None:
        return ms / 1000
    if value := given.get("retry-after"):
        seconds = _number(value)
        return seconds if seconds is not None else _until(value, time.time() if now is None else now)
    match = _SPELLED.search(body)
    if not match:
        return None
    return sum(float(amount) * _UNITS[unit] for amount, unit in _AMOUNT.findall((match[1] or match[2]).lower()))


def _number(value: str | None) -> float | None:
    try:
        return max(float(value), 0.0) if value else None
    except ValueError:
        return None


def _until(date: str, now: float) -> float | None:
    """Seconds until an HTTP date."""
    try:
        return max(parsedate_to_datetime(date).timestamp() - now, 0.0)
    except ValueError:
        return None
