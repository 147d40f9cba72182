"""What was said and not heard yet: queued and steering messages, dim, above the input, the newest last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from .text import one_line, safe

SHOWN = 5
"""Messages that are shown; of more, the newest, and how many there are besides."""
_WORDS = {"queued": "queued", "steering": "joins after the running tools"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message that the model has not got yet."""

    kind: Literal["queued", "steering"]
    text: str


class QueueList(Widget):
    """The messages that wait; takes no room when there are none."""

    DEFAULT_CSS = """
    QueueList { display: none; height: auto; padding: 0 2; color: $text-muted; }
    QueueList.-any { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.items: tuple[Waiting, ...] = ()

    def set(self, items: Sequence[Waiting]) -> None:
        """Shows these messages, oldest first."""
        self.items = tuple(items)
        self.set_class(bool(items), "-any")
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(len(self.items), SHOWN + 1)

    def render(self) -> Content:
        shown = self.items[-SHOWN:]
        more = len(self.items) - len(shown)
        lines = [f"  {more} more" if more > 0 else "", *(f"↳ {_WORDS[item.kind]}: {item.text}" for item in shown)]
        return Content("\n").join(safe(one_line(line, self.content_size.width)) for line in lines if line)
