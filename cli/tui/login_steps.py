"""The steps of a login: a list to choose from, and lines to fill in. What they lead to is the business of `login`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.widgets.option_list import Option

from .rows import ChoiceList
from .text import MUTED, safe

_DIGITS = 9
"""Entries that a digit chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An entry of a list."""

    id: str
    text: str
    more: str = ""
    """Said behind it, less loudly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """A line to fill in."""

    name: str
    hint: str
    """What stands in it while it is empty."""
    secret: bool = False
    optional: bool = False


class ListStep(Vertical):
    """A title and a numbered list; what is chosen comes as `OptionList.OptionSelected`."""

    DEFAULT_CSS = """
    ListStep { height: auto; }
    ListStep > ChoiceList { height: auto; max-height: 10; margin: 1 0; }
    ListStep > .keys { color: $text-muted; }
    """

    def __init__(self, title: Content, choices: Sequence[Choice], keys: str) -> None:
        super().__init__()
        self._title, self._choices, self._keys = title, choices, keys

    def compose(self) -> ComposeResult:
        yield Static(self._title)
        yield ChoiceList(numbered=True)
        yield Static(safe(self._keys), classes="keys")

    def on_mount(self) -> None:
        """Fills the list."""
        choices = self.query_one(ChoiceList)
        width = max(cell_len(one.text) for one in self._choices)
        for number, one in enumerate(self._choices, 1):
            digit = f"{number} " if number <= _DIGITS else "  "
            text = safe(one.text).truncate(width, pad=True)
            choices.add_option(Option(Content.assemble((digit, MUTED), text, "  ", safe(one.more, MUTED)), id=one.id))
        choices.highlighted = 0

    def focus_first(self) -> None:
        """Puts the cursor into the list."""
        self.query_one(ChoiceList).focus()


class SecretInput(Input):
    """A line that is never shown, and never copied."""

    def action_copy(self) -> None:
        """Nothing: a key does not leave this line."""

    def action_cut(self) -> None:
        """Nothing, as for copying."""


class FormStep(Vertical):
    """A title and lines to fill in; below them what is going on, or what went wrong."""

    DEFAULT_CSS = """
    FormStep { height: auto; }
    FormStep > Input { height: 1; border: none; padding: 0 1; margin: 1 0 0 0; background: $foreground 6%; }
    FormStep > Input:focus { background: $foreground 12%; border: none; }
    FormStep > .state { margin: 1 0; color: $text-muted; }
    FormStep > .state.-problem { color: $text-error; }
    FormStep > .keys { color: $text-muted; }
    """

    class Filled(Message):
        """Every line has what it needs."""

        def __init__(self, values: dict[str, str]) -> None:
            super().__init__()
            self.values = values
            """By the names of the blanks; a key may be among them, so never log this."""

        def __rich_repr__(self) -> list[str]:
            return []

    def __init__(self, title: Content, blanks: Sequence[Blank]) -> None:
        super().__init__()
        self._title, self._blanks = title, blanks

    def compose(self) -> ComposeResult:
        yield Static(self._title)
        for blank in self._blanks:
            kind = SecretInput if blank.secret else Input
            line = kind(placeholder=blank.hint, password=blank.secret, name=blank.name)
            line.cursor_blink = False
            yield line
        yield Static(classes="state")
        yield Static(safe("Enter: go on   Esc: back"), classes="keys")

    def focus_first(self) -> None:
        """Puts the cursor into the first line."""
        self.query(Input).first().focus()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        """Goes to the next line that needs something, or hands in all."""
        event.stop()
        missing = [line for line, blank in self._lines() if not (line.value.strip() or blank.optional)]
        later = [line for line, blank in self._lines() if blank.optional and not line.value]
        following = self._after(event.input)
        if missing:
            (following if following in missing else missing[0]).focus()
        elif following in later:
            following.focus()
        else:
            self.post_message(self.Filled({blank.name: line.value.strip() for line, blank in self._lines()}))

    def _lines(self) -> list[tuple[Input, Blank]]:
        return list(zip(self.query(Input), self._blanks, strict=True))

    def _after(self, line: Input) -> Input | None:
        lines = [one for one, _ in self._lines()]
        return next(iter(lines[lines.index(line) + 1 :]), None)

    def wait(self, text: str) -> None:
        """Says what is going on; the lines are closed until `fail`."""
        self.can_focus = True  # so that keys still come through here
        self.focus()
        self._state(text, problem=False)

    def fail(self, reason: str) -> None:
        """Says what went wrong, and lets the lines be changed."""
        self._state(reason, problem=True)
        self.focus_first()
        self.can_focus = False

    def _state(self, text: str, *, problem: bool) -> None:
        for line in self.query(Input):
            line.disabled = not problem
        state = self.query_one(".state", Static)
        state.set_class(problem, "-problem")
        state.update(safe(text))
