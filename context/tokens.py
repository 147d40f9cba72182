"""Counting tokens: each text once, in pieces that never block for long, never failing.

The tokenizer's tables are loaded by a function handed in; until they are there, and when the tokenizer fails, a text
is estimated from its bytes, on the safe side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from .messages import AssistantMessage, Message, Reasoning, Text, ToolCall, shown

Encode = Callable[[str], Sequence[int]]

_PIECE = 20_000
"""Characters that go to the tokenizer at once: its time grows with the square of a run without spaces."""
_MESSAGE_OVERHEAD = 4
"""Tokens that a provider's chat template adds to a message (OpenAI's own figure is 3 to 4)."""
_BYTES_PER_TOKEN = 3.0
"""For estimates. English and code have 3.5 to 4.5 bytes a token in o200k, so this errs on the safe side."""


def estimate(text: str) -> int:
    """Tokens of a text from its bytes, rather too many than too few."""
    return int(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN) + 1 if text else 0


class Counter:
    """Counts texts and messages, and remembers what it counted."""

    def __init__(self, load: Callable[[], Encode]) -> None:
        """`load` gives the tokenizer's function; it is called once, by `prepare`."""
        self._load = load
        self._encode: Encode | None = None
        self._loaded: Encode | None = None
        self._tried = False
        self._texts: dict[str, int] = {}
        self._messages: dict[int, tuple[Message, int]] = {}

    @property
    def exact(self) -> bool:
        """Texts are counted, not estimated."""
        self._adopt()
        return self._encode is not None

    def prepare(self) -> None:
        """Loads the tables; takes up to a second, so call it on another thread than the loop's. Never raises."""
        if not self._tried:
            self._tried = True
            with suppress(Exception):  # without tables the estimate serves, whatever the reason
                self._loaded = self._load()

    def _adopt(self) -> None:
        """Takes over what `prepare` loaded on its thread; estimates made until then are forgotten."""
        if self._loaded is not None:
            self._encode, self._loaded = self._loaded, None
            self._texts.clear()
            self._messages.clear()

    def text(self, text: str) -> int:
        """Tokens of a text."""
        self._adopt()
        known = self._texts.get(text)
        if known is None:
            known = self._texts[text] = self._count(text)
        return known

    def message(self, message: Message) -> int:
        """Tokens of a message with what surrounds it on the wire."""
        self._adopt()
        known = self._messages.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        tokens = _MESSAGE_OVERHEAD + sum(self._count(text) for text in _texts(message))
        self._messages[id(message)] = (message, tokens)
        return tokens

    def messages(self, messages: Iterable[Message]) -> int:
        """Tokens of several messages together."""
        return sum(self.message(message) for message in messages)

    def _count(self, text: str) -> int:
        encode = self._encode
        if encode is None:
            return estimate(text)
        return sum(_encoded(encode, text[at : at + _PIECE]) for at in range(0, len(text), _PIECE))


def _encoded(encode: Encode, text: str) -> int:
    try:
        return len(encode(text))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - the tokenizer's panics are no Exception
        return estimate(text)


def _texts(message: Message) -> Iterable[str]:
    if not isinstance(message, AssistantMessage):
        yield from (shown(content) for content in message.content)
        return
    for part in message.content:
        match part:
            case Text(text=text) | Reasoning(text=text):
                yield text
            case ToolCall():
                yield part.name
                yield json.dumps(dict(part.arguments), ensure_ascii=False)
