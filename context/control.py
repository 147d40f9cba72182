"""What the user does to the context by hand: pin, drop, restore, rewind, and a look at a compaction before it happens.

Each is an entry of the log like the ladder's own steps, so each can be undone and none loses anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .budget import budget_for
from .compact import Preview
from .entries import Dropped, Entry, OffloadedBlock, Pinned, Restored, Rewound, Unpinned
from .ladder import Ladder
from .messages import Message, Pointer, ToolMessage, UserMessage, clean, text_of
from .record import Ask
from .trim import stand_in
from .view import build_view

_ID = 4
"""Characters of an id that name a pin at least: fewer may be a number."""
NEWEST = "last"
"""Names the newest message that fits, instead of an id."""


class CannotDo(Exception):
    """What was asked for cannot be done; the text says why, with numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The user's hand on one session's context. All methods raise `StorageError` if the log cannot be written."""

    ladder: Ladder
    mask: Callable[[str], str] = lambda text: text
    """Takes secrets out of what enters the log."""

    def pin(self, text: str) -> Pinned:
        """Keeps a text word for word through every compaction. Raises `CannotDo` if all pins have no room together."""
        session, counter = self.ladder.session, self.ladder.counter
        text = self.mask(clean(text)).strip()
        if not text:
            raise CannotDo("there is nothing to pin")
        limit = self.ladder.budget.pins_limit
        tokens = counter.text(text) + sum(counter.text(pin.text) for pin in session.view.pins)
        if tokens > limit:
            raise CannotDo(f"pins may have {limit:,} tokens together, and with this one they would have {tokens:,}")
        message = next((m.id for m in session.messages() if isinstance(m, UserMessage) and text_of(m) == text), None)
        pin = Pinned(**session.header(), text=text, message=message)
        self._append(pin)
        return pin

    def unpin(self, pin: str) -> Unpinned:
        """Lets a pin go, by its id or its beginning, or by its number from 1. Raises `CannotDo`."""
        pins = self.ladder.session.view.pins
        if pin.isdecimal() and 0 < int(pin) <= len(pins):
            found = [pins[int(pin) - 1]]
        else:
            found = [one for one in pins if len(pin) >= _ID and one.id.startswith(pin)]
        if len(found) != 1:
            raise CannotDo(f"{pin!r} names no pin" if not found else f"{pin!r} names {len(found)} pins")
        entry = Unpinned(**self.ladder.session.header(), pin=found[0].id)
        self._append(entry)
        return entry

    def drop(self, message: str) -> Dropped:
        """Sends a result out of the view; a pointer takes its place. Raises `CannotDo`."""
        result = self._result(message)
        if self._logged(result) != result:
            raise CannotDo("only a pointer of it is in the view already")
        blocks = tuple(
            OffloadedBlock(
                message=result.id, block=number, pointer=stand_in(result, block, self.ladder.offloader), why="user"
            )
            for number, block in enumerate(result.content)
        )
        entry = Dropped(**self.ladder.session.header(), blocks=blocks)
        self._append(entry)
        return entry

    def restore(self, message: str) -> Restored:
        """Brings a result back into the view as it was logged; it stays until a compaction. Raises `CannotDo`."""
        result = self._result(message)
        if self._logged(result) == result:
            pointers = [block.path for block in result.content if isinstance(block, Pointer)]
            raise CannotDo(f"it went to a file as it came: read {pointers[0]}" if pointers else "it is in the view")
        entry = Restored(**self.ladder.session.header(), messages=(result.id,))
        self._check_room(entry, "it")
        self._append(entry)
        return entry

    def rewind(self, message: str) -> Rewound:
        """Goes back to before a message of the user's; what came since stays in the log alone. Raises `CannotDo`."""
        live = self.ladder.session.live
        request = self.request(message)
        at = next(at for at, entry in enumerate(live) if entry.id == request.id)
        entry = Rewound(**self.ladder.session.header(), to=live[at - 1].id)
        self._check_room(entry, "the conversation as it was then")
        self._append(entry)
        return entry

    def request(self, message: str) -> UserMessage:
        """The message of the user's that an id's beginning names. Raises `CannotDo`."""
        requests = self.ladder.session.requests()
        found = requests[-1:] if message == NEWEST else [one for one in requests if one.id.startswith(message)]
        if len(found) != 1:
            raise CannotDo(f"{message!r} names {len(found) or 'no'} message{'s' if len(found) > 1 else ''} of yours")
        return found[0]

    def preview(self, focus: str | None = None) -> Preview | None:
        """What a compaction would do now, without a model; None where nothing could go."""
        ladder = self.ladder
        return ladder.compactor.preview(ladder.budget, Ask(reason="user", focus=focus))

    def compact_at(self, share: float | None) -> None:
        """From now on compaction starts at this share of the window, or not by itself (None). Raises `ValueError`."""
        settings = self.ladder.settings
        if share is None:
            self.ladder.settings = replace(settings, auto_compact=False)
        else:
            self.ladder.settings = replace(settings, compact_at=share, auto_compact=True)
        self.ladder.budget = budget_for(self.ladder.budget.window, self.ladder.settings)

    def _result(self, message: str) -> ToolMessage:
        """The result in the view that an id's beginning names."""
        results = [m for m in self.ladder.session.view.tail if isinstance(m, ToolMessage)]
        found = results[-1:] if message == NEWEST else [m for m in results if message and m.id.startswith(message)]
        if len(found) != 1:
            raise CannotDo(f"{message!r} names {len(found) or 'no'} result{'s' if len(found) > 1 else ''} in the view")
        return found[0]

    def _logged(self, result: ToolMessage) -> Message:
        """A result as the log has it."""
        return next(message for message in self.ladder.session.messages() if message.id == result.id)

    def _check_room(self, entry: Entry, what: str) -> None:
        """Raises `CannotDo` if the view after `entry` is longer than a request may be."""
        messages = build_view((*self.ladder.session.live, entry)).messages
        tokens = self.ladder.meter.scale(self.ladder.meter.count(messages))
        if tokens > self.ladder.budget.tokens:
            raise CannotDo(f"with {what} a request would have {tokens:,} tokens; {self.ladder.budget.tokens:,} fit")

    def _append(self, entry: Entry) -> None:
        self.ladder.session.append(entry)
        self.ladder.session.sync()
        self.ladder.meter.add(entry)
