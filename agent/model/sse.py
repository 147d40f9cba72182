"""Reads server-sent events from bytes that may be split anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

_MARK = b"\xef\xbb\xbf"


class EventReader:
    """Takes bytes, gives back the events in them as JSON objects.

    An event named `error` becomes an object with `error`; `[DONE]` sets `done`. Lines that are JSON without `data:`
    are taken too, and events that a server forgot to part by a blank line.
    """

    def __init__(self) -> None:
        self.done = False
        self._rest = b""
        self._data: list[str] = []
        self._event = ""
        self._begun = False

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The events that `data` completes (two line ends complete the last one). Raises `ValueError` for no JSON."""
        if not self._begun and data:
            self._begun, data = True, data.removeprefix(_MARK)
        lines = (self._rest + data).splitlines(keepends=True)
        # the last line may go on, and a return at the end may be half of a line end
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            yield from self._line(line.rstrip(b"\r\n").decode("utf-8", "replace"))

    def _line(self, line: str) -> Iterator[dict[str, Any]]:
        if not line:
            yield from self._dispatch()
        elif line.startswith("{"):
            self._data.append(line)
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                self._data.append(value)
            elif field == "event":
                self._event = value

    def _dispatch(self) -> Iterator[dict[str, Any]]:
        lines, event = self._data, self._event
        self._data, self._event = [], ""
        for text in _texts(lines):
            if text == "[DONE]":
                self.done = True
                continue
            value = _object(text)
            yield {"error": value} if event == "error" and "error" not in value else value


def whole_event(body: bytes) -> Iterator[dict[str, Any]]:
    """An answer that was not streamed, as one event. Raises `ValueError` where it is no JSON object."""
    yield _object(body.decode("utf-8", "replace"))


def _object(text: str) -> dict[str, Any]:
    value: object = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"no JSON object: {text[:100]}")
    return cast(dict[str, Any], value)


def _texts(lines: list[str]) -> list[str]:
    """What one event's lines say: one text, or several where events are not parted."""
    whole = "\n".join(lines).strip()
    if len(lines) > 1 and not _is_json(whole):
        return [line.strip() for line in lines if line.strip()]
    return [whole] if whole else []


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
