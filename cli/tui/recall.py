"""Earlier prompts on their way back into the input: the walk with ↑ and ↓, and the search with Ctrl+R."""

from __future__ import annotations

from textual.events import Key

from .completion import OFFERED, Choices, prompt_choices
from .history import History


class Recall:
    """What of the history is at hand. The text it gives is put into the input by the prompt."""

    def __init__(self, choices: Choices) -> None:
        """`choices` is the list in which a search shows what it found."""
        self.past: History | None = None
        self.query: str | None = None
        """What is searched for; None while nothing is."""
        self._choices = choices
        self._stops: tuple[str, ...] = ()
        """What stood in the input when the walk began, then the earlier prompts, newest first."""
        self._at = 0
        self._put: str | None = None

    def walking(self, shown: str) -> bool:
        """Whether `shown`, what stands in the input, is an earlier prompt as it was put there."""
        return self._at > 0 and shown == self._put

    def step(self, shown: str, by: int) -> str | None:
        """The prompt `by` steps older (negative: newer), or None where the walk ends. It begins at `shown`."""
        if not self.walking(shown):
            texts = self.past.texts() if self.past else ()
            self._stops, self._at = (shown, *(text for text in texts if text != shown)), 0
        if not 0 <= self._at + by < len(self._stops):
            return None
        self._at += by
        return self._stops[self._at]

    def put(self, shown: str) -> None:
        """Says how the last step stands in the input."""
        self._put = shown

    def sent(self, text: str) -> None:
        """Remembers a prompt; the next walk begins anew."""
        self._at = 0
        if self.past:
            self.past.add(text)

    def search(self) -> None:
        """Begins a search, or goes on to the next prompt that fits."""
        if self.query is not None:
            self._choices.move(1)
        elif self.past:
            self.search_for("")

    def search_for(self, query: str) -> None:
        """Offers the prompts that hold `query`."""
        found = self.past.search(query)[:OFFERED] if self.past else []
        self.query = query
        self._choices.offer(prompt_choices(found), title=f"earlier prompts: {query}▏{'' if found else '  none'}")

    def key(self, event: Key) -> bool:
        """Whether a key changed what is searched for."""
        if self.query is None:
            return False
        match event.key:
            case "backspace":
                self.search_for(self.query[:-1])
            case "ctrl+u" | "ctrl+w":
                self.search_for("")
            case _ if event.is_printable and event.character:
                self.search_for(self.query + event.character)
            case _:
                return False
        return True
