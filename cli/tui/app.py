"""The app: puts the screen together and says what each key means. Light at import: everything of the agent comes later.

What a run does is `conversation`'s business, what is shown of it `presenter`'s, what a slash command does `actions`'.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from ..options import NEWEST, PICK, RunOptions
from ..slash import parse_slash
from .footer import Footer
from .prompt import Prompt, PromptArea
from .start import StartPanel
from .transcript import Transcript

if TYPE_CHECKING:
    from ...agent.events import Event
    from ..opening import Opened
    from .actions import Actions
    from .conversation import Conversation
    from .presenter import Presenter

MODES = ("default", "accept-edits", "plan", "yolo")
"""What Shift+Tab goes through."""
_TWICE = 2.0
"""Seconds within which a second Ctrl+C quits."""


class DeepagentApp(App[int], inherit_bindings=False):
    """A talk with an agent in one workspace."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "escape", show=False),
        Binding("ctrl+c", "copy_or_stop", show=False, priority=True),
        Binding("ctrl+d", "leave_if_empty", show=False, priority=True),
        Binding("shift+tab", "next_mode", show=False, priority=True),
        Binding("ctrl+o", "toggle_fold", show=False),
        Binding("ctrl+z", "suspend_process", show=False),
        Binding("ctrl+l", "refresh", show=False),
    ]

    def __init__(self, options: RunOptions) -> None:
        super().__init__()
        self.options = options
        self.conversation: Conversation | None = None
        self.actions: Actions | None = None
        self._presenter: Presenter | None = None
        self._early: list[str] = []
        """What was sent before the agent was open."""
        self._stopped_at = 0.0

    def compose(self) -> ComposeResult:
        yield Transcript(id="transcript")
        yield PromptArea(id="prompt-area")
        yield Footer(id="footer")

    @property
    def transcript(self) -> Transcript:
        """What was said and done."""
        return self.query_one(Transcript)

    @property
    def prompt(self) -> Prompt:
        """Where the user writes."""
        return self.query_one(Prompt)

    @property
    def footer(self) -> Footer:
        """The two lines at the bottom."""
        return self.query_one(Footer)
