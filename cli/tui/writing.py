"""The answer that is being written: its thoughts, its text, and the calls that arrive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...agent.events import Answered, ToolCallArriving
from ...context.messages import Reasoning, ToolCall
from .answers import Answer, AnswerText
from .cards import Card, ToolCard
from .messages import Thinking, Thought
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
    _answer: tuple[Answer, Entry[AnswerText]] | None = None
    _thought: tuple[Thought, Entry[Thinking]] | None = None
    _arriving: dict[int, Shown] = field(default_factory=dict[int, Shown])
    _characters: int = 0

    @property
    def has_text(self) -> bool:
        """Whether any of the answer's text has come."""
        return self._answer is not None

    def text(self, piece: str) -> None:
        """A piece of the text."""
        if self._answer is None:
            if not piece.strip():
                return  # an answer that is empty before its calls takes no line
            answer = Answer()
            self._answer = answer, self._transcript.add(lambda: AnswerText(answer))
        self._answer[0].pieces.append(piece)
        self._show()
        self._count(len(piece))

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
        for part in (self._answer, self._thought):
            if part is not None:
                self._transcript.remove_entry(part[1])
        self._drop_arriving()

    def whole(self, event: Answered) -> dict[str, Shown]:
        """The answer is in the log: shows what did not arrive piece by piece. Returns the cards of its calls by id."""
        message = event.message
        if self._thought is None:
            for part in message.content:
                if isinstance(part, Reasoning) and part.text.strip():
                    self.reasoning(part.text)
        if self._answer is None:
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
        if self._answer is not None:
            if text is not None:
                self._answer[0].pieces[:] = [text]
            self._answer[0].done = True
        self._show()

    def _show(self) -> None:
        for part in (self._answer, self._thought):
            if part is not None and part[1].widget is not None:
                part[1].widget.show()

    def _drop_arriving(self) -> None:
        for shown in self._arriving.values():
            self._transcript.remove_entry(shown.entry)
        self._arriving.clear()

    def _count(self, characters: int) -> None:
        self._characters += characters
        self._on_characters(self._characters)
