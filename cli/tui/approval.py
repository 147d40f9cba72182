"""The question whether a call may run, in line in the transcript, with all that is needed to judge it (`question`).

No key decides by accident: the card must have the focus, a key counts only after a moment without any, and a letter
only if none follows it. A letter that counts for nothing is dropped, and the card says so; two in a row are a text that
was meant for the prompt, and come whole as `Typed`. Enter decides only on a line that was opened for it. What "always"
means is the app's business.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from .call_editor import CallEditor
from .lines import Lines, Row
from .question import Question, choices, heading, subject
from .text import MUTED, one_line
from .text_input import writing

if TYPE_CHECKING:
    from pydantic import JsonValue

QUIET = 0.4
"""Seconds that must pass, since the card got the keys and since the last one that came too early."""
ALONE = 0.15
"""Seconds for which a letter must be the last one before it decides: pasted or fast text is no answer."""
_AT_ONCE = frozenset("or")
"""Letters that need not wait: what follows them is read as a reason, or decides nothing."""
_MOVES = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})
"""Keys that scroll: nobody types with them."""
_ROWS = 40
"""Rows that are shown at first; `o` shows the rest."""


class ApprovalCard(Vertical, can_focus=True):
    """Asks once and posts `Decided`."""

    DEFAULT_CSS = """
    ApprovalCard {
        width: 1fr; height: auto; margin: 1 0; padding: 0 1;
        border-left: outer $foreground 20%; background: $foreground 4%;
    }
    ApprovalCard:focus, ApprovalCard:focus-within { border-left: outer $accent; }
    ApprovalCard > .subject { margin: 1 0; }
    ApprovalCard > Static { width: 1fr; height: auto; }
    ApprovalCard > Input { border: none; height: 1; padding: 0; background: $foreground 8%; }
    """

    class Decided(Message):
        """The user has decided."""

        def __init__(
            self,
            question: Question,
            *,
            allowed: bool,
            key: str = "",
            reason: str = "",
            answer: str = "",
            arguments: dict[str, JsonValue] | None = None,
        ) -> None:
            super().__init__()
            self.call_id = question.call.id
            self.allowed = allowed
            self.reason = reason
            """In the user's words; empty where none was given."""
            self.answer = answer
            """What the model is told instead of a result; empty where nothing."""
            self.arguments = arguments
            """The arguments as the user wants them; None where nothing was changed."""
            self.always = question.rules if key == "a" else ()
            """The rules that are to be kept."""
            self.network = key == "w"
            """Again, with network."""
            self.folders = question.folders if key == "f" else ()
            """Again, with these folders writable."""
            self.unconfined = bool(question.refused) and key == "y"
            """Again, without the sandbox."""

    class Typed(Message):
        """Text that is no answer."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question
        self._rows = list(subject(question.call, question.before))
        self._lines = Lines(classes="subject")
        self._head = Static(heading(question))
        self._keys = Static(choices(question))
        self._quiet_since = time.monotonic()
        self._held = ""
        """A letter that waits until it is known to be alone."""
        self._typing = False
        """What comes is text, until a moment passes without any."""
        self._timer: Timer | None = None
        self._before: Widget | None = None
        self._decided = False

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._lines
        yield self._keys

    def on_mount(self) -> None:
        """Takes the keys, unless something is being written."""
        self._show_rows(_ROWS)
        if not writing(self.screen.focused):
            self.take_focus()

    @property
    def escape_means(self) -> str:
        """What Esc would do here."""
        return "back to the choices" if self._line else "say no"

    @property
    def _line(self) -> Widget | None:
        """Where something is being written, if anything is."""
        return next(iter(self.query("Input, CallEditor")), None)

    def show_waiting(self, waiting: int) -> None:
        """Says how many questions wait behind this one."""
        self._question.waiting = waiting
        self._head.update(heading(self._question))

    def take_focus(self) -> None:
        """Takes the keys; they go back to where they were once the user has decided."""
        if not self.has_focus_within:
            self._before = self.screen.focused
            self.focus()

    def on_focus(self) -> None:
        """Keys that were on their way to something else do not count."""
        self._quiet_since = time.monotonic()
        self._typing = False
        self._release()

    def on_blur(self) -> None:
        """A letter that waited counts no more."""
        if self._held:
            self._release()

    async def on_key(self, event: events.Key) -> None:
        """Decides by a deliberate key. Any other key but those that scroll begins the moment of silence anew."""
        if self._line:
            if event.key == "escape":
                event.stop()
                await self._close_line()
            return
        known = self._question.keys | {"escape"}
        early = time.monotonic() - self._quiet_since < QUIET
        if (early or event.key not in known) and event.key not in _MOVES:
            self._quiet_since = time.monotonic()
        letter = event.character if event.is_printable and event.character else ""
        if letter or event.key in known:
            event.stop()
            event.prevent_default()
        self._typing = self._typing and early
        if letter and (self._held or self._typing):
            self._type(letter)
        elif letter and (early or event.key not in known):
            self._hold(letter, QUIET, self._drop)
        elif letter and event.key not in _AT_ONCE:
            self._hold(letter, ALONE, self._choose_held)
        elif event.key in known and not early:
            self._release()
            await self._choose(event.key)

    def _hold(self, letter: str, seconds: float, then: Callable[[], Awaitable[None] | None]) -> None:
        """Waits for what follows a letter."""
        self._held = letter
        self._timer = self.set_timer(seconds, then)

    def _release(self) -> str:
        """The letter that waited."""
        held, self._held = self._held, ""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._keys.update(choices(self._question))
        return held

    def _type(self, letter: str) -> None:
        """Text: the prompt gets it."""
        self._typing = True
        self.post_message(self.Typed(self._release() + letter))

    def _drop(self) -> None:
        """A letter that came too early, or says nothing here."""
        held = self._release()
        said = "came too early to count" if held in self._question.keys else "is no answer; Tab goes to the prompt"
        hint = Content.styled(f"\n{held} {said}", "$text-warning") if held.strip() else Content()
        self._keys.update(Content.assemble(choices(self._question), hint))

    async def _choose_held(self) -> None:
        await self._choose(self._release())

    async def _choose(self, key: str) -> None:
        match key:
            case "r":
                await self._open(_line("why not? Enter says no, Esc goes back", "reason"))
            case "t":
                await self._open(_line("what the model is told instead; Enter sends it, Esc goes back", "answer"))
            case "e":
                await self._open(CallEditor(self._question.call))
                self._hint("Enter runs this, Ctrl+J makes a new line, Ctrl+G opens your editor, Esc goes back", MUTED)
            case "o":
                self._show_rows(len(self._rows))
            case _:
                self._decide(allowed=key in ("y", "a", "w", "f"), key=key)

    async def _open(self, line: Widget) -> None:
        await self.mount(line, before=self._keys)
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Says no with the reason, or tells the model something instead; an empty answer is none."""
        event.stop()
        text = event.value.strip()
        if not event.input.has_class("answer"):
            self._decide(allowed=False, reason=text)
        elif text:
            self._decide(allowed=False, answer=text)

    def on_call_editor_done(self, event: CallEditor.Done) -> None:
        """Says yes to what the user made of the call."""
        event.stop()
        self._decide(allowed=True, arguments=event.arguments)

    def on_call_editor_unreadable(self, event: CallEditor.Unreadable) -> None:
        """Says what is wrong with it."""
        event.stop()
        self._hint(event.reason, "$text-warning")

    def _hint(self, text: str, style: str) -> None:
        self._keys.update(Content.assemble(choices(self._question), (f"\n{one_line(text)}", style)))

    def _decide(
        self,
        *,
        allowed: bool,
        key: str = "",
        reason: str = "",
        answer: str = "",
        arguments: dict[str, JsonValue] | None = None,
    ) -> None:
        if self._decided:
            return
        self._decided = True
        if self._before is not None and self._before.is_attached and self.has_focus_within:
            self._before.focus()
        changed = arguments if arguments != dict(self._question.call.arguments) else None
        decided = self.Decided(
            self._question, allowed=allowed, key=key, reason=reason, answer=answer, arguments=changed
        )
        self.post_message(decided)

    async def _close_line(self) -> None:
        await self.query("Input, CallEditor").remove()
        self._keys.update(choices(self._question))
        self.focus()

    def _show_rows(self, limit: int) -> None:
        hidden = len(self._rows) - limit
        rows = self._rows if hidden <= 1 else self._rows[:limit]
        more = [Row(f"… {hidden:,} lines are NOT shown; o shows them", "error")] if hidden > 1 else []
        self._lines.set_rows([*rows, *more])


def _line(placeholder: str, kind: str) -> Input:
    line = Input(placeholder=placeholder, compact=True, select_on_focus=False, classes=kind)
    line.cursor_blink = False
    return line
