"""The head of each request: what the model has been told of the prompt, and how it learns of changes.

The prompt that is sent is what the log's prompt parts say, so a session that is opened again sends the same bytes. A
part that changes is told in a note, and folded into the prompt when the prefix changes anyway: after a step of the
ladder, with another model, or after a pause that no prompt cache outlives. What a part says is the business of
`agent.prompt_source`, how a note reads of `agent.notes`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from ..context.budget import Budget
from ..context.cache import is_cold
from ..context.entries import (
    Compacted,
    CompactionUndone,
    Dropped,
    Entry,
    MessageLogged,
    ModelChanged,
    Offloaded,
    Restored,
    Rewound,
    Shortened,
)
from ..context.entries import PromptPart as LoggedPart
from ..context.facts import PATH
from ..context.ladder import Ladder
from ..context.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolMessage,
    UserMessage,
    new_id,
    text_of,
    timestamp,
)
from .events import Event, Noticed
from .notes import Items, changes, items, note, noted
from .prompt import PromptPart, in_order, prompt_text
from .prompt_source import PromptSource

_OURS = frozenset({"base", "planning", "files"})
"""Parts that differ only after an update, in another folder or with another window: not worth a note."""


@dataclass(slots=True, kw_only=True)
class _Told:
    """What the log says that the model has been told."""

    logged: dict[str, str] = field(default_factory=dict[str, str])
    """The parts of the prompt by name; empty ones are gone."""
    known: dict[str, Items] = field(default_factory=dict[str, Items])
    """The same with what notes said since."""
    notes: dict[str, int] = field(default_factory=dict[str, int])
    """Tokens of the notes on each part since it was logged."""
    touched: dict[str, None] = field(default_factory=dict[str, None])
    """Files that tools worked on, as the log calls them."""
    moved: bool = False
    """What was sent last is no longer what the next request begins with."""
    last: str | None = None
    """The time of the last answer."""


class Head:
    """Owns the prompt of one session."""

    def __init__(
        self, source: PromptSource, ladder: Ladder, *, mask: Callable[[str], str], fit: Callable[[Budget], None]
    ) -> None:
        """`fit` makes the tools' schemas suit a window."""
        self._source = source
        self._fit = fit
        self._ladder = ladder
        self._session = ladder.session
        self._mask = mask
        self._live: Sequence[Entry] = ()
        self._read = 0
        """How many of the live entries are in `_told`."""
        self._told = _Told()
        self._said = set(source.notices())
        """Notices that were given."""
        self._news: list[str] = []
        """What is to be said as soon as somebody watches."""
        self._reading = Lock()
        """Somebody may look at the parts in another thread."""
        self._draft = () if self._up_to_date().logged else self._now()

    @property
    def parts(self) -> tuple[PromptPart, ...]:
        """The parts as they are sent; before the first request, as they would be."""
        logged = self._up_to_date().logged
        parts = (PromptPart(name=name, text=text) for name, text in logged.items() if text)
        return in_order(parts) if logged else self._draft

    @property
    def text(self) -> str:
        """The prompt as it is sent."""
        return prompt_text(self.parts)

    async def begin(self) -> None:
        """A run begins: what is computed for each run is made anew, and what has changed meanwhile is told."""
        self._source.begin()
        await self._renew()

    async def renew(self, emit: Callable[[Event], None]) -> None:
        """Before a request: tells of what has changed, in notes or in the prompt. Raises `StorageError`."""
        await self._renew()
        while self._news:
            emit(Noticed(text=self._news.pop(0)))

    async def _renew(self) -> None:
        told = self._up_to_date()
        fold = self._to_fold(told)
        if fold:
            self._source.budget = self._ladder.budget
            self._fit(self._ladder.budget)
        parts = await asyncio.to_thread(self._now)
        notices = [notice for notice in self._source.notices() if notice not in self._said]
        self._said.update(notices)
        self._news += notices
        changed = dict(_changed(told, parts))
        if told.logged:
            for name, (new, gone) in changed.items():
                self._announce(name, told, new, gone)
        if fold or not _OURS.isdisjoint(changed):
            self._fold(told, parts)
        elif changed and not self._session.open_calls():
            self._tell(told, parts, changed)

    async def settle(self, emit: Callable[[Event], None]) -> None:
        """After the ladder's steps: if they changed the prefix, the prompt takes up what notes have said."""
        if self._up_to_date().moved:
            await self.renew(emit)

    def _to_fold(self, told: _Told) -> bool:
        was, budget = self._source.budget, self._ladder.budget
        smaller = budget.small != was.small or budget.memory_limit < was.memory_limit
        cold = is_cold(self._ladder.cache, told.last, self._session.clock)
        return not told.logged or told.moved or smaller or cold

    def _now(self) -> tuple[PromptPart, ...]:
        parts = self._source.parts(self._told.touched)
        return tuple(replace(part, text=self._mask(part.text)) for part in parts)

    def _fold(self, told: _Told, parts: Sequence[PromptPart]) -> None:
        """Logs the parts that are not what the log has. Notes on them leave the view with that."""
        size, meter = self._ladder.counter.text, self._ladder.meter
        before = size(self.text)
        now = {part.name: part.text for part in parts}
        for name in (*now, *(name for name in told.logged if name not in now)):
            text = now.get(name, "")
            if told.logged.get(name, "") != text or name in told.notes:
                digest = hashlib.sha256(text.encode()).hexdigest()
                entry = LoggedPart(**self._session.header(), name=name, sha256=digest, content=text)
                self._session.append(entry)
                meter.add(entry)
        meter.overhead += size(self.text) - before

    def _tell(
        self, told: _Told, parts: Sequence[PromptPart], changed: Mapping[str, tuple[Items, Sequence[str]]]
    ) -> None:
        """Says what has changed; folds it in where notes would take more room than memory may."""
        texts = {name: note(name, new, gone) for name, (new, gone) in changed.items()}
        count = self._ladder.counter.text
        if any(told.notes.get(n, 0) + count(text) > self._ladder.budget.memory_limit for n, text in texts.items()):
            self._fold(told, parts)
            return
        for name, text in texts.items():
            time = timestamp(self._session.clock)
            self._session.say(
                UserMessage(id=new_id(), time=time, content=(Text(text=text),), synthetic=True, part=name)
            )

    def _announce(self, name: str, told: _Told, new: Items, gone: Sequence[str]) -> None:
        """Keeps for the person who watches what the model is told."""
        known = told.known.get(name, {})
        match name:
            case "memory":
                lines = [f"{self._source.shown(p)} {'changed' if p in known else 'was found'}" for p in new]
                lines += [f"{self._source.shown(path)} is gone" for path in gone]
            case "skills":
                lines = [f"skills changed: {', '.join((*new, *gone))}"]
            case _:
                return
        self._news += (f"{line}: the agent knows it from now on" for line in lines)

    def _up_to_date(self) -> _Told:
        with self._reading:
            live = self._session.live
            if live is not self._live:
                self._live, self._read, self._told = live, 0, _Told()
            for position in range(self._read, len(live)):
                self._take(live[position])
            self._read = max(self._read, len(live))
            return self._told

    def _take(self, entry: Entry) -> None:
        told = self._told
        match entry:
            case LoggedPart(name=name, content=content):
                told.logged[name], told.known[name] = content, items(name, content)
                told.notes.pop(name, None)
            case MessageLogged(message=message):
                self._take_message(message)
            case (
                Compacted() | CompactionUndone() | Shortened() | Offloaded() | Dropped() | Restored() | Rewound()
                | ModelChanged()
            ):  # fmt: skip
                told.moved = True
            case _:
                pass

    def _take_message(self, message: Message) -> None:
        told = self._told
        match message:
            case UserMessage(part=str(name)):
                text = text_of(message)
                told.known[name] = noted(name, told.known.get(name, {}), text)
                told.notes[name] = told.notes.get(name, 0) + self._ladder.counter.text(text)
            case AssistantMessage():
                told.moved, told.last = False, message.time
            case ToolMessage() if isinstance(path := message.log.get(PATH), str):
                told.touched[path] = None
            case _:
                pass


def _changed(told: _Told, parts: Sequence[PromptPart]) -> Iterator[tuple[str, tuple[Items, tuple[str, ...]]]]:
    """What differs from what the model knows, by part."""
    now = {part.name: items(part.name, part.text) for part in parts}
    for name in (*now, *(name for name in told.known if name not in now)):
        new, gone = changes(told.known.get(name, {}), now.get(name, {}))
        if new or gone:
            yield name, (new, gone)
