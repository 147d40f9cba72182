"""Trimming, the step that needs no model: what the work has passed by leaves the view, and pointers take its place.

Old arguments become stubs (`context.shorten`). Reads that a later read or edit of the same file made stale go next,
then old results, the large and the old first, until enough is free. A text that no file holds is written to one first;
what was read from a file can be read there again. All of it is one `Shortened` entry, so the prefix changes once.
When it is worth it is the ladder's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .entries import OffloadedBlock
from .facts import ADDED, FIRST_LINE, LAST_LINE, PATH
from .messages import Content, Image, Message, Pointer, ToolMessage
from .offload import Offloader, as_pointer
from .shorten import Shortening, older, plan_shortening
from .stubs import image_stub, read_stub
from .tokens import Counter

Spared = Callable[[ToolMessage], bool]
PREVIEW = 60
"""Tokens of the preview that stands for an old result."""
LEAST = 200
"""Tokens below which a result is not worth a pointer."""
_ALL = (1, 1 << 62)
_POINTER = 60
"""About what a pointer takes without its preview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A block that may leave the view."""

    message: ToolMessage
    block: int
    why: Literal["stale", "old"]
    saved: int
    """About what its going frees, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """What would leave a view."""

    stubs: Shortening
    results: tuple[Candidate, ...]
    resent: int
    """Tokens behind the first change, which are sent uncached once."""

    @property
    def saved(self) -> int:
        """About what all of it frees, in tokens."""
        return self.stubs.tokens_saved + sum(result.saved for result in self.results)


def plan_trim(messages: Sequence[Message], *, keep: int, enough: int, counter: Counter, spared: Spared) -> Trim:
    """What may go of `messages`, older than the newest `keep` tokens: all stubs and stale reads, and of the old results
    as many as it takes to free `enough` tokens. Results that are `spared` stay.
    """
    stubs = plan_shortening(messages, keep, counter)
    saved = stubs.tokens_saved
    results: list[Candidate] = []
    for candidate in _candidates(messages, keep, counter, spared):
        if candidate.why == "old" and saved >= enough:
            break
        results.append(candidate)
        saved += candidate.saved
    return Trim(stubs=stubs, results=tuple(results), resent=_behind(messages, stubs, results, counter) - saved)


def _candidates(messages: Sequence[Message], keep: int, counter: Counter, spared: Spared) -> Iterator[Candidate]:
    """Blocks that may go: stale reads first, then the others by size and age."""
    stale = set(stale_reads(messages))
    found: list[tuple[bool, int, Candidate]] = []
    for position, message in enumerate(older(messages, keep, counter)):
        if not isinstance(message, ToolMessage) or spared(message):
            continue
        for block, content in enumerate(message.content):
            tokens = counter.block(content)
            if tokens >= LEAST:
                old = message.id not in stale
                saved = tokens - _POINTER - (0 if PATH in message.log else PREVIEW)
                candidate = Candidate(message=message, block=block, why="old" if old else "stale", saved=saved)
                found.append((old, -tokens * (len(messages) - position), candidate))
    return (candidate for *_, candidate in sorted(found, key=lambda one: one[:2]))


def stale_reads(messages: Sequence[Message]) -> Iterator[str]:
    """The ids of reads of which a later read has the same lines, or whose file was edited later."""
    newer: dict[str, list[tuple[int, int]]] = {}
    for message in reversed(messages):
        path = message.log.get(PATH) if isinstance(message, ToolMessage) else None
        if not isinstance(message, ToolMessage) or not isinstance(path, str) or message.is_error:
            continue
        first, last = lines_of(message) or _ALL
        if ADDED in message.log:
            newer.setdefault(path, []).append(_ALL)
            continue
        if any(low <= first and last <= high for low, high in newer.get(path, ())):
            yield message.id
        if lines_of(message):
            newer.setdefault(path, []).append((first, last))


def lines_of(message: ToolMessage) -> tuple[int, int] | None:
    """The first and the last line that a read shows; None where that is not known."""
    first, last = message.log.get(FIRST_LINE), message.log.get(LAST_LINE)
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None


def _behind(messages: Sequence[Message], stubs: Shortening, results: Sequence[Candidate], counter: Counter) -> int:
    """Tokens from the first message that changes to the end."""
    changed = {stub.message for stub in stubs.stubs} | {result.message.id for result in results}
    for position, message in enumerate(messages):
        if message.id in changed:
            return counter.messages(messages[position:])
    return 0


def point(candidate: Candidate, offloader: Offloader) -> OffloadedBlock:
    """What takes the block's place; its text is in a file when this returns. Raises `StorageError`."""
    message, block = candidate.message, candidate.message.content[candidate.block]
    pointer = stand_in(message, block, offloader, stale=candidate.why == "stale")
    return OffloadedBlock(message=message.id, block=candidate.block, pointer=pointer, why=candidate.why)


def stand_in(message: ToolMessage, block: Content, offloader: Offloader, *, stale: bool = False) -> Pointer:
    """A short pointer for a block of a result. Raises `StorageError`."""
    path = message.log.get(PATH)
    if isinstance(block, Pointer):
        return offloader.shorter(block, message.tool)
    if isinstance(block, Image):
        path, tokens = offloader.storage.shown(block.name), offloader.counter.block(block)
        shown = image_stub(block.shown, path)
        return Pointer(path=path, sha256=block.sha256, bytes=block.bytes, lines=0, tokens=tokens, shown=shown)
    if isinstance(path, str) and ADDED not in message.log:
        lines = lines_of(message)
        text = read_stub(path, lines, message=message.id, stale=stale)
        return as_pointer(block.text, path=path, tokens=offloader.counter.about(block.text), shown=text)
    return offloader.pointer(block.text, message.tool, tokens=PREVIEW)
