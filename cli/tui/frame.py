"""The frame: what is on the screen, and what its keys mean. What is said there is the business of `app`."""

from __future__ import annotations

import base64
import os
import time
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from .approval import ApprovalCard
from .driver import TerminalDriver
from .footer import Footer
from .login import LoginPanel
from .prompt import Prompt, PromptArea
from .queue import Waiting
from .transcript import Transcript

if TYPE_CHECKING:
    from ...agent.config import PermissionMode
    from .conversation import Conversation
    from .presenter import Presenter

MODES = ("default", "accept-edits", "plan", "yolo")
"""What Shift+Tab goes through."""
_TWICE = 2.0
"""Seconds within which a second Ctrl+C leaves, and a second Esc goes back."""


class MainScreen(Screen[None], inherit_bindings=False):
    """The screen below all others: Tab and Ctrl+C mean here what the frame says."""

    DEFAULT_CSS = "MainScreen { overflow: hidden; }"
    """What does not fit into a tiny terminal is cut; the transcript scrolls."""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "app.to_cards", show=False)]

    def _on_timer_update(self) -> None:
        """Paints, unless frames wait for a slow terminal: what they would show is old by then, and keys wait too."""
        driver = cast(App[object], self.app)._driver
        if not (isinstance(driver, TerminalDriver) and driver.behind):
            super()._on_timer_update()


class Frame(App[int], inherit_bindings=False):
    """Transcript, prompt and footer."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { layout: vertical; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "escape", show=False),
        Binding("ctrl+c", "copy_or_stop", show=False, priority=True),
        Binding("ctrl+d", "leave_if_empty", show=False),
        Binding("shift+tab", "next_mode", show=False, priority=True),
        Binding("ctrl+o", "toggle_fold", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(driver_class=TerminalDriver)
        self._conversation: Conversation | None = None
        self._presenter: Presenter | None = None
        self._escaped_at = -_TWICE
        """When Esc had nothing to stop, on the monotonic clock."""
        self._stopped_at = -_TWICE

    def get_default_screen(self) -> MainScreen:
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        self.transcript = Transcript(id="transcript")
        self.prompt_area = PromptArea(id="prompt-area")
        self.footer = Footer(id="footer")
        yield from (self.transcript, self.prompt_area, self.footer)

    @property
    def prompt(self) -> Prompt:
        """Where the user writes."""
        return self.prompt_area.prompt

    @property
    def conversation(self) -> Conversation:
        """What runs behind the screen; there once the first frame is."""
        assert self._conversation is not None
        return self._conversation

    @property
    def presenter(self) -> Presenter:
        """What turns events into widgets; there once the agent's modules are loaded."""
        assert self._presenter is not None
        return self._presenter

    def _set_gauge(self, gauge: object) -> None:
        from ...agent.events import Gauge

        self.footer.gauge = cast(Gauge, gauge)

    def _show_state(self) -> None:
        """Busy or not, what waits, and what Esc would do."""
        if not self.prompt.is_attached:
            return  # the screen is gone
        conversation = self._conversation
        busy = conversation is not None and conversation.busy
        self.prompt.busy = busy
        self.footer.busy = busy
        self.footer.escape = self._escape_means(busy=busy)
        if conversation is not None:
            waiting = [Waiting(kind="steering", text=text) for text in conversation.steering]
            waiting += [Waiting(kind="queued", text=text) for text in conversation.queue]
            self.prompt_area.set_waiting(waiting)

    def _escape_means(self, *, busy: bool) -> str:
        """What Esc would do next, in words; the innermost widget around the cursor that knows says it."""
        focused = cast("Screen[object]", self.default_screen).focused
        for node in focused.ancestors_with_self if focused else ():
            if isinstance(node, PromptArea | ApprovalCard | LoginPanel) and node.escape_means:
                return node.escape_means
        if focused is not None and focused is not self.prompt:
            return "back to the prompt"
        if self._presenter is not None and self._presenter.asks:
            return "to the question"
        return "stop the run" if busy else f"nothing to stop{self._said_once()}"

    def _said_once(self) -> str:
        """What the same key would do a second time, for as long as it would."""
        now = time.monotonic()
        if now - self._stopped_at < _TWICE:
            return " · Ctrl+C again leaves"
        return " · Esc again goes back in the talk" if now - self._escaped_at < _TWICE else ""

    def _once(self) -> float:
        """Now, on the monotonic clock; what a second time would do is said until it would not."""
        self.set_timer(_TWICE, self._show_state)
        self.call_later(self._show_state)
        return time.monotonic()

    @property
    def _question(self) -> ApprovalCard | None:
        """The card that waits for a decision."""
        return self._presenter.question if self._presenter else None

    # ---------------------------------------------------------------- keys

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _focus_moved(self) -> None:
        """Esc may mean something else now."""
        self.call_later(self._show_state)

    async def _on_key(self, event: events.Key) -> None:
        """Text that no binding takes is written into the prompt, whatever has the focus."""
        event.prevent_default()
        if not await self._check_bindings(event.key) and event.is_printable and event.character:
            self._write(event.character)

    @on(ApprovalCard.Typed)
    def _typed_at_a_question(self, message: ApprovalCard.Typed) -> None:
        self._write(message.text)

    def on_paste(self, event: events.Paste) -> None:
        """So is what is pasted."""
        if len(self.screen_stack) == 1:
            self.prompt.focus()
            self.prompt.paste(event.text)

    def _write(self, text: str) -> None:
        if len(self.screen_stack) == 1:
            self.prompt.focus()
            self.prompt.insert(text)

    def action_escape(self) -> None:
        """Goes back to the prompt, or to a question, else stops the run; what is open has closed itself before."""
        if self.focused is not self.prompt:
            self.prompt.focus()
        elif self._question is not None:
            self._question.take_focus()
        elif self._conversation is not None and self.conversation.busy:
            self.conversation.interrupt()
        elif not self.prompt.text and time.monotonic() - self._escaped_at < _TWICE:
            self.action_rewind()
        elif not self.prompt.text:
            self._escaped_at = self._once()

    def action_rewind(self) -> None:
        """Esc twice: picks a message to go back to."""

    def action_copy_or_stop(self) -> None:
        """Ctrl+C, after all that was typed before it: the key comes here before the prompt has seen the others."""
        self.prompt.call_later(self._copy_or_stop)

    def _copy_or_stop(self) -> None:
        """Copies a selection, else stops the run, else closes a page, else clears the line, else leaves if repeated."""
        selected = self.screen.get_selected_text() or self.prompt.selected_text
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        elif self._conversation is not None and self.conversation.busy:
            self.conversation.interrupt()
        elif len(self.screen_stack) > 1:
            self.screen.dismiss(None)
        elif self.prompt.text:
            self.prompt.discard()
        elif time.monotonic() - self._stopped_at < _TWICE:
            self.exit(0)
        else:
            self._stopped_at = self._once()

    def action_leave_if_empty(self) -> None:
        """Ctrl+D leaves when nothing is written."""
        if not self.prompt.text:
            self.exit(0)

    def action_to_cards(self) -> None:
        """Tab on the empty line goes to the newest card, where the arrows go on; from there it goes back."""
        if self.focused is self.prompt:
            if not self.transcript.move(-1):
                self.screen.focus_next()
        elif self.screen.query(LoginPanel) and self.screen.query_one(LoginPanel).has_focus_within:
            self.screen.focus_next()
        else:
            self.prompt.focus()

    def action_page(self, pages: int) -> None:
        """Page Up and Page Down scroll the conversation, whatever has the focus."""
        if pages < 0:
            self.transcript.scroll_page_up(animate=False)
        else:
            self.transcript.scroll_page_down(animate=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Puts a text into the clipboard, inside tmux too, which passes the sequence on only if it is wrapped."""
        super().copy_to_clipboard(text)
        if self._driver is not None and "TMUX" in os.environ:
            code = base64.b64encode(text.encode()).decode()
            self._driver.write(f"\x1bPtmux;\x1b\x1b]52;c;{code}\a\x1b\\")

    def action_next_mode(self) -> None:
        """Shift+Tab goes through the modes."""
        mode = MODES[(MODES.index(self.footer.mode) + 1) % len(MODES)]
        self.set_mode(mode)

    def set_mode(self, mode: PermissionMode) -> None:
        """From now on `mode` decides what runs without being asked about."""
        self.footer.mode = mode
        if self._conversation is not None:
            self.conversation.set_mode(mode)

    def action_toggle_fold(self) -> None:
        """Ctrl+O unfolds or folds every card."""
        self.transcript.toggle_fold()
