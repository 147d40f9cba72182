"""A text area for prompts: grows with its text, steps over whole characters, and folds large pastes to a token.

A token is one character to the caret and to every edit. What Enter and the arrows mean is `prompt`'s business; keys
that a text area binds and that mean something else in this app are not bound here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from rich.cells import split_graphemes
from rich.text import Text
from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input, TextArea

from .pastes import Pastes, clean

if TYPE_CHECKING:
    from textual.document._document import EditResult, Location
    from textual.document._edit import Edit

ROWS = 10
"""Rows that the input grows to, on a screen that has room for them."""
_ELSEWHERE = {"up", "down", "pageup", "pagedown", "ctrl+c", "ctrl+d", "ctrl+z", "f6", "f7"}
"""Keys of a text area that mean something else in a prompt, or are the app's."""
_CLUSTER = 32
"""Code points of the longest character that the caret steps over in one."""


def writing(focused: Widget | None) -> bool:
    """Whether somebody is in the middle of a text: then nothing else may take the keys."""
    match focused:
        case TextArea():
            return bool(focused.text)
        case Input():
            return bool(focused.value)
        case _:
            return False


def _kept() -> list[BindingType]:
    bindings = [binding for binding in TextArea.BINDINGS if isinstance(binding, Binding)]
    keys = [[key for key in binding.key.split(",") if key not in _ELSEWHERE] for binding in bindings]
    return [replace(binding, key=",".join(left)) for binding, left in zip(bindings, keys, strict=True) if left]


class TextInput(TextArea, inherit_bindings=False):
    """Where a prompt is written."""

    BINDINGS: ClassVar[list[BindingType]] = [*_kept(), Binding("ctrl+underscore", "undo", show=False)]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"text-input--paste"}
    DEFAULT_CSS = """
    TextInput {
        width: 1fr; height: auto; padding: 0; background: transparent; scrollbar-size-vertical: 1;
        scrollbar-background: $background; scrollbar-background-hover: $background;
        scrollbar-background-active: $background; scrollbar-color: $foreground 20%;
        scrollbar-color-hover: $foreground 40%; scrollbar-color-active: $foreground 40%;
    }
    TextInput > .text-input--paste { color: $text-accent; }
    """

    def __init__(self, placeholder: Content) -> None:
        super().__init__(compact=True, highlight_cursor_line=False, placeholder=placeholder)
        self.cursor_blink = False
        self.match_cursor_bracket = False
        self.pastes = Pastes()

    @property
    def whole_text(self) -> str:
        """The text with each token replaced by its paste."""
        return self.pastes.expand(self.text)

    def show(self, text: str) -> None:
        """Puts a text into the input in place of what stands there, the caret at its end; can be undone."""
        shown = self.pastes.fold_huge(clean(text))
        self.replace(shown, (0, 0), self.document.end, maintain_selection_offset=False)

    def paste(self, text: str) -> None:
        """Inserts a pasted text as one block; a large one is folded."""
        if shown := self.pastes.fold(clean(text)):
            self._replace_via_keyboard(shown, *self.selection)

    async def _on_key(self, event: events.Key) -> None:
        """Does at once what a key is bound to: if it rose to the app first, text typed behind it would overtake it."""
        app = cast(App[object], self.app)
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.paste(event.text)

    def action_paste(self) -> None:
        """Inserts what was copied in the app."""
        self.paste(cast(App[object], self.app).clipboard)

    def edit(self, edit: Edit) -> EditResult:
        """Makes an edit, with every token that it cuts into taken whole; one in the midst of a token goes behind it."""
        (top, first), (bottom, last) = edit.top, edit.bottom
        begin, end = self.pastes.around(self.document[top], first)
        if edit.top == edit.bottom:
            begin = end
        else:
            end = self.pastes.around(self.document[bottom], last)[1] if bottom < self.document.line_count else last
        return super().edit(replace(edit, from_location=(top, begin), to_location=(bottom, end)))

    def get_cursor_left_location(self) -> Location:
        """One character to the left, whatever it is made of."""
        row, column = self.cursor_location
        before = self.document[row][max(0, column - _CLUSTER) : column]
        if not before:
            return super().get_cursor_left_location()
        step = column - len(before) + split_graphemes(before)[0][-1][0]
        return row, self.pastes.around(self.document[row], step)[0]

    def get_cursor_right_location(self) -> Location:
        """One character to the right, whatever it is made of."""
        row, column = self.cursor_location
        after = self.document[row][column : column + _CLUSTER]
        if not after:
            return super().get_cursor_right_location()
        return row, self.pastes.around(self.document[row], column + split_graphemes(after)[0][0][1])[1]

    def get_line(self, line_index: int) -> Text:
        """A line to render, tokens in their colour."""
        line = super().get_line(line_index)
        for start, end in self.pastes.spans(line.plain):
            line.stylize(self.get_component_rich_style("text-input--paste"), start, end)
        return line

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The rows of the text, up to a limit; the rest is scrolled to."""
        height = super().get_content_height(container, viewport, width)
        return min(height, ROWS, max(1, viewport.height // 3))
