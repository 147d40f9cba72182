"""Pastes and characters: a paste is one block that never sends itself; the caret stands where the terminal's does."""

from __future__ import annotations

import time

import pytest
from deepagent.cli.tui.driver import PasteParser
from deepagent.cli.tui.pastes import Pastes, clean
from deepagent.cli.tui.prompt import Prompt, PromptArea
from hypothesis import given
from hypothesis import strategies as st
from textual import events, on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot

LINES = "".join(f"line {n}\n" for n in range(200))


class Host(App[None]):
    """The input alone; notes what was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.area = PromptArea()
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.area

    @property
    def input(self) -> Prompt:
        return self.area.prompt

    @on(Prompt.Sent)
    def note(self, message: Prompt.Sent) -> None:
        self.sent.append(message.text)


async def paste(pilot: Pilot[None], text: str) -> None:
    """Pastes as the terminal does."""
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


async def test_pasted_lines_never_send_and_arrive_whole() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await paste(pilot, LINES)
        assert (app.sent, app.input.text) == ([], "[paste 1: 201 lines]")
        await pilot.press("o", "k", "enter")
        assert app.sent == [f"{LINES}ok"]
        await paste(pilot, LINES)
        assert app.input.text == "[paste 1: 201 lines]"


async def test_small_paste_stands_in_the_input_as_it_is() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await paste(pilot, "one\r\ntwo\rthree\n\tfour")
        assert (app.sent, app.input.text) == ([], "one\ntwo\nthree\n\tfour")
        await pilot.press("ctrl+underscore")
        assert app.input.text == ""


@pytest.mark.long
async def test_two_megabytes_are_pasted_and_sent_within_a_second() -> None:
    app = Host()
    async with app.run_test() as pilot:
        text = ("0123456789 abcdef\x1b[0m\r\n" * 100_000)[:2_000_000]
        begun = time.process_time()
        await paste(pilot, text)
        await pilot.press("x", "backspace", "enter")
        assert time.process_time() - begun < 1
        assert app.sent == [clean(text).strip("\n")]


async def test_list_opened_by_typing_does_not_take_the_enter_after_a_paste() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press("slash")
        assert app.area.choices.is_open
        await paste(pilot, "hel")
        await pilot.press("enter")
        assert app.sent == ["/hel"]


async def test_token_is_one_character_to_caret_and_edits() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await paste(pilot, LINES)
        token = app.input.text
        await pilot.press("b", "home", "a", "right", "c", "left", "left", "d")
        assert app.input.text == f"ad{token}cb"
        app.input.move_cursor((0, 8))
        await pilot.press("e")
        assert app.input.text == f"ad{token}ecb"
        await pilot.press("left", "backspace")
        assert app.input.text == "adecb"
        await pilot.press("ctrl+underscore", "enter")
        assert app.sent == [f"ad{LINES}ecb"]


async def test_cutting_into_a_token_takes_all_of_it() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press("a")
        await paste(pilot, LINES)
        app.input.move_cursor((0, 5))
        await pilot.press("ctrl+k", "b")
        assert app.input.text == "ab"


async def test_typed_words_that_look_like_a_token_stay_what_they_are() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await paste(pilot, "[paste 2: 201 lines] ")
        await paste(pilot, LINES)
        await paste(pilot, "y" * 5000)
        await pilot.press("enter")
        assert app.sent == [f"[paste 2: 201 lines] {LINES}{'y' * 5000}"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("日本語", [2, 4, 6]),
        ("a👍🏽b", [1, 3, 4]),
        ("e\u0301x", [1, 2]),
        ("👩\u200d👩\u200d👧!", [2, 3]),
        ("한글", [2, 4]),
    ],
)
async def test_caret_goes_by_cells_and_whole_characters(text: str, columns: list[int]) -> None:
    app = Host()
    async with app.run_test() as pilot:
        await paste(pilot, text)
        left = app.input.region.x
        seen: list[int] = []
        for _ in columns:
            seen.insert(0, app.cursor_position.x - left)
            await pilot.press("left")
        assert (seen, app.cursor_position.x) == (columns, left)
        await pilot.press("right")
        assert app.cursor_position.x - left == columns[0]
        await pilot.press("end", *["backspace"] * len(columns))
        assert app.input.text == ""


async def test_placeholder_and_text_with_markup_are_shown_as_they_are() -> None:
    app = Host()
    async with app.run_test() as pilot:
        text = "[/b] [=x,y] [data: /m?id=b] ["
        await paste(pilot, text)
        rows = ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]
        assert any(row.startswith(f"❯ {text}") for row in rows)


@given(st.text())
def test_cleaned_text_has_no_controls_and_stays_clean(text: str) -> None:
    shown = clean(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in shown)
    assert clean(shown) == shown
    assert all(line.endswith("\n") for line in shown.splitlines(keepends=True)[:-1])


@given(st.lists(st.text("ab\n[]:1", max_size=200), max_size=6), st.text("ab[ ]", max_size=10))
def test_folded_texts_come_back_whole(texts: list[str], between: str) -> None:
    pastes = Pastes()
    large = [text * 30 for text in texts]
    shown = between.join(pastes.fold(text) for text in large)
    assert pastes.expand(shown) == between.join(large)
    again = Pastes()
    again.restore(pastes.within(shown))
    assert again.expand(shown) == between.join(large)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_paste_is_found_however_the_bytes_come_in_pieces(size: int) -> None:
    pasted = "one\x1b\ntwo of more than thirty-two characters \x1b[201\r\x1b[A"
    data = f"a\x1b[A\x1b[200~{pasted}\x1b[201~b\x1b[200~\x1b[201~\r"
    parser = PasteParser()
    seen = [event for start in range(0, len(data), size) for event in parser.feed(data[start : start + size])]
    assert [event.text if isinstance(event, events.Paste) else event.key for event in keys(seen)] == [
        *("a", "up", pasted, "b", "", "enter")
    ]


def keys(seen: list[Message]) -> list[events.Paste | events.Key]:
    """All of them, as what they are."""
    found = [event for event in seen if isinstance(event, (events.Paste, events.Key))]
    assert len(found) == len(seen)
    return found
