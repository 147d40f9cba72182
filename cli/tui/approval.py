"""The question whether a call may run, in line in the transcript, with all that is needed to judge it.

No key decides by accident: the card must have the focus, a key counts only after a moment without any, and a letter
only if none follows it. A letter that counts for nothing is dropped, and the card says so; two in a row are a text that
was meant for the prompt, and come whole as `Typed`. Enter never decides. What "always" means is the app's business.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from .diffs import diff_rows
from .lines import Lines, Row, rows_of
from .text import MUTED, one_line
from .text_input import writing

if TYPE_CHECKING:
    from ...context.messages import ToolCall

QUIET = 0.4
"""Seconds that must pass, since the card got the keys and since the last one that came too early."""
ALONE = 0.15
"""Seconds for which a letter must be the last one before it decides: pasted or fast text is no answer."""
_CHOICES = frozenset({"y", "a", "n", "r", "o", "escape"})
_DECIDING = frozenset("yan")
_MOVES = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})
"""Keys that scroll: nobody types with them."""
_ROWS = 40
"""Rows that are shown at first; `o` shows the rest."""


@dataclass(slots=True)
class Question:
    """What is asked."""

    call: ToolCall
    rule: str
    """The rule that "always" would keep, as `--allow` takes it."""


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
            self, call_id: str, *, allowed: bool, rule: str = "", reason: str = "", always: bool = False
        ) -> None:
            super().__init__()
            self.rule = rule
            """The rule that "always" keeps."""
            self.call_id = call_id
            self.allowed = allowed
            self.reason = reason
            """In the user's words; empty where none was given."""
            self.always = always
            """The card's rule is to be kept for this session."""

    class Typed(Message):
        """Text that is no answer."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question
        self._rows = list(_subject(question.call))
        self._lines = Lines(classes="subject")
        self._keys = Static(_keys(question.rule))
        self._quiet_since = time.monotonic()
        self._held = ""
        """A letter that waits until it is known to be alone."""
        self._typing = False
        """What comes is text, until a moment passes without any."""
        self._timer: Timer | None = None
        self._before: Widget | None = None
        self._decided = False

    def compose(self) -> ComposeResult:
        yield Static(Content.assemble((f"Allow {one_line(self._question.call.name)}?", "bold")))
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
        return "back to the choices" if self.query(Input) else "say no"

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
        self._release()

    async def on_key(self, event: events.Key) -> None:
        """Decides by a deliberate key. Any other key but those that scroll begins the moment of silence anew."""
        if self.query(Input):
            if event.key == "escape":
                event.stop()
                self._close_reason()
            return
        early = time.monotonic() - self._quiet_since < QUIET
        if (early or event.key not in _CHOICES) and event.key not in _MOVES:
            self._quiet_since = time.monotonic()
        letter = event.character if event.is_printable and event.character else ""
        if letter or event.key in _CHOICES:
            event.stop()
            event.prevent_default()
        self._typing = self._typing and early
        if letter and (self._held or self._typing):
            self._type(letter)
        elif letter and (early or event.key not in _CHOICES):
            self._hold(letter, QUIET, self._drop)
        elif letter and event.key in _DECIDING:
            self._hold(letter, ALONE, self._decide_held)
        elif event.key in _CHOICES and not early:
            self._release()
            await self._choose(event.key)

    def _hold(self, letter: str, seconds: float, then: Callable[[], None]) -> None:
        """Waits for what follows a letter."""
        self._held = letter
        self._timer = self.set_timer(seconds, then)

    def _release(self) -> str:
        """The letter that waited."""
        held, self._held = self._held, ""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._keys.update(_keys(self._question.rule))
        return held

    def _type(self, letter: str) -> None:
        """Text: the prompt gets it."""
        self._typing = True
        self.post_message(self.Typed(self._release() + letter))

    def _drop(self) -> None:
        """A letter that came too early, or says nothing here."""
        held = self._release()
        said = "came too early to count" if held in _CHOICES else "is no answer; Tab goes to the prompt"
        hint = Content.styled(f"\n{held} {said}", "$text-warning") if held.strip() else Content()
        self._keys.update(Content.assemble(_keys(self._question.rule), hint))

    def _decide_held(self) -> None:
        held = self._release()
        self._decide(allowed=held != "n", always=held == "a")

    async def _choose(self, key: str) -> None:
        match key:
            case "r":
                await self._open_reason()
            case "o":
                self._show_rows(len(self._rows))
            case _:
                self._decide(allowed=False)

    async def _open_reason(self) -> None:
        line = Input(placeholder="why not? Enter says no, Esc goes back", compact=True, select_on_focus=False)
        line.cursor_blink = False
        await self.mount(line, before=self._keys)
        line.focus()

    def refuse(self) -> None:
        """Says no, for an Esc that was pressed elsewhere."""
        self._decide(allowed=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Says no, with the reason."""
        event.stop()
        self._decide(allowed=False, reason=event.value.strip())

    def _decide(self, *, allowed: bool, always: bool = False, reason: str = "") -> None:
        if self._decided:
            return
        self._decided = True
        if self._before is not None and self._before.is_attached and self.has_focus_within:
            self._before.focus()
        asked = self._question
        self.post_message(self.Decided(asked.call.id, allowed=allowed, rule=asked.rule, reason=reason, always=always))

    def _close_reason(self) -> None:
        self.query(Input).remove()
        self.focus()

    def _show_rows(self, limit: int) -> None:
        hidden = len(self._rows) - limit
        rows = self._rows if hidden <= 1 else self._rows[:limit]
        more = [Row(f"… {hidden:,} more lines are NOT shown; o shows them", "error")] if hidden > 1 else []
        self._lines.set_rows([*rows, *more])


def _subject(call: ToolCall) -> Iterable[Row]:
    """What the call would do: the command, the change of a file, or the arguments as they are."""
    arguments = call.arguments
    match call.name, arguments:
        case "execute", {"command": str(command)}:
            first, *others = command.split("\n")
            yield Row(f"$ {first}")
            yield from (Row(f"  {line}") for line in others)
        case _, {"path": str(path)} if rows := diff_rows(call.name, arguments, limit=None):
            yield Row(path)
            yield from rows
        case _:
            for name, value in arguments.items():
                yield from rows_of(f"{name}: {value}")


def _keys(rule: str) -> Content:
    """The choices; "always" says which rule it would keep."""
    pairs = [("y", "allow once"), ("n", "no"), ("r", "no, and say why"), ("Esc", "no")]
    parts: list[tuple[str, str]] = []
    for key, words in pairs:
        parts += [(key, "bold $text-accent"), (f" {words}   ", MUTED)]
    if rule:
        parts += [("\na", "bold $text-accent"), (" always in this session: ", MUTED), (one_line(rule), "")]
    return Content.assemble(*parts)
