"""The answer that is being written: its thoughts, its text, and the calls that arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...agent.events import Answered, ToolCallArriving
from ...context.messages import Reasoning, ToolCall
from .answers import Answer, AnswerText
from .cards import Card, ToolCard
from .messages import Thinking, Thought
from .parts import Piece, Splitter, parts_of
from .transcript import Entry, Transcript

QUIET = frozenset({"write_todos"})
"""Tools without a card, unless they fail: what they do is shown anyway."""


@dataclass(slots=True)
class Shown:
    """A call's card and its place in the transcript."""

    card: Card
    entry: Entry[ToolCard]

    def show(self) -> None:
        """Shows what the card says now, if it is mounted."""
        if self.entry.widget is not None:
            self.entry.widget.show()


def add_card(transcript: Transcript, card: Card) -> Shown:
    """Puts a card at the end."""
    return Shown(card, transcript.add(lambda: ToolCard(card)))


@dataclass(slots=True)
class Writing:
    """One answer, from the request until it is whole; then another is made for the next."""

    _transcript: Transcript
    _on_characters: Callable[[int], None]
    """Told how many characters have come so far, calls included."""
    _parts: list[tuple[Answer, Entry[AnswerText]]] = field(default_factory=list[tuple[Answer, Entry[AnswerText]]])
    """The answer's parts; only the last one grows."""
    _splitter: Splitter = field(default_factory=Splitter)
    _said: list[str] = field(default_factory=list[str])
    _thought: tuple[Thought, Entry[Thinking]] | None = None
    _arriving: dict[int, Shown] = field(default_factory=dict[int, Shown])
    _characters: int = 0

    @property
    def has_text(self) -> bool:
        """Whether any of the answer's text has come."""
        return bool(self._parts)

    def text(self, piece: str) -> None:
        """A piece of the text."""
        if not self._parts:
            if not piece.strip():
                return  # an answer that is empty before its calls takes no line
            self._begin_part(Answer())
        self._said.append(piece)
        self._put(self._splitter.feed(piece))
        self._count(len(piece))

    def _put(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if piece.begins:
                joined = piece.begins == "joined"
                last = self._parts[-1][0]
                last.pieces.append(piece.close)
                last.open, last.done = joined, True
                self._show()
                self._begin_part(Answer(pieces=[piece.open], joined=joined))
            self._parts[-1][0].pieces.append(piece.text)
        self._show()

    def _begin_part(self, answer: Answer) -> None:
        self._parts.append((answer, self._transcript.add(lambda: AnswerText(answer), weight=answer.weight)))

    def reasoning(self, piece: str) -> None:
        """A piece of the reasoning."""
        if self._thought is None:
            thought = Thought()
            self._thought = thought, self._transcript.add(lambda: Thinking(thought))
        self._thought[0].add(piece)
        self._show()
        self._count(len(piece))

    def arriving(self, event: ToolCallArriving) -> None:
        """A piece of a call."""
        if event.name not in QUIET:
            shown = self._arriving.get(event.index)
            if shown is None:
                card = Card(ToolCall(id="", name=event.name, arguments={}), state="arriving")
                shown = self._arriving[event.index] = add_card(self._transcript, card)
            shown.card.arrived += len(event.arguments)
            shown.show()
        self._count(len(event.arguments))

    def withdraw(self) -> None:
        """All that came is void."""
        self._take_back_text()
        if self._thought is not None:
            self._transcript.remove_entry(self._thought[1])
        self._drop_arriving()

    def reword(self, text: str) -> None:
        """The text that came is void, `text` stands in its place."""
        self._take_back_text()
        self.text(text)

    def _take_back_text(self) -> None:
        for _, entry in self._parts:
            self._transcript.remove_entry(entry)
        self._parts.clear()
        self._said.clear()
        self._splitter = Splitter()

    def whole(self, event: Answered) -> dict[str, Shown]:
        """The answer is in the log: shows what did not arrive piece by piece. Returns the cards of its calls by id."""
        message = event.message
        if self._thought is None:
            for part in message.content:
                if isinstance(part, Reasoning) and part.text.strip():
                    self.reasoning(part.text)
        if not self._parts:
            self.text(message.text)
        self._end(message.text)
        cards: dict[str, Shown] = {}
        for index, call in enumerate(message.calls):
            if call.name not in QUIET:
                cards[call.id] = shown = self._arriving.pop(index, None) or add_card(self._transcript, Card(call))
                shown.card.call, shown.card.state = call, "pending"
                shown.show()
        self._drop_arriving()
        return cards

    def broken_off(self) -> None:
        """Nothing more will come; what has come stays."""
        self._end(None)
        self._drop_arriving()

    def _end(self, text: str | None) -> None:
        if self._thought is not None:
            self._thought[0].done = True
        if self._parts:
            self._put(self._splitter.flush())
            if text is not None and text != "".join(self._said):
                self._say_instead(text)
            self._parts[-1][0].done = True
        self._show()

    def _say_instead(self, text: str) -> None:
        """The log has another text than the one that came, such as one without a secret."""
        new = parts_of(text)
        for _, entry in self._parts[len(new) :]:
            self._transcript.remove_entry(entry)
        del self._parts[len(new) :]
        rest = "".join(part for _, part in new[len(self._parts) - 1 :])
        texts = [*(part for _, part in new[: len(self._parts) - 1]), rest]
        for (answer, entry), part in zip(self._parts, texts, strict=True):
            answer.pieces[:] = [part]
            if entry.widget is not None:
                entry.widget.show()

    def _show(self) -> None:
        for part in (*self._parts[-1:], *([self._thought] if self._thought else [])):
            if part[1].widget is not None:
                part[1].widget.show()

    def _drop_arriving(self) -> None:
        for shown in self._arriving.values():
            self._transcript.remove_entry(shown.entry)
        self._arriving.clear()

    def _count(self, characters: int) -> None:
        self._characters += characters
        self._on_characters(self._characters)
