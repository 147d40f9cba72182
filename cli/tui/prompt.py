"""The input: a text area whose keys send, queue, recall and complete, and the area around it.

Where earlier prompts, files and drafts come from is handed in (`PromptArea.attach`) once it is known; typing does not
wait for it. What a sent text does is the app's business, so are Ctrl+C, Ctrl+Z, Shift+Tab, Ctrl+O and paging.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.actions import SkipAction
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widgets import Static

from .completion import Choices, Completer, word_before
from .drafts import Draft, Drafts
from .editor import EditorError, edit_instead
from .history import History
from .pastes import clean
from .queue import QueueList, Waiting
from .recall import Recall
from .text_input import TextInput

if TYPE_CHECKING:
    from textual.document._document import EditResult
    from textual.document._edit import Edit

    from .file_index import FileIndex

_DEBOUNCE = 0.5
"""Seconds after the last key until the draft is written."""


class Prompt(TextInput):
    """Where the user writes."""

    class Sent(Message):
        """Enter on a text; while a run goes on, the text is meant to join it."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Queued(Message):
        """Tab on a text while a run goes on: it is meant for afterwards."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class SentEmpty(Message):
        """Enter on the empty line."""

    class HelpWanted(Message):
        """`?` on the empty line."""

    class FilesListed(Message):
        """The list of files was made, in a thread."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+enter,ctrl+j,alt+enter", "newline", show=False),
        Binding("tab", "queue_or_accept", show=False),
        Binding("escape", "close_list", show=False),
        Binding("up,ctrl+p", "older", show=False),
        Binding("down,ctrl+n", "newer", show=False),
        Binding("ctrl+r", "search", show=False),
        Binding("ctrl+g", "editor", show=False),
        Binding("ctrl+d", "delete_ahead", show=False),
    ]
    busy: reactive[bool] = reactive(False)
    """A run goes on."""

    def __init__(self, choices: Choices) -> None:
        """`choices` is the list above the input."""
        self._choices = choices
        self.recall = Recall(choices)
        super().__init__(_placeholder(busy=False))
        self.completer = Completer(choices, self._files_listed)
        self.take_back: Callable[[], str | None] = lambda: None
        """Gives back the newest message that the model has not got yet."""

    def discard(self) -> None:
        """Empties the input; ↑ and Ctrl+_ bring back what stood there."""
        if self.recall.past and self.text.strip():
            self.recall.past.remember(self.whole_text)
        self.show("")
        self.close_list()

    def paste(self, text: str) -> None:
        """Inserts a pasted text; while earlier prompts are searched, its first line is searched for."""
        if self.recall.query is not None:
            self.recall.search_for(self.recall.query + clean(text).partition("\n")[0])
        else:
            super().paste(text)
            self.close_list()

    def close_list(self) -> None:
        """Takes the list above the input away, and ends a search."""
        self.recall.query = None
        self._choices.close()

    def watch_busy(self, busy: bool) -> None:
        """Says what the keys do meanwhile."""
        self.placeholder = _placeholder(busy=busy)

    # Keys

    async def _on_key(self, event: events.Key) -> None:
        if self.recall.key(event):
            pass
        elif event.key == "enter":
            self._enter()
        elif event.character == "?" and not self.text:
            self.post_message(self.HelpWanted())
        else:
            return
        event.stop()
        event.prevent_default()

    def on_blur(self) -> None:
        """The list goes away with the focus, but not when another window is looked at."""
        if cast(App[object], self.app).app_focus:
            self.close_list()

    def action_newline(self) -> None:
        """Goes on on a new line."""
        self._replace_via_keyboard("\n", *self.selection)

    def action_delete_ahead(self) -> None:
        """Deletes the next character; on the empty line the key is the app's."""
        if not self.text:
            raise SkipAction
        self.action_delete_right()

    def action_queue_or_accept(self) -> None:
        """Takes the marked row of the list; else queues the text while a run goes on."""
        if self._choices.is_open:
            self.accept()
        elif self.busy and self.text.strip():
            self.post_message(self.Queued(self._taken()))
        elif not self.text:
            raise SkipAction

    def action_close_list(self) -> None:
        """Closes the list; without one the key is the app's."""
        if not self._choices.is_open:
            raise SkipAction
        if self.recall.query is None:
            self.completer.refuse(self._before, self.cursor_location[0])
        self.close_list()

    def action_editor(self) -> None:
        """Opens the text in the user's own editor; what runs goes on meanwhile, unseen."""
        self.run_worker(self._edit_outside(), group="editor", exclusive=True)

    async def _edit_outside(self) -> None:
        problem, text = "", self.whole_text
        try:
            text = await edit_instead(cast(App[object], self.app), text)
        except EditorError as error:
            problem = str(error)
        self.focus()  # a question may have come meanwhile; it has waited for the text
        if problem:
            self.notify(problem, title="Editor", severity="error", markup=False)
        else:
            self.show(text)

    def _enter(self) -> None:
        chosen = self._choices.chosen
        if self.recall.query is not None or (chosen and not chosen.exact):
            self.accept()
        elif self.selection.is_empty and self._before.endswith("\\"):
            row, column = self.cursor_location
            self._replace_via_keyboard("\n", (row, column - 1), (row, column))
        elif self.text.strip():
            self.post_message(self.Sent(self._taken()))
        elif not self.text:
            self.post_message(self.SentEmpty())

    def _taken(self) -> str:
        """The text to send; the input is empty afterwards."""
        text = self.whole_text.strip("\n").rstrip()
        self.load_text("")
        self.close_list()
        self.pastes.clear()
        self.recall.sent(text)
        return text

    # Earlier prompts

    def action_older(self) -> None:
        """Up: in the list, in the text, then what was said and not heard yet, then earlier prompts."""
        if self._choices.is_open:
            self._choices.move(-1)
        elif not self._passing and not self.navigator.is_first_wrapped_line(self.cursor_location):
            self.action_cursor_up()
        elif not self.recall.walking(self.text) and (taken := self.take_back()) is not None:
            own = self.text
            self.show(f"{taken}\n{own}" if own.strip() else taken)
        else:
            self._step(1)

    def action_newer(self) -> None:
        """Down: in the list, in the text, then the prompts after the one that was recalled."""
        if self._choices.is_open:
            self._choices.move(1)
        elif not self._passing and not self.navigator.is_last_wrapped_line(self.cursor_location):
            self.action_cursor_down()
        elif self.recall.walking(self.text):
            self._step(-1)

    @property
    def _passing(self) -> bool:
        """An earlier prompt stands in the input as it was recalled, and the arrows go on to the next."""
        return self.recall.walking(self.text) and self.cursor_at_end_of_text

    def _step(self, by: int) -> None:
        if (text := self.recall.step(self.text, by)) is not None:
            self.show(text)
            self.recall.put(self.text)

    def action_search(self) -> None:
        """Searches the earlier prompts; again for the next one that fits."""
        self.recall.search()

    # Completion

    def accept(self) -> None:
        """Puts the marked row of the list into the input."""
        chosen = self._choices.chosen
        if self.recall.query is not None:
            self.close_list()
            if chosen:
                self.show(chosen.text)
        elif chosen and (word := word_before(self._before, self.cursor_location[0])):
            row, column = self.cursor_location
            follows = self.document[row][column : column + 1].isspace()
            text = chosen.text.rstrip() if follows else chosen.text
            self.replace(text, (row, word.start), (row, column), maintain_selection_offset=False)
            self.close_list()

    @property
    def _before(self) -> str:
        """The caret's line up to it."""
        row, column = self.cursor_location
        return self.document[row][:column]

    def _complete(self) -> None:
        self.recall.query = None
        self.completer.offer(self._before, self.cursor_location[0])

    def _files_listed(self) -> None:
        with suppress(RuntimeError):  # the app has ended meanwhile
            self.post_message(self.FilesListed())

    def on_prompt_files_listed(self) -> None:
        """Offers from the new list, unless something else is on offer or a row of the old one was marked."""
        word = word_before(self._before, self.cursor_location[0])
        offered = self._choices.is_open and self.recall.query is None and not self._choices.moved
        if offered and word and word.kind == "file":
            self._complete()

    def watch_selection(self) -> None:
        """The list goes away when the caret leaves the word."""
        completing = self._choices.is_open and self.recall.query is None
        if completing and word_before(self._before, self.cursor_location[0]) is None:
            self.close_list()

    def edit(self, edit: Edit) -> EditResult:
        """Makes an edit; typing and deleting offer completions."""
        result = super().edit(edit)
        if len(edit.text) < 2:
            self._complete()
        else:
            self.close_list()
        return result


def _placeholder(*, busy: bool) -> Content:
    return Content("Enter joins the run, Tab waits for its end" if busy else "What shall be done?")


class PromptArea(Vertical):
    """The input between two rules, above it what waits to be heard and the list of choices."""

    class Restored(Message):
        """A draft that was left behind stands in the input again; `queued` is what waited then, oldest first."""

        def __init__(self, queued: tuple[str, ...]) -> None:
            super().__init__()
            self.queued = queued

    DEFAULT_CSS = """
    PromptArea { height: auto; }
    PromptArea > #prompt-line { height: auto; border-top: solid $foreground 20%; border-bottom: solid $foreground 20%; }
    PromptArea #prompt-sign { width: 2; color: $text-accent; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.choices = Choices()
        self.prompt = Prompt(self.choices)
        self.waiting = QueueList()
        self._drafts: Drafts | None = None
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self.waiting
        yield self.choices
        with Horizontal(id="prompt-line"):
            yield Static(Content("❯"), id="prompt-sign")
            yield self.prompt

    def attach(self, *, history: History, drafts: Drafts, files: FileIndex) -> None:
        """Hands in what came late. A draft that was left behind is put into the input, or, where something was typed
        meanwhile, among the earlier prompts."""
        self.prompt.recall.past, self.prompt.completer.files, self._drafts = history, files, drafts
        if draft := drafts.take():
            self._restore(draft, history)
        self._keep_draft()

    def set_waiting(self, items: Sequence[Waiting]) -> None:
        """Shows what was said and not heard yet, oldest first; it is kept with the draft."""
        if tuple(items) != self.waiting.items:
            self.waiting.set(items)
            self._keep_draft_soon()

    @property
    def escape_means(self) -> str | None:
        """What Esc would do here, or None if the key is the app's."""
        return "close the list" if self.choices.is_open else None

    def on_choices_picked(self) -> None:
        """A row was clicked."""
        self.prompt.accept()

    @on(Prompt.Changed)
    def _keep_draft_soon(self) -> None:
        if self._timer:
            self._timer.stop()
        if self._draft:
            self._timer = self.set_timer(_DEBOUNCE, self._keep_draft)
        else:
            self._keep_draft()

    def on_unmount(self) -> None:
        if self._drafts:
            self._drafts.close(self._draft)

    def _keep_draft(self) -> None:
        if self._drafts:
            self._drafts.keep(self._draft)

    @property
    def _draft(self) -> Draft:
        text = self.prompt.text
        queued = tuple(item.text for item in self.waiting.items)
        return Draft(text=text, pastes=self.prompt.pastes.within(text), queued=queued)

    def _restore(self, draft: Draft, history: History) -> None:
        self.prompt.pastes.restore(draft.pastes)
        if self.prompt.text:
            history.remember(self.prompt.pastes.expand(draft.text))
        else:
            self.prompt.show(draft.text)
        self.post_message(self.Restored(draft.queued))
