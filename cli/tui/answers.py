"""The model's answers: Markdown that grows while it is written, a dozen times a second at most.

Nothing in an answer acts: HTML is text, pictures are links, and a link that is clicked shows where it would lead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from markdown_it.token import Token
from textual.events import Mount
from textual.geometry import Size, Spacing
from textual.layout import WidgetPlacement
from textual.timer import Timer
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownBlock, MarkdownStream

from .blocks import has_table, markdown, rows_from
from .lines import COMPONENTS, RowsWidget, css
from .text import one_line, visible

_PACE = 0.08
"""Seconds between two updates, at least."""
_SHARE = 4
"""An update is followed by a pause of so many times what it took, so that keys find time."""
_LONGEST_PAUSE = 0.5
_TICK = 0.002
_TICKS = 1_000
"""How long, in seconds and in such waits, an update may take before the next is written all the same."""
_BLOCK = 200
"""Characters that a block of Markdown has on average."""
_WIDTH = 80
"""Cells that tables are made for before it is known how many there are."""


@dataclass(slots=True)
class Answer:
    """A part of an answer (see `parts`): what the model wrote of it so far."""

    pieces: list[str] = field(default_factory=list[str])
    done: bool = False
    """Nothing more comes to this part."""
    joined: bool = False
    """No empty line before it."""
    open: bool = False
    """No empty line after it."""

    @property
    def text(self) -> str:
        """All of it so far."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def weight(self) -> int:
        """About how many blocks it has, for the transcript."""
        return 1 + sum(map(len, self.pieces)) // _BLOCK


class Block(MarkdownBlock, RowsWidget):
    """Neighbouring blocks of an answer in one widget. Textual finds it by its first base, so style sheets do too."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENTS)
    DEFAULT_CSS = f"{css('Block')} Block {{ margin: 0 0 1 0; }}"

    def __init__(self, markdown: Markdown, tokens: Sequence[Token]) -> None:
        super().__init__(markdown, tokens[0])  # pyright: ignore[reportUnknownMemberType]  # Textual's own *args
        self._tokens = tokens
        self._width = 0
        """What the rows were made for, where that matters."""
        self._rows = rows_from(tokens, _WIDTH)

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        """More of these blocks has come."""
        if isinstance(block, Block):
            self._tokens, self._width, self._token = block._tokens, 0, block._token
            self.set_rows(block._rows)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if width != self._width and has_table(self._tokens):
            self._width, self._rows, self._lines = width, rows_from(self._tokens, width), (0, [])
        return super().get_content_height(container, viewport, width)


class AnswerText(Markdown):
    """A part of an answer, while it is written and afterwards."""

    DEFAULT_CSS = """
    AnswerText { padding: 0 0 0 2; margin: 1 0; }
    AnswerText.-joined { margin-top: 0; }
    AnswerText.-open { margin-bottom: 0; }
    """

    def __init__(self, answer: Answer) -> None:
        text = answer.text
        super().__init__(visible(text), parser_factory=markdown, open_links=False)
        self._answer = answer
        self._shown = len(text)
        """Characters of the answer that the Markdown has, or that are on their way to it."""
        self._sent = len(visible(text))
        """The same, as the Markdown counts."""
        self._ready = False
        """The beginning is parsed."""
        self._stream: MarkdownStream | None = None
        self._due: Timer | None = None
        self._pause = _PACE

    async def _on_mount(self, _: Mount) -> None:
        """Streams from here on; before its beginning is parsed, nothing may be appended."""
        _.prevent_default()
        self._set_classes()
        await super()._on_mount(_)
        self._ready = True
        if not self._answer.done or self.source != visible(self._answer.text):
            self._stream = Markdown.get_stream(self)
            self.show()

    def _set_classes(self) -> None:
        self.set_class(self._answer.joined, "-joined")
        self.set_class(self._answer.open, "-open")

    async def on_unmount(self) -> None:
        """Ends the stream's task."""
        await self._stop()

    def _parse_markdown(self, tokens: Iterable[Token]) -> Iterable[MarkdownBlock]:
        """The last block alone, since what comes next may change it, and all before it as one."""
        tokens = list(tokens)
        starts = [at for at, token in enumerate(tokens) if token.level == 0 and token.map is not None]
        if len(starts) > 1:
            yield Block(self, tokens[: starts[-1]])
        if starts:
            yield Block(self, tokens[starts[-1] :])

    def process_layout(self, placements: list[WidgetPlacement]) -> list[WidgetPlacement]:
        """No empty line after the last block: the margin of the whole is enough."""
        if placements:
            top, right, _, left = placements[-1].margin
            placements[-1] = placements[-1]._replace(margin=Spacing(top, right, 0, left))
        return placements

    def show(self) -> None:
        """Shows what the record says now, soon."""
        self._set_classes()
        if self._due is None and self._ready:
            self._due = self.set_timer(self._pause, self._show)

    async def _show(self) -> None:
        self._due = None
        began = time.thread_time()
        done = self._answer.done
        await self._write(self._answer.text, done=done)
        self.call_after_refresh(self._painted, began)
        if done:
            await self._stop()
            text = visible(self._answer.text)
            if self.source != text:
                await self.update(text)
        elif self._shown < len(self._answer.text):
            self.show()

    def _painted(self, began: float) -> None:
        """Waits the longer the more an update took, parsing and painting together."""
        self._pause = min(_LONGEST_PAUSE, max(_PACE, _SHARE * (time.thread_time() - began)))

    async def _write(self, text: str, *, done: bool) -> None:
        """Writes what is new, and returns when it is parsed."""
        if self._stream is None:
            return
        whole = len(text) if done or not text.endswith("\r") else len(text) - 1  # the other half may follow
        piece, self._shown = visible(text[self._shown : whole]), whole
        self._sent += len(piece)
        await self._stream.write(piece)
        for _ in range(_TICKS):
            await asyncio.sleep(_TICK)
            if len(self.source) >= self._sent and not self.lock.is_locked:
                return

    async def _stop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.stop()

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Shows the address and does nothing else."""
        event.stop()
        self.notify(one_line(event.href), title="link", markup=False)
