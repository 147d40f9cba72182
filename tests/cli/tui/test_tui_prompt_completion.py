"""Completion: `/` commands and `@` files in the list above the input."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from deepagent.cli.slash import SLASH, Slash
from deepagent.cli.tui.completion import ROWS, Choice, command_choices, file_choices, word_before
from deepagent.cli.tui.drafts import Drafts
from deepagent.cli.tui.file_index import FileIndex, PathSearch
from deepagent.cli.tui.history import History
from deepagent.cli.tui.prompt import Prompt, PromptArea
from textual import events, on
from textual.app import App, ComposeResult
from textual.pilot import Pilot


class Host(App[None]):
    """The input above a workspace; notes what was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.area = PromptArea()
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.area

    def on_mount(self) -> None:
        history = History(Path("history.jsonl"), "here")
        history.add("/compact")
        self.area.attach(history=history, drafts=Drafts(Path("drafts"), Path.cwd()), files=FileIndex(Path.cwd()))

    @property
    def input(self) -> Prompt:
        return self.area.prompt

    @property
    def rows(self) -> list[str]:
        """What the list shows."""
        lines = self.area.choices.render().plain.splitlines()
        return [line.rstrip() for line in lines] if self.area.choices.is_open else []

    @on(Prompt.Sent)
    def note(self, message: Prompt.Sent) -> None:
        self.sent.append(message.text)


@pytest.fixture(autouse=True)
def files(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".gitignore").write_text("built/\n*.log\n")
    for name in ("src/billing/invoice.py", "src/app.py", "built/app.py", "run.log", "my notes.md", "[/b].txt"):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


async def type_(pilot: Pilot[None], text: str) -> None:
    """Types all of it at once."""
    for key in text:
        pilot.app.post_message(events.Key(key, key))
    await pilot.pause()


async def until_listed(pilot: Pilot[None], app: Host) -> None:
    """Waits until the thread has listed the files."""
    end = time.monotonic() + 10
    while not (app.input.completer.files and app.input.completer.files.ready):
        assert time.monotonic() < end
        await pilot.pause(0.02)
    await pilot.pause()


async def test_slash_opens_the_list_and_escape_keeps_it_closed_for_this_word() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "/")
        assert (len(app.rows), app.area.escape_means) == (ROWS, "close the list")
        assert app.rows[0].split() == ["▸", "/help", "keys", "and", "commands"]
        await pilot.press("escape")
        await type_(pilot, "mod")
        assert (app.rows, app.area.escape_means) == ([], None)
        app.input.show("")
        await type_(pilot, "/mod")
        assert [row.split()[:2] for row in app.rows] == [["▸", "/model"], ["/mode", "[mode]"]]


async def test_exact_name_runs_even_where_another_begins_with_it() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "/mode")
        await pilot.press("enter")
        await type_(pilot, "/exit")
        await pilot.press("enter")
        assert app.sent == ["/mode", "/exit"]


@pytest.mark.parametrize(("name", "slash"), [(name, one) for one in SLASH for name in (one.name, *one.aliases)])
def test_each_name_typed_in_full_is_offered_first(name: str, slash: Slash) -> None:
    first = command_choices(name)[0]
    assert (first.exact, first.text.strip()) == (True, f"/{slash.name}")


async def test_enter_completes_what_was_not_typed_in_full_and_does_not_run_it() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "/comp")
        await pilot.press("enter")
        assert (app.sent, app.input.text, app.rows) == ([], "/compact ", [])
        await type_(pilot, "undo")
        await pilot.press("enter")
        assert app.sent == ["/compact undo"]


async def test_row_that_was_moved_to_wins_over_the_exact_name() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "/mode")
        await pilot.press("down", "enter")
        assert (app.sent, app.input.text) == ([], "/model ")


async def test_list_scrolls_and_goes_round() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "/")
        await pilot.press("up")
        assert len(app.rows) == ROWS
        assert app.rows[-1].split()[:2] == ["▸", f"/{SLASH[-1].name}"]
        await pilot.press("down", "tab")
        assert app.input.text == f"/{SLASH[0].name}"


async def test_clicked_row_is_taken() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "/")
        await pilot.pause()
        wanted = app.rows[2].strip("▸ ").split()[0]
        await pilot.click(app.area.choices, offset=(5, 2))
        assert app.input.text.strip() == wanted


async def test_at_sign_offers_the_workspaces_files_without_ignored_ones() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "see @app")
        await until_listed(pilot, app)
        assert [row.strip("▸ ") for row in app.rows] == ["src/app.py"]
        await pilot.press("enter")
        assert (app.sent, app.input.text, app.rows) == ([], "see @src/app.py ", [])
        await type_(pilot, "and @inv")
        await pilot.press("tab")
        await type_(pilot, "now")
        await pilot.press("enter")
        assert app.sent == ["see @src/app.py and @src/billing/invoice.py now"]


async def test_path_typed_in_full_does_not_hold_the_prompt_back() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "@src/app.py")
        await until_listed(pilot, app)
        assert app.rows == ["▸ src/app.py"]
        await pilot.press("enter")
        assert app.sent == ["@src/app.py"]


async def test_file_names_with_spaces_and_markup() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "@notes")
        await until_listed(pilot, app)
        await pilot.press("tab")
        assert app.input.text == '@"my notes.md" '
        await type_(pilot, "@[/b")
        assert app.rows == ["▸ [/b].txt"]


async def test_list_closes_when_the_caret_leaves_the_word() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await type_(pilot, "ab /x @src")
        await until_listed(pilot, app)
        assert app.rows
        await pilot.press("home")
        assert app.rows == []


async def test_recalled_command_opens_no_list() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press("up")
        assert (app.input.text, app.rows) == ("/compact", [])


@pytest.mark.parametrize(
    ("line", "row", "found"),
    [
        ("/", 0, ("command", "")),
        ("/co", 0, ("command", "co")),
        ("/compact x", 0, None),
        ("/co", 1, None),
        ("a /co", 0, None),
        ("@", 3, ("file", "")),
        ("look (@src/a", 0, ("file", "src/a")),
        ("me@example.org", 0, None),
        ("@a b", 0, None),
    ],
)
def test_words_that_can_be_completed(line: str, row: int, found: tuple[str, str] | None) -> None:
    word = word_before(line, row)
    assert (word and (word.kind, word.letters)) == found
    if word:
        assert line[word.start] in "/@"


def test_whole_names_come_before_beginnings_parts_and_scattered_letters() -> None:
    paths = ["x/appendix.py", "app/models.py", "a/p/p.py", "my_app.py", "src/app", "web/App.py"]
    assert PathSearch(paths).best("app", 9) == [
        "src/app",
        "web/App.py",
        "x/appendix.py",
        "my_app.py",
        "app/models.py",
        "a/p/p.py",
    ]


def test_search_that_goes_on_finds_what_a_fresh_one_finds() -> None:
    paths = [f"{a}{b}/{c}{a}.py" for a in "abc" for b in "bcd" for c in "cde"]
    going_on = PathSearch(paths)
    for letters in ("a", "ab", "abc", "ab", "", "c", "cc", "zz", "b/d"):
        assert going_on.best(letters, 99) == PathSearch(paths).best(letters, 99)


@pytest.mark.long
def test_search_takes_no_time_whatever_was_typed() -> None:
    search = PathSearch(["a" * 4000] * 20 + [f"src/module_{n}/file_{n}.py" for n in range(50_000)])
    begun = time.process_time()
    for letters in ("a" * 60 + "b", "s", "srcmodule9file"):
        search.best(letters, 50)
    assert time.process_time() - begun < 1


def test_path_that_cannot_be_shown_is_not_offered() -> None:
    assert file_choices("", ["a\x1b[2J.py", "b.py"]) == [Choice(text="@b.py ", shown="b.py")]


def test_list_of_files_is_made_again_only_when_it_is_old(workspace: Path) -> None:
    index, times = FileIndex(workspace), list[int]()
    for _ in range(2):
        index.refresh(lambda: times.append(1))
        assert index._thread is not None
        index._thread.join(10)
    assert (times, index.ready) == ([1], True)
    assert index.best("gone", 5) == []


def test_folder_that_is_gone_has_no_files(tmp_path: Path) -> None:
    index = FileIndex(tmp_path / "gone")
    index.refresh(lambda: None)
    assert index._thread is not None
    index._thread.join(10)
    assert (index.ready, index.best("", 5)) == (True, [])
