"""What the session does for tools: keeping the plan, compacting when the model asks for it, and recalling."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

from ..context.entries import Todo, TodosWritten
from ..context.images import image_facts
from ..context.ladder import Ladder
from ..context.messages import Image, Message, Pointer
from ..context.recall import Recall
from ..context.recall_passages import Passage, Role
from ..context.recall_query import Query, QueryError
from ..context.recall_read import parse_reference, read_page
from ..context.recall_text import HEAD, LIMIT, Answer, found_text, page_text
from ..context.record import Ask
from ..context.session import Session
from .events import Event, TodosChanged
from .result_file import ResultFile
from .runtime import RecallAsk
from .secrets import Masker

GATE = 0.5
"""Share of the trigger below which the model's wish to compact is refused: it would gain little and cost a summary."""


class Services:
    """`SessionServices` on a real session."""

    def __init__(
        self, session: Session, ladder: Ladder, emit: Callable[[Event], None], masker: Masker, *, sees: bool
    ) -> None:
        self.sees = sees
        self._session = session
        self._ladder = ladder
        self._emit = emit
        self._masker = masker
        self._mask = masker.mask
        self._recall = Recall(session.storage)
        self._recalling = asyncio.Lock()

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

    def keep_image(self, data: bytes, shown: str) -> Image:
        """Puts an image beside the log."""
        facts = image_facts(data)
        if facts is None:
            raise ValueError("it is no image that models take")
        digest = hashlib.sha256(data).hexdigest()
        name = f"sessions/{self._session.id}.media/{digest}"
        with suppress(FileExistsError):
            self._session.storage.create(name, data)
        return Image(
            name=name,
            sha256=digest,
            media=facts.media,
            bytes=len(data),
            width=facts.width,
            height=facts.height,
            shown=shown,
        )

    def open_result(self, tool: str) -> ResultFile:
        """A file for a long result of `tool`. Raises `StorageError`."""
        path, file = self._ladder.offloader.begin(tool)
        return ResultFile(path, file, self._masker, self._session.storage.path("."))

    async def recall(self, ask: RecallAsk, tokens: int) -> Answer:
        """Searches or reads back, in another thread; what cannot be done is an answer, too."""
        logged = {message.id: message for message in self._session.messages()}
        whole = (message for message in self._session.view.tail if logged.get(message.id) is message)
        held = {message.id for message in whole if not self._is_pointer(message)}
        work = partial(self._search, held=held) if ask.query.strip() else self._read
        async with self._recalling:  # the index has one user at a time
            try:
                return await asyncio.to_thread(work, ask, min(tokens, LIMIT))
            except QueryError as error:
                return Answer(text=f"{error}.", summary=str(error)[:100], is_error=True)

    @staticmethod
    def _is_pointer(message: Message) -> bool:
        return any(isinstance(block, Pointer) for block in message.content)

    def _search(self, ask: RecallAsk, tokens: int, *, held: Set[str]) -> Answer:
        query = Query(
            text=self._mask(ask.query),
            mode=ask.mode,
            role=cast("Role | None", ask.role or None),
            tool=ask.tool,
            file=ask.file,
            session=None if ask.everywhere else self._session.id,
            skip=self._session.view.tail[-1].id if self._session.view.tail else "",
        )
        found = self._recall.search(query)
        seen: Callable[[Passage], bool] = lambda passage: passage.message in held  # noqa: E731
        count = self._ladder.counter.text
        text = found_text(found, query, this=self._session.id, in_view=seen, tokens=tokens, count=count)
        number = f"{found.total:,}{'' if found.exact else '+'}"
        return Answer(text=text, summary=f"{number} hit{'' if found.total == 1 else 's'}" if found.hits else "no hits")

    def _read(self, ask: RecallAsk, tokens: int) -> Answer:
        if not ask.id.strip():
            raise QueryError("give a query to search, or an id to read")
        reference = parse_reference(ask.id)
        passages = self._recall.message(reference.session or self._session.id, reference.message)
        if not passages:
            raise QueryError(f"there is no message {ask.id!r}; a search gives ids")
        count = self._ladder.counter.text
        page = read_page(passages, reference.part, ask.lines, tokens=tokens - HEAD, count=count)
        name = ask.id.partition("#")[0]
        text = page_text(passages, page, name=name, count=count)
        return Answer(text=text, summary=f"{len(page.rows):,} line{'' if len(page.rows) == 1 else 's'}")
