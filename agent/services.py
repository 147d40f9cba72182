"""What the session does for tools: keeping the plan, and compacting when the model asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..context.entries import Todo, TodosWritten
from ..context.ladder import Ladder
from ..context.record import Ask
from ..context.session import Session
from .events import Event, TodosChanged
from .secrets import Masker

GATE = 0.5
"""Share of the trigger below which the model's wish to compact is refused: it would gain little and cost a summary."""


class Services:
    """`SessionServices` on a real session."""

    def __init__(self, session: Session, ladder: Ladder, emit: Callable[[Event], None], masker: Masker) -> None:
        self._session = session
        self._ladder = ladder
        self._emit = emit
        self._mask = masker.mask

    def write_todos(self, items: tuple[Todo, ...]) -> None:
        """Makes `items` the plan."""
        items = tuple(replace(item, text=self._mask(item.text)) for item in items)
        self._session.append(TodosWritten(**self._session.header(), items=items))
        self._emit(TodosChanged(items=items))

    async def compact(self, focus: str | None) -> str:
        """Compacts for the model, unless there is too little to gain; says what came of it."""
        used, gate = self._ladder.used.tokens, int(GATE * self._ladder.budget.trigger)
        if used < gate:
            return f"Not compacted: {used:,} tokens are in use; it is worth it from {gate:,} tokens on. Go on working."
        entry = await self._ladder.compact(Ask(reason="model", focus=focus and self._mask(focus)))
        if entry is None:
            return "Not compacted: there is nothing older that could leave the view."
        return (
            f"Compacted: {entry.messages} messages left the view ({entry.tokens_before:,} to {entry.tokens_after:,} "
            f"tokens). They stand word for word in {entry.archive}."
        )
