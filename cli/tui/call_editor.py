"""Where a person changes a call's arguments before it runs: a command as it is, all others as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from .editor import EditorError, edit_instead
from .pastes import clean
from .text_input import TextInput

if TYPE_CHECKING:
    from pydantic import JsonValue

    from ...context.messages import ToolCall

_COMMAND = "command"


class CallEditor(TextInput):
    """Enter takes the text, Ctrl+J goes on on a new line, Ctrl+G opens the user's own editor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+enter,ctrl+j,alt+enter", "newline", show=False),
        Binding("ctrl+g", "editor", show=False),
    ]
    DEFAULT_CSS = "CallEditor { background: $foreground 8%; }"

    class Done(Message):
        """The arguments as they are to be."""

        def __init__(self, arguments: dict[str, JsonValue]) -> None:
            super().__init__()
            self.arguments = arguments

    class Unreadable(Message):
        """The text is no call; `reason` says why in one sentence."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(self, call: ToolCall) -> None:
        super().__init__(Content())
        self._call = call
        self._plain = call.name == "execute" and _is_plain(call.arguments.get(_COMMAND))
        self.load_text(self._text())
        self.move_cursor(self.document.end)

    def _text(self) -> str:
        if self._plain:
            return str(self._call.arguments[_COMMAND])
        text = json.dumps(dict(self._call.arguments), indent=2, ensure_ascii=False)
        return text if _is_plain(text) else json.dumps(dict(self._call.arguments), indent=2)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self._take()

    def _take(self) -> None:
        try:
            self.post_message(self.Done(self._arguments()))
        except ValueError as error:
            self.post_message(self.Unreadable(str(error)))

    def _arguments(self) -> dict[str, JsonValue]:
        """What the text says. Raises `ValueError`."""
        text = self.whole_text
        if self._plain:
            return {**self._call.arguments, _COMMAND: text}
        try:
            given = json.loads(text)
        except ValueError as error:
            raise ValueError(f"this is no JSON: {error}") from error
        if not isinstance(given, dict):
            raise ValueError("arguments are a JSON object: { … }")
        return cast("dict[str, JsonValue]", given)

    def action_newline(self) -> None:
        """Goes on on a new line."""
        self._replace_via_keyboard("\n", *self.selection)

    def action_editor(self) -> None:
        """Opens the text in the user's own editor."""
        self.run_worker(self._edit_outside(), group="editor", exclusive=True)

    async def _edit_outside(self) -> None:
        try:
            self.show(await edit_instead(cast(App[object], self.app), self.whole_text))
        except EditorError as error:
            self.post_message(self.Unreadable(str(error)))
        self.focus()


def _is_plain(text: object) -> bool:
    """The widget shows it as it is, and gives it back so."""
    return isinstance(text, str) and clean(text) == text
