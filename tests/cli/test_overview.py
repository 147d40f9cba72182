"""What the start tells, gathered from real agents, real repositories and real logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deepagent.agent.git import make_repository
from deepagent.cli.last_session import ago
from deepagent.cli.listings import session_rows
from deepagent.cli.opening import Opened, Opener
from deepagent.cli.options import RunOptions
from deepagent.cli.overview import Overview, overview_of
from deepagent.context.entries import Compacted, MessageLogged, Todo, TodosWritten, Usage, UsageReported
from deepagent.context.log import load
from deepagent.context.messages import (
    AssistantMessage,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    new_id,
    timestamp,
)
from deepagent.context.session import Session
from deepagent.context.storage import log_name


@pytest.fixture
def opened(workspace: Path) -> Iterator[Callable[..., Opened]]:
    """Opens agents in the workspace, on a script if no other model is named; they close with the test."""
    script = workspace.parent / "script.yaml"
    script.write_text("usage: estimate\nsteps: [{text: done, repeat: 9}]")
    made: list[Opened] = []

    def make(session: str | None = None, **flags: object) -> Opened:
        options = RunOptions(flags={"model": f"scripted:{script}", **flags})
        made.append(Opener(options).open(session=session))
        return made[-1]

    yield make
    for one in made:
        if one.agent is not None:
            one.agent.session.close()


def no_model(*, trust: bool = False) -> Opened:
    """The workspace, where no model is known."""
    return Opener(RunOptions(flags={}, trust=trust)).open()


def close(opened: Opened) -> None:
    """Gives a session back, as the end of its process would."""
    assert opened.agent
    opened.agent.session.close()


# ---------------------------------------------------------------- the place and the model


def test_a_place_without_anything(workspace: Path) -> None:
    assert overview_of(no_model()) == Overview(folder=str(workspace))


def test_the_home_folder_is_a_tilde(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = isolated / "src"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert overview_of(no_model()).folder == "~/src"
    monkeypatch.setenv("HOME", str(folder / "sr"))
    assert overview_of(no_model()).folder == str(folder), "a folder whose name only begins alike is not in it"


def test_branch_and_changes(workspace: Path) -> None:
    (workspace / "a").write_text("1")
    make_repository(workspace, "first")
    (workspace / "a").write_text("2")
    (workspace / "b").write_text("2")
    assert overview_of(no_model()).git == "main +1 ~1"
    (workspace / ".git" / "HEAD").write_text("broken")
    assert overview_of(no_model()).git == ""


def test_trust_is_what_the_settings_went_by(workspace: Path) -> None:
    (workspace / ".deepagents").mkdir()
    (workspace / ".deepagents" / "deepagent.toml").write_text("[context]\nkeep = 0.2\n")
    told = overview_of(no_model())
    assert not told.trusted
    assert any("not trusted" in notice for notice in told.notices)
    assert overview_of(no_model(trust=True)).trusted


def test_what_is_loaded_adds_up_to_the_gauge(workspace: Path, opened: Callable[..., Opened]) -> None:
    (workspace / "AGENTS.md").write_text("Always be kind.\n" * 40)
    for name, text in (("good", "---\nname: good\ndescription: does good\n---\n"), ("bad", "---\nname: bad\n---\n")):
        (workspace / ".deepagents" / "skills" / name).mkdir(parents=True)
        (workspace / ".deepagents" / "skills" / name / "SKILL.md").write_text(text)
    one = opened()
    assert one.agent
    told = overview_of(one, one.agent.session.view)
    names = [load.name for load in told.loaded]
    assert [names[0], *names[2:]] == ["prompt", "AGENTS.md", "1 skill", "margin"]
    assert re.fullmatch(r"\d+ tools", names[1])
    assert told.used == sum(load.tokens for load in told.loaded) == one.agent.gauge().used
    assert not told.exact
    assert any("bad/SKILL.md" in notice and "not loaded" in notice for notice in told.notices)


async def test_a_conversation_that_goes_on_is_loaded_too(opened: Callable[..., Opened]) -> None:
    one = opened()
    assert one.agent
    await one.agent.ainvoke("remember this " * 50)
    told = overview_of(one)
    assert told.exact
    assert [load.name for load in told.loaded][-2:] == ["conversation", "not accounted for"]
    assert told.used == sum(load.tokens for load in told.loaded) == one.agent.gauge().used
    assert told.last is None, "nothing else is offered"


HOSTED = {"OPENAI_BASE_URL": "https://models.invalid/v1"}
LOCAL = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
SONNET = r"per million \$3 in, 0.30 cached, 15 out.*"


@pytest.mark.parametrize(
    ("model", "environ", "told"),
    [
        ("", {}, ("window 200k (assumed)", "scripted, costs nothing")),
        ("anthropic/claude-sonnet-4-5", {"ANTHROPIC_API_KEY": "k"}, ("window 200k (table)", SONNET)),
        ("nobody-knows", HOSTED, ("window 200k (assumed)", "price unknown")),
        ("qwen", LOCAL, ("window 32k (assumed)", "served by this machine")),
    ],
)
def test_window_and_price_say_where_they_come_from(
    opened: Callable[..., Opened],
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    environ: dict[str, str],
    told: tuple[str, str],
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    found = overview_of(opened(**({"model": model} if model else {})))
    assert found.window == told[0]
    assert re.fullmatch(told[1], found.price)
    assert any("is not known" in notice for notice in found.notices) is ("assumed" in told[0])


def test_a_window_that_was_set_is_no_assumption(opened: Callable[..., Opened]) -> None:
    told = overview_of(opened(**{"context.window": 8_000}))
    assert told.window == "window 8.0k (set)"
    assert told.notices == ()


# ---------------------------------------------------------------- the last session


class Log:
    """A log that is written entry by entry, as a process would that is killed at the end."""

    def __init__(self, place: Opened) -> None:
        self.session = Session.start(place.workspace.storage(), workspace="/w", cwd="/w")

    def asks(self, text: str, *, synthetic: bool = False) -> None:
        self._say(UserMessage(id=new_id(), time=timestamp(), content=(Text(text=text),), synthetic=synthetic))

    def answers(self, *calls: str, used: int = 0, cost: float | None = None, stop: StopReason = "tool_calls") -> None:
        parts = tuple(ToolCall(id=call, name="read_file", arguments={"kind": "message"}) for call in calls)
        answer = AssistantMessage(
            id=new_id(), time=timestamp(), content=(Text(text="ok"), *parts), model="m", stop=stop
        )
        self._say(answer)
        if used:
            usage = Usage(input=used, output=5)
            header = self.session.header()
            self.session.append(
                UsageReported(
                    **header, model="m", usage=usage, cost=cost, purpose="turn", message=answer.id, counted=used
                )
            )

    def results(self, call: str, text: str) -> None:
        self._say(ToolMessage(id=new_id(), time=timestamp(), call_id=call, tool="x", content=(Text(text=text),)))

    def _say(self, message: UserMessage | AssistantMessage | ToolMessage) -> None:
        self.session.append(
            MessageLogged(id=message.id, time=message.time, parent=self.session.header()["parent"], message=message)
        )

    def compacts(self, archived: str = "x") -> None:
        text = f"summary {archived}"
        self.session.append(
            Compacted(
                **self.session.header(),
                first_kept=None,
                summary=text,
                by="harness",
                shown=text,
                requests=(),
                archive="a.md",
                archive_start=0,
                archive_end=0,
                tokens_before=9,
                tokens_after=1,
                messages=1,
                files_read=(),
                files_changed=(),
                reason="user",
            )
        )

    def plans(self, *done: bool) -> None:
        items = tuple(Todo(text="t", status="completed" if one else "pending") for one in done)
        self.session.append(TodosWritten(**self.session.header(), items=items))


async def test_a_session_that_ended_well(opened: Callable[..., Opened]) -> None:
    one = opened()
    assert one.agent
    await one.agent.ainvoke("say  something\nnice [/b] \x1b[2J")
    used = one.agent.gauge().used
    close(one)
    last = overview_of(opened()).last
    assert last
    assert last.id == one.agent.session.id
    assert last.title == "say something nice [/b] \x1b[2J"
    assert (last.ended, last.ago, last.todos, last.compactions) == ("done", "just now", 0, 0)
    assert last.sends == pytest.approx(used, rel=0.02)
    without_model = overview_of(no_model()).last
    assert without_model
    assert (without_model.id, without_model.sends_cost) == (last.id, None)


def test_a_session_that_was_killed_tells_where(opened: Callable[..., Opened]) -> None:
    log = Log(no_model())
    log.asks("split billing")
    log.answers("c1", used=1_000, cost=0.25)
    log.results("c1", "x" * 300)
    log.plans(True, True, False)
    log.answers("c2", used=2_000, cost=0.5)
    log.results("c2", "y" * 3_000)
    log.session.close()
    last = overview_of(opened()).last
    assert last
    assert last.ended == "stopped inside turn 3 (killed)"
    assert (last.todos_done, last.todos, last.cost) == (2, 3, 0.75)
    assert 3_000 <= last.sends <= 3_100, "the last report, and a thousand for what came since"


@pytest.mark.parametrize(
    ("calls", "ended"),
    [((), "done"), (("c1",), "stopped inside turn 1 (killed)"), (None, "stopped inside turn 1 (killed)")],
)
def test_where_a_log_may_break_off(opened: Callable[..., Opened], calls: tuple[str, ...] | None, ended: str) -> None:
    log = Log(no_model())
    log.asks("go")
    if calls is not None:
        log.answers(*calls)
    log.session.close()
    last = overview_of(opened()).last
    assert last
    assert last.ended == ended


def test_what_was_compacted_is_not_sent_again(opened: Callable[..., Opened]) -> None:
    log = Log(no_model())
    log.asks("go")
    log.answers(used=150_000)
    log.compacts("s" * 600)
    log.session.close()
    told = overview_of(opened())
    assert told.last
    assert told.last.compactions == 1
    assert told.last.cost is None, "one price was not known"
    head = sum(load.tokens for load in told.loaded[:-1])
    assert head + 150 < told.last.sends < head + 600


def test_only_what_can_be_gone_on_with_is_offered(opened: Callable[..., Opened]) -> None:
    place = no_model()
    storage = place.workspace.storage()
    older = Log(place)
    older.asks("older")
    older.session.close()
    nothing_asked = Log(place)
    nothing_asked.plans(False)
    nothing_asked.session.close()
    (storage.mirror / log_name("20991231-000000-dead")).write_bytes(b"no log\n")
    running = Log(place)
    running.asks("running")
    last = overview_of(opened()).last
    assert last
    assert last.id == older.session.id
    running.session.close()
    last = overview_of(opened()).last
    assert last
    assert last.id == running.session.id


def test_rows_say_what_the_whole_log_says(opened: Callable[..., Opened]) -> None:
    """The quick look at a log and the thorough one agree, whatever texts look like entries."""
    place = no_model()
    log = Log(place)
    log.asks("not the title", synthetic=True)
    log.asks('the title ,"kind":"message"}\n,"kind":"compacted"}\n')
    log.answers("c1")
    log.results("c1", '"kind":"message"}\n')
    log.compacts()
    log.session.close()
    path = place.workspace.mirror / log_name(log.session.id)
    path.write_bytes(path.read_bytes() + b'{"torn":')
    (row,) = session_rows(place.workspace)
    entries = load("x", path.read_bytes()).entries
    assert row["messages"] == sum(isinstance(entry, MessageLogged) for entry in entries) == 4
    assert row["compactions"] == 1
    assert row["title"] == 'the title ,"kind":"message"} ,"kind":"compacted"}'
    assert row["ended"] == "stopped"
    assert row["size"] == path.stat().st_size
    assert row["time"] == entries[-1].time


async def test_what_is_open_says_so_and_asking_disturbs_nobody(opened: Callable[..., Opened]) -> None:
    one = opened()
    assert one.agent
    await one.agent.ainvoke("go")
    assert [row["ended"] for row in session_rows(one.workspace)] == ["open"]
    close(one)
    assert [row["ended"] for row in session_rows(one.workspace)] == ["success"]
    again = opened(session=one.agent.session.id)
    assert again.agent
    assert again.agent.session.id == one.agent.session.id, "the look took no lock with it"


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(seconds=-5), "just now"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=14), "14 h ago"),
        (timedelta(hours=47), "47 h ago"),
        (timedelta(days=3), "3 days ago"),
        (timedelta(days=90), "2026-09-01"),
    ],
)
def test_how_long_ago(before: timedelta, words: str) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert ago((now - before).isoformat(), now) == words


@pytest.mark.parametrize("time", ["", "yesterday", "\x1b[2J"])
def test_what_is_no_time_is_nothing(time: str) -> None:
    assert ago(time) == ""


def test_a_time_without_a_zone_is_taken_for_ours() -> None:
    assert ago("2026-11-30T11:00:00", datetime(2026, 11, 30, 12, tzinfo=UTC)) == "1 h ago"


def test_a_title_that_is_cut_says_so(opened: Callable[..., Opened]) -> None:
    place = no_model()
    for text in ("x" * 60, "word " * 13):
        log = Log(place)
        log.asks(text)
        log.session.close()
    titles = {row["title"] for row in session_rows(place.workspace)}
    assert titles == {"x" * 60, "word " * 11 + "word…"}
