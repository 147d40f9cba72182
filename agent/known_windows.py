"""The windows that servers were found to have, kept from one session to the next in a small file of the user's.

What is kept is a guess to begin with: it is found out anew when a model is used, and a file that cannot be read or
written is as good as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from ..context.budget import LEAST_WINDOW
from ..context.messages import Clock, timestamp, utc_now
from .model.types import Model
from .small_files import read_small, write_private

_LARGEST_FILE = 256 * 1024
_MOST = 200
"""Models that are kept, the newest."""
_LIFE = timedelta(days=30)
"""Providers change windows, and users their servers."""
_SOURCES = ("server", "overflow")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWindow:
    """A window that was found out."""

    tokens: int
    source: Literal["server", "overflow"]


class KnownWindows:
    """Reads and writes the file; each question reads it anew, as other sessions write it too."""

    def __init__(self, path: Path, *, clock: Clock = utc_now) -> None:
        self._path = path
        self._clock = clock

    def of(self, model: Model) -> KnownWindow | None:
        """What is known of `model` at its address."""
        row = self._rows().get(_key(model))
        return _window(row) if row is not None else None

    def put(self, model: Model, window: KnownWindow) -> None:
        """Keeps a window. Raises nothing: it can be found out again."""
        rows = dict(self._rows())
        rows.pop(_key(model), None)
        rows[_key(model)] = {
            "tokens": window.tokens,
            "source": window.source,
            "time": timestamp(self._clock),
        }
        kept = dict(list(rows.items())[-_MOST:])
        with suppress(OSError):
            write_private(self._path, json.dumps({"version": 1, "windows": kept}, indent=1).encode() + b"\n")

    def _rows(self) -> Mapping[str, Mapping[str, Any]]:
        """The rows that make sense and are not too old."""
        try:
            data, size = read_small(self._path, _LARGEST_FILE)
            read: object = json.loads(data) if size <= _LARGEST_FILE else None
        except (OSError, ValueError, RecursionError):
            return {}
        rows = cast(dict[str, object], read).get("windows") if isinstance(read, dict) else None
        named = cast(dict[str, object], rows).items() if isinstance(rows, dict) else ()
        oldest = timestamp(lambda: self._clock() - _LIFE)
        return {
            key: row
            for key, one in named
            if isinstance(one, dict) and _window(row := cast(dict[str, Any], one)) and row["time"] >= oldest
        }


def _window(row: Mapping[str, Any]) -> KnownWindow | None:
    tokens, source = row.get("tokens"), row.get("source")
    if not isinstance(row.get("time"), str):
        return None
    if type(tokens) is not int or not LEAST_WINDOW <= tokens < 100_000_000 or source not in _SOURCES:
        return None
    return KnownWindow(tokens=tokens, source=source)


def _key(model: Model) -> str:
    """Address and name, without what an address may hold of users and passwords; no address: the provider's own."""
    endpoint = getattr(model, "endpoint", "")
    parts = urlsplit(endpoint)
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if endpoint else ""
    return f"{where} {model.name}".strip()
