"""The keys of the input: what sends, what makes a line, what recalls, and what is left to the app."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from deepagent.cli.tui.drafts import Drafts
from deepagent.cli.tui.file_index import FileIndex
from deepagent.cli.tui.history import History
from deepagent.cli.tui.prompt import Prompt, PromptArea
from deepagent.cli.tui.queue import Waiting
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.keys import _character_to_key
from textual.pilot import Pilot

pytestmark = pytest.mark.usefixtures("workspace")


class Host(App[None], inherit_bindings=False):
    """A screen with nothing but the input; notes what the input says, and which keys came through to the app."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"note('{key}')") for key in ("escape", "ctrl+c", "ctrl+d", "ctrl+z", "ctrl+q", "pageup")
    ]

    def __init__(self, earlier: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.area = PromptArea(id="prompt-area")
        self.said: list[tuple[str, str]] = []
        self.keys: list[str] = []
        self._earlier = earlier

    def compose(self) -> ComposeResult:
        yield VerticalScroll(can_focus=False)
        yield self.area

    def on_mount(self) -> None:
        self.input.focus()
        history = History(Path("history.jsonl"), "here")
        for text in self._earlier:
            history.add(text)
        self.area.attach(history=history, drafts=Drafts(Path("drafts"), Path.cwd()), files=FileIndex(Path.cwd()))

    @property
    def input(self) -> Prompt:
        return self.area.prompt

    @on(Prompt.Sent)
    @on(Prompt.Queued)
    def note_text(self, message: Prompt.Sent | Prompt.Queued) -> None:
        self.said.append((type(message).__name__, message.text))

    @on(Prompt.SentEmpty)
    @on(Prompt.HelpWanted)
    def note_sign(self, message: Prompt.SentEmpty | Prompt.HelpWanted) -> None:
        self.said.append((type(message).__name__, ""))

    def action_note(self, key: str) -> None:
        self.keys.append(key)


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Presses keys as fast as a script does: all of them are there before the first one is looked at."""
    for key in keys:
        name = _character_to_key(key) if len(key) == 1 else key
        pilot.app.post_message(events.Key(name, key if len(key) == 1 else None))
    await pilot.pause()


async def test_enter_sends_at_once_after_fast_typing() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, *"fix it", "enter", *"then this", "enter")
        assert app.said == [("Sent", "fix it"), ("Sent", "then this")]
        assert app.input.text == ""


async def test_enter_on_the_empty_line_is_no_text() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, "enter", " ", "enter")
        assert app.said == [("SentEmpty", "")]
        assert app.input.text == " "


@pytest.mark.parametrize("keys", [("shift+enter",), ("ctrl+j",), ("\\", "enter")])
async def test_newline(keys: tuple[str, ...]) -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, "a", *keys, "b")
        assert app.input.text == "a\nb"
        assert app.said == []
        await press(pilot, "enter")
        assert app.said == [("Sent", "a\nb")]


async def test_backslash_is_kept_where_it_does_not_end_the_line_at_the_caret() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, *r"a\b", "enter")
        assert app.said == [("Sent", r"a\b")]


async def test_tab_queues_only_while_a_run_goes_on() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, *"later", "tab")
        assert (app.said, app.input.text) == ([], "later")
        app.input.busy = True
        await press(pilot, "tab")
        assert (app.said, app.input.text) == ([("Queued", "later")], "")


async def test_question_mark_asks_for_help_on_the_empty_line_only() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, "?", *"why", "?")
        assert app.said == [("HelpWanted", "")]
        assert app.input.text == "why?"


async def test_keys_that_are_left_to_the_app() -> None:
    app = Host()
    async with app.run_test() as pilot:
        keys = ["escape", "ctrl+c", "ctrl+z", "ctrl+q", "pageup"]
        await press(pilot, *"abc", "f7", "shift+left", *keys)
        assert app.keys == keys
        assert app.input.text == "abc"
        assert app.input.selected_text == "c"


async def test_ctrl_d_deletes_ahead_and_is_the_apps_on_the_empty_line() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, "a", "b", "home", "ctrl+d")
        assert (app.input.text, app.keys) == ("b", [])
        await press(pilot, "ctrl+d", "ctrl+d")
        assert (app.input.text, app.keys) == ("", ["ctrl+d"])


async def test_keys_of_the_shell() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, *"one two three", "ctrl+w")
        assert app.input.text == "one two "
        await press(pilot, "ctrl+a", "x", "ctrl+e", "y", "ctrl+a", "right", "ctrl+k")
        assert app.input.text == "x"
        await press(pilot, "ctrl+underscore")
        assert app.input.text == "xone two y"
        await press(pilot, "end", "ctrl+u")
        assert app.input.text == ""


async def test_up_takes_back_what_was_not_heard_yet_before_it_recalls() -> None:
    app = Host(earlier=("old",))
    async with app.run_test() as pilot:
        waiting = ["first", "second"]
        app.input.take_back = lambda: waiting.pop() if waiting else None
        await press(pilot, "up")
        assert app.input.text == "second"
        await press(pilot, "up")
        assert app.input.text == "first\nsecond"
        await press(pilot, "up", "up")
        assert app.input.text == "old"


async def test_up_and_down_walk_through_earlier_prompts_and_back_to_what_was_typed() -> None:
    app = Host(earlier=("one", "two\nlines", "three"))
    async with app.run_test() as pilot:
        await press(pilot, *"mine")
        shown: list[str] = []
        for key in ("up", "up", "up", "up", "down", "down", "down", "down"):
            await press(pilot, key)
            shown.append(app.input.text)
        assert shown == ["three", "two\nlines", "one", "one", "two\nlines", "three", "mine", "mine"]


async def test_a_changed_prompt_is_walked_from_and_found_again() -> None:
    app = Host(earlier=("one", "two"))
    async with app.run_test() as pilot:
        await press(pilot, "up", "x", "up")
        assert app.input.text == "two"
        await press(pilot, "down")
        assert app.input.text == "twox"


async def test_arrows_move_within_a_text_of_several_lines() -> None:
    app = Host(earlier=("old",))
    async with app.run_test() as pilot:
        await press(pilot, "a", "ctrl+j", "b", "up")
        assert (app.input.text, app.input.cursor_location[0]) == ("a\nb", 0)
        await press(pilot, "up")
        assert app.input.text == "old"
        await press(pilot, "down")
        assert app.input.text == "a\nb"


async def test_up_goes_through_the_rows_of_a_wrapped_line_first() -> None:
    app = Host(earlier=("old",))
    async with app.run_test(size=(20, 24)) as pilot:
        await press(pilot, *"many words that do not fit", "up")
        assert app.input.text.startswith("many")
        await press(pilot, "up")
        assert app.input.text == "old"


async def test_search_through_earlier_prompts() -> None:
    app = Host(earlier=("fix the parser", "add tests", "fix\nthe lexer"))
    async with app.run_test() as pilot:
        await press(pilot, *"mine", "ctrl+r", *"FIX")
        assert app.area.escape_means == "close the list"
        assert app.area.choices.chosen is not None
        assert app.area.choices.chosen.shown == "fix the lexer"
        await press(pilot, "ctrl+r", "enter")
        assert (app.input.text, app.said) == ("fix the parser", [])
        await press(pilot, "ctrl+r", *"testz", "backspace", "enter")
        assert app.input.text == "add tests"
        await press(pilot, "ctrl+r", "f", "escape", "q")
        assert (app.input.text, app.keys) == ("add testsq", [])


async def test_search_that_finds_nothing_changes_nothing() -> None:
    app = Host(earlier=("one",))
    async with app.run_test() as pilot:
        await press(pilot, *"mine", "ctrl+r", *"zzz?", "enter", "enter")
        assert app.said == [("Sent", "mine")]


async def test_discarded_text_comes_back_with_up() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await press(pilot, *"a thought")
        app.input.discard()
        assert app.input.text == ""
        await press(pilot, "up")
        assert app.input.text == "a thought"


async def test_input_grows_to_ten_lines_and_no_further() -> None:
    app = Host()
    async with app.run_test(size=(80, 40)) as pilot:
        heights: list[int] = []
        for lines in (1, 2, 10, 12, 3):
            app.input.show("\n" * (lines - 1))
            await pilot.pause()
            heights.append(app.input.size.height)
        assert heights == [1, 2, 10, 10, 3]
        app.input.show("\n" * 20)
        await pilot.resize_terminal(80, 12)
        await pilot.pause()
        assert app.input.size.height == 4


async def test_small_and_odd_sizes_do_no_harm() -> None:
    app = Host(earlier=("[/b] [=x,y] \x1b]52;c;x\x07",))
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, *"/c", "ctrl+r")
        for size in ((20, 5), (1, 1), (3, 2), (120, 40)):
            await pilot.resize_terminal(*size)
            await press(pilot, "x", "backspace")
        assert app.area.region.width == 120


async def test_input_line_begins_with_its_sign_between_two_rules() -> None:
    app = Host()
    async with app.run_test(size=(40, 10)) as pilot:
        await press(pilot, *"hello")
        app.area.set_waiting(
            [Waiting(kind="steering", text="[red]one[/b] \x1b[31m\ntwo"), Waiting(kind="queued", text="x" * 90)]
        )
        await pilot.pause()
        rows = ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]
        assert [row.rstrip() for row in rows[-5:]] == [
            "  ↳ joins after the running tools: [r…",
            "  ↳ queued: " + "x" * 25 + "…",
            "─" * 40,
            "❯ hello",
            "─" * 40,
        ]


async def test_waiting_messages_beyond_five_are_counted() -> None:
    app = Host()
    async with app.run_test() as pilot:
        app.area.set_waiting([Waiting(kind="queued", text=f"m{n}") for n in range(8)])
        await pilot.pause()
        assert app.area.waiting.render().plain.splitlines()[:2] == ["3 more", "↳ queued: m3"]
        app.area.set_waiting([])
        await pilot.pause()
        assert app.area.waiting.region.height == 0
