"""Counting tokens: each text once, in pieces that never block for long, never failing.

What is counted is what goes out: of a model's reasoning only what goes back to it, which the model's lane knows. The
tokenizer's tables are loaded by a function handed in; until they are there, and when the tokenizer fails, a text
is estimated from its bytes, on the safe side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from .images import image_tokens
from .messages import AssistantMessage, Content, Image, Message, Reasoning, Text, ToolCall, shown

Encode = Callable[[str], Sequence[int]]
Result = TypeVar("Result")

_PIECE = 20_000
"""Characters that go to the tokenizer at once: its time grows with the square of a run without spaces."""
_MESSAGE_OVERHEAD = 4
"""Tokens that a provider's chat template adds to a message (OpenAI's own figure is 3 to 4)."""
_BYTES_PER_TOKEN = 3.0
"""For estimates. English and code have 3.5 to 4.5 bytes a token in o200k, so this errs on the safe side."""
_BYTES_BEYOND_ASCII = 8
"""For each so many bytes that UTF-8 takes beyond one a character, another token: Chinese has one a character."""
_OPAQUE = 5
"""Characters of a token in encrypted blocks: four bytes, written in base64."""
_WIDE = 1.5
"""Bytes of a Chinese letter for each of those that it has beyond one."""
_SAMPLED = 400_000
"""Characters above which `about` counts samples instead of the whole."""
_SAMPLES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What of an answer's reasoning goes out again with it."""

    texts: tuple[str, ...] = ()
    opaque: int = 0
    """Characters of signatures and encrypted blocks. Providers count what is in them, not how it is written."""


def as_thought(message: AssistantMessage) -> Returned:
    """All reasoning as it was said: for models whose lane is not known."""
    return Returned(texts=tuple(part.text for part in message.content if isinstance(part, Reasoning)))


def estimate(text: str) -> int:
    """Tokens of a text from its bytes, rather too many than too few."""
    size = len(text.encode("utf-8", "replace"))
    return int(size / _BYTES_PER_TOKEN + (size - len(text)) / _BYTES_BEYOND_ASCII) + 1 if text else 0


class Counter:
    """Counts texts and messages, and remembers what it counted."""

    def __init__(
        self, load: Callable[[], Encode], *, returned: Callable[[AssistantMessage], Returned] = as_thought
    ) -> None:
        """`load` gives the tokenizer's function; it is called once, by `prepare`."""
        self._load = load
        self._returned = returned
        self._encode: Encode | None = None
        self._loaded: Encode | None = None
        self._tried = False
        self._loading = Lock()
        self._texts: dict[tuple[int, int], int] = {}
        """By length and hash, so that no text is kept alive by having been counted."""
        self._messages: dict[int, tuple[Message, int]] = {}
        self._beyond: dict[int, tuple[Message, int]] = {}

    @property
    def exact(self) -> bool:
        """Texts are counted, not estimated."""
        self._adopt()
        return self._encode is not None

    def prepare(self) -> None:
        """Loads the tables, or waits until they are there; takes up to a second, so keep it off the loop's thread.

        Never raises: without tables the estimate serves, whatever the reason.
        """
        with self._loading:
            if not self._tried:
                self._loaded = _guarded(self._load)
                self._tried = True

    def _adopt(self) -> None:
        """Takes over what `prepare` loaded on its thread; estimates made until then are forgotten."""
        loaded = self._loaded
        if loaded is not None:
            self._encode, self._loaded = loaded, None
            self._texts, self._messages, self._beyond = {}, {}, {}

    def text(self, text: str) -> int:
        """Tokens of a text."""
        self._adopt()
        texts = self._texts  # another thread may put a new one in its place while this one counts
        key = (len(text), hash(text))
        known = texts.get(key)
        if known is None:
            known = texts[key] = self._count(text)
        return known

    def about(self, text: str) -> int:
        """Tokens of a text, from samples where counting all of it would take long."""
        if len(text) <= _SAMPLED:
            return self.text(text)
        step = len(text) // _SAMPLES
        counted = sum(self.text(text[at : at + _PIECE]) for at in range(0, step * _SAMPLES, step))
        return round(counted * len(text) / (_SAMPLES * _PIECE))

    def block(self, content: Content) -> int:
        """Tokens of a block of a message as the view has it; of a long text from samples."""
        return self.about(shown(content)) + _picture(content)

    def message(self, message: Message) -> int:
        """Tokens of a message with what surrounds it on the wire."""
        self._adopt()
        messages = self._messages
        known = messages.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        tokens = _MESSAGE_OVERHEAD + sum(self.text(text) for text in _texts(message))
        if isinstance(message, AssistantMessage):
            tokens += self.reasoning(message)
        else:
            tokens += sum(map(_picture, message.content))
        messages[id(message)] = (message, tokens)
        return tokens

    def reasoning(self, message: AssistantMessage) -> int:
        """Tokens of the reasoning that goes out with an answer; part of what `message` says."""
        returned = self._returned(message)
        return sum(self.text(text) for text in returned.texts) + returned.opaque // _OPAQUE

    def beyond(self, message: Message) -> int:
        """Those of a message's tokens that are of text beyond ASCII; an approximation, from its share of the bytes."""
        known = self._beyond.get(id(message))
        if known is None or known[0] is not message:
            known = self._beyond[id(message)] = (message, sum(map(self.beyond_in, _texts(message))))
        return known[1]

    def beyond_in(self, text: str) -> int:
        """Those of a text's tokens that are of what is beyond ASCII."""
        if text.isascii():
            return 0
        size = len(text.encode("utf-8", "replace"))
        return int(self.text(text) * min(1.0, _WIDE * (size - len(text)) / size))

    def messages(self, messages: Iterable[Message]) -> int:
        """Tokens of several messages together."""
        return sum(self.message(message) for message in messages)

    def _count(self, text: str) -> int:
        encode = self._encode
        if encode is None:
            return estimate(text)
        return sum(_encoded(encode, text[at : at + _PIECE]) for at in range(0, len(text), _PIECE))


def _encoded(encode: Encode, text: str) -> int:
    tokens = _guarded(lambda: encode(text))
    return estimate(text) if tokens is None else len(tokens)


def _guarded(work: Callable[[], Result]) -> Result | None:
    """What `work` returns; None if it fails, be it by a panic of the tokenizer, which is no `Exception`."""
    try:
        return work()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - see above
        return None


def _picture(content: Content) -> int:
    return image_tokens(content.width, content.height) if isinstance(content, Image) else 0


def _texts(message: Message) -> Iterable[str]:
    if not isinstance(message, AssistantMessage):
        yield from (shown(content) for content in message.content)
        return
    for part in message.content:
        match part:
            case Text(text=text):
                yield text
            case Reasoning():
                pass
            case ToolCall():
                yield part.name
                yield json.dumps(dict(part.arguments), ensure_ascii=False, separators=(",", ":"))
