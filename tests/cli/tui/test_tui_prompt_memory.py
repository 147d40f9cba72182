"""What outlives the program: earlier prompts, and the draft that was not sent."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deepagent.cli.tui.drafts import Draft, Drafts
from deepagent.cli.tui.file_index import FileIndex
from deepagent.cli.tui.history import KEPT, History
from deepagent.cli.tui.prompt import PromptArea
from deepagent.cli.tui.queue import Waiting
from textual import on
from textual.app import App, ComposeResult
from textual.pilot import Pilot


def mask(text: str) -> str:
    return text.replace("sk-secret", "[masked]")


def test_history_is_per_user_with_this_workspace_first(tmp_path: Path) -> None:
    path = tmp_path / "home" / "history.jsonl"
    History(path, "/a").add("old a")
    History(path, "/b").add("old b")
    History(path, "/a").add("new\na")
    assert History(path, "/a").texts() == ["new\na", "old a", "old b"]
    assert History(path, "/b").texts() == ["old b", "new\na", "old a"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(path.read_text().splitlines()) == 3


def test_history_keeps_a_prompt_once_and_the_newest_thousand(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = History(path, "/a")
    for n in range(KEPT + 5):
        history.add(f"p{n}")
    history.add("p900")
    for seen in (history.texts(), History(path, "/a").texts()):
        assert (len(seen), seen[:2], seen[-1]) == (KEPT, ["p900", f"p{KEPT + 4}"], "p5")


def test_history_file_is_only_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    first, second = History(path, "/a"), History(path, "/a")
    first.add("one")
    before = path.read_bytes()
    second.add("two")
    first.add("one")
    assert path.read_bytes().startswith(before)
    assert History(path, "/a").texts() == ["one", "two"]


def test_history_passes_over_what_is_none_of_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    lines: list[object] = [
        {"text": 5},
        {"workspace": "/a"},
        [1],
        None,
        "x",
        {"text": "  \n"},
        {"text": "ok", "workspace": 7},
    ]
    foreign = [json.dumps(line).encode() for line in lines]
    hostile = json.dumps({"text": "a\x1b]52;c;eA==\x07\r\nb\u202e\ud800[/b]"}).encode()
    deep = b"[" * 100_000
    path.write_bytes(b"\n".join([b"\xff\xfe\x00", deep, *foreign, hostile, b'{"text": "torn']))
    history = History(path, "/a")
    history.add("after a torn line")
    assert history.texts() == ["after a torn line", "a]52;c;eA==\nb[/b]", "ok"]
    assert History(path, "/a").texts() == history.texts()


def test_history_reads_only_the_end_of_a_huge_file(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with path.open("wb") as file:
        file.truncate(3 * 1024**3)  # a hole: it takes no room
    History(path, "/a").add("found")
    begun = time.monotonic()
    assert History(path, "/a").texts() == ["found"]
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("kind", ["fifo", "folder", "dangling"])
def test_history_that_is_no_file_costs_nothing_but_the_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "history.jsonl"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("gone/away")
    history = History(path, "/a")
    history.add("one")
    assert history.texts() == ["one"]
    assert History(path, "/a").texts() == []


def test_history_writes_no_secret_and_nothing_huge(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = History(path, "/a", mask)
    history.add("use sk-secret")
    history.add("x" * 200_000)
    assert history.texts()[1] == "use sk-secret"
    assert History(path, "/a").texts() == ["use [masked]"]
    assert path.stat().st_size < 1000


def test_history_search_ignores_capitals(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl", "/a")
    for text in ("Fix A", "other", "do fix b"):
        history.add(text)
    assert history.search("FIX") == ["do fix b", "Fix A"]


def test_draft_is_found_again_after_a_kill(tmp_path: Path) -> None:
    program = f"""
import os, signal, time
from pathlib import Path
from deepagent.cli.tui.drafts import Draft, Drafts
drafts = Drafts(Path({str(tmp_path)!r}), Path("/w"))
assert drafts.take() is None
drafts.keep(Draft(text="half a th", queued=("then this",)))
while not list(Path({str(tmp_path)!r}).glob("*.json")): time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=30)
    assert done.returncode == -9
    assert Drafts(tmp_path, Path("/other")).take() is None
    assert Drafts(tmp_path, Path("/w")).take() == Draft(text="half a th", queued=("then this",))


def test_draft_of_a_screen_that_is_open_is_its_own(tmp_path: Path) -> None:
    first, second = Drafts(tmp_path, Path("/w")), Drafts(tmp_path, Path("/w"))
    assert first.take() is None
    first.close(Draft(text="left behind"))
    assert first.take() == Draft(text="left behind")
    assert second.take() is None
    second.close(Draft(text="of the second"))
    first.close(Draft())
    assert second.take() == Draft(text="of the second")
    assert [path.name.count("-") for path in tmp_path.glob("*.json")] == [1]


def test_draft_files_are_private_and_hold_no_secret(tmp_path: Path) -> None:
    folder = tmp_path / "drafts"
    drafts = Drafts(folder, Path("/w"), mask)
    drafts.take()
    drafts.close(Draft(text="sk-secret [paste 1]", pastes={"[paste 1]": "sk-secret"}, queued=("sk-secret",)))
    (path,) = folder.glob("*.json")
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o600, 0o700)
    assert b"sk-secret" not in path.read_bytes()
    assert path.read_bytes().count(b"[masked]") == 3


@pytest.mark.parametrize(
    "data", [b"", b"[1]", b"{", b'{"text": 1}', b"\xff", b"[" * 100_000, b'{"text":"a","pastes":[],"queued":[]}']
)
def test_draft_that_is_none_of_ours_is_no_draft(tmp_path: Path, data: bytes) -> None:
    drafts = Drafts(tmp_path, Path("/w"))
    drafts.take()
    drafts.close(Draft(text="x"))
    (path,) = tmp_path.glob("*.json")
    path.write_bytes(data)
    assert drafts.take() is None
    drafts.close(Draft(text="y"))
    assert drafts.take() == Draft(text="y")


def test_drafts_that_cannot_be_written_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "drafts").write_text("in the way")
    drafts = Drafts(tmp_path / "drafts", Path("/w"))
    assert drafts.take() is None
    drafts.keep(Draft(text="x"))
    drafts.close(Draft(text="x"))


class Host(App[None]):
    """The input alone, with a draft."""

    def __init__(self, folder: Path, *, early: str = "") -> None:
        super().__init__()
        self.area = PromptArea()
        self.folder = folder
        self.restored: list[tuple[str, ...]] = []
        self._early = early

    def compose(self) -> ComposeResult:
        yield self.area

    def on_mount(self) -> None:
        self.area.prompt.insert(self._early)
        self.area.attach(
            history=History(self.folder / "history.jsonl", "/w"),
            drafts=Drafts(self.folder, Path("/w")),
            files=FileIndex(self.folder),
        )

    @on(PromptArea.Restored)
    def note(self, message: PromptArea.Restored) -> None:
        self.restored.append(message.queued)


def written(folder: Path) -> list[str]:
    """What the drafts on disk say."""
    return [json.loads(path.read_bytes())["text"] for path in folder.glob("*.json")]


async def until_written(pilot: Pilot[None], folder: Path, texts: list[str]) -> None:
    """Waits until the drafts on disk say this."""
    end = time.monotonic() + 10
    while written(folder) != texts:
        assert time.monotonic() < end
        await pilot.pause(0.05)


async def test_draft_is_written_while_typing_and_gone_when_sent(tmp_path: Path) -> None:
    async with Host(tmp_path).run_test() as pilot:
        await pilot.press("h", "i")
        await until_written(pilot, tmp_path, ["hi"])
        await pilot.press("enter")
        await until_written(pilot, tmp_path, [])


async def test_draft_with_pastes_and_queue_comes_back_at_the_next_start(tmp_path: Path) -> None:
    lines = "line\n" * 99
    first = Host(tmp_path)
    async with first.run_test() as pilot:
        first.area.prompt.paste(lines)
        await pilot.press("a")
        first.area.set_waiting([Waiting(kind="queued", text="q1"), Waiting(kind="steering", text="q2")])
    second = Host(tmp_path)
    async with second.run_test() as pilot:
        await pilot.pause()
        assert second.area.prompt.text == "[paste 1: 100 lines]a"
        assert second.area.prompt.whole_text == f"{lines}a"
        assert second.restored == [("q1", "q2")]
        second.area.prompt.paste(lines)
        assert second.area.prompt.text.endswith("[paste 2: 100 lines]")


async def test_draft_does_not_overwrite_what_was_typed_before_it_was_found(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path, Path("/w"))
    drafts.take()
    drafts.close(Draft(text="older"))
    app = Host(tmp_path, early="typed at once")
    async with app.run_test() as pilot:
        assert app.area.prompt.text == "typed at once"
        await pilot.press("up")
        assert app.area.prompt.text == "older"
