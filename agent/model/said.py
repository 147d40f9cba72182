"""What the body of an error says: the words for people, and the codes. Bodies come as JSON, text, web pages, or as a
library's text around one of these."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

_SHOWN = 600
"""Characters of a provider's own words that an error repeats."""
_STARTS = 8
"""Places in a text at which JSON is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The telling parts of a body. A body may repeat the request: the rest of it says nothing about the error."""

    message: str
    codes: tuple[str, ...] = ()
    """Codes, types and numbers, as they came."""
    structured: bool = False
    """Whether the body held an object with a message, not just text."""

    @property
    def text(self) -> str:
        """Everything, to look for phrases in."""
        return " ".join((self.message, *self.codes))


def said(body: str) -> Said:
    """Reads a body."""
    parsed = _json_in(body)
    messages: list[str] = []
    codes: list[str] = []
    _collect(parsed, messages, codes)
    if messages:
        return Said(message=_tidy(" – ".join(dict.fromkeys(messages))), codes=tuple(codes), structured=True)
    if "<html" in body.lower():
        title = re.search(r"<title>(.*?)</title>", body, re.IGNORECASE | re.DOTALL)
        return Said(message=f"it sent a web page ({title[1].strip()})" if title else "it sent a web page")
    return Said(message=_tidy(body), codes=tuple(codes))


def _json_in(body: str) -> object:
    """The first JSON object or list in `body`, or None."""
    decoder = json.JSONDecoder()
    for start in [match.start() for match in re.finditer(r"[{\[]", body)][:_STARTS]:
        try:
            return decoder.raw_decode(body, start)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _collect(value: object, messages: list[str], codes: list[str]) -> None:
    """Gathers the telling fields of an error object, whichever way a provider nests them."""
    if isinstance(value, list):
        for item in cast(list[object], value):
            _collect(item, messages, codes)
    if not isinstance(value, Mapping):
        return
    for key, item in cast(Mapping[str, object], value).items():
        match key, item:
            case (("message" | "msg" | "detail" | "error" | "raw" | "error_msg"), str(text)):
                if isinstance(inner := _json_in(text), dict):
                    _collect(cast(object, inner), messages, codes)
                else:
                    messages.append(text)
            case (("code" | "type" | "status" | "reason"), (str() | int())):
                codes.append(str(item))
            case "n_ctx", int():
                codes.append(f"n_ctx={item}")
            case (("error" | "errors" | "detail" | "details" | "metadata" | "body"), (dict() | list())):
                _collect(cast(object, item), messages, codes)
            case _:
                pass


def _tidy(text: str) -> str:
    """In one line, cut, without a library's prefixes and without keys."""
    text = re.sub(r" Original exception: .*", "", text, flags=re.DOTALL)
    text = re.sub(r"(?:litellm\.)?\b\w+(?:Error|Exception)\b(?: -|:) ?", "", text)
    text = re.sub(r"\b(sk|gsk|xai|AIza|pk)[-_][\w-]{6,}", r"\1-…", " ".join(text.split()))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
