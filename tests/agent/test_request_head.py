"""The head of each request stays the same, byte for byte, while memory, skills and modes change under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from deepagent.agent.events import Noticed
from deepagent.agent.model.quirks import profile_of
from deepagent.agent.model.types import ModelRequest
from deepagent.agent.model.wire import Encoder, Wire
from deepagent.context.entries import Rewound
from deepagent.context.messages import UserMessage, text_of, utc_now
from deepagent.context.storage import log_name
from stage import Stage

Make = Callable[..., "Stage"]
PROVIDERS = (("openai", "gpt-5"), ("", "mistral"), ("deepseek", "deepseek-chat"))
WORDS = "words and more words " * 60


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted call."""
    return {"name": name, "arguments": arguments}


def step(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted answer with one call."""
    return {"calls": [call(name, **arguments)]}


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def skill(folder: Path, name: str, description: str) -> None:
    put(folder / ".deepagents/skills" / name / "SKILL.md", f"---\nname: {name}\ndescription: {description}\n---\nDo.\n")


def bodies(requests: Sequence[ModelRequest], provider: str, model: str) -> list[bytes]:
    """What goes over the wire, made as a running agent makes it."""
    wire, encoder = Wire(model, profile_of(provider, model, "lean")), Encoder()
    return [encoder.encode(wire.body(request)) for request in requests]


def assert_grows(requests: Sequence[ModelRequest]) -> None:
    """Each request begins with the bytes of the one before."""
    for provider, model in PROVIDERS:
        for before, after in pairwise(bodies(requests, provider, model)):
            assert before.endswith(b"]}")
            assert after.startswith(before.removesuffix(b"]}"))


def notes(request: ModelRequest) -> list[str]:
    """The notes in a request."""
    return [text_of(m) for m in request.messages if isinstance(m, UserMessage) and m.part is not None]


def noticed(play: Stage) -> list[str]:
    return [event.text for event in play.events if isinstance(event, Noticed)]


def later(play: Stage, **delta: float) -> None:
    """Lets the session's clock go ahead."""

    def clock() -> datetime:
        return utc_now() + timedelta(**delta)

    play.agent.session.clock = clock


# Notes


async def test_five_nested_files_over_twenty_turns_change_no_byte_of_what_was_sent(stage: Make) -> None:
    folders = ("api", "api/v1", "web", "web/css", "db")
    reads = [step("read_file", path=f"{folders[n // 4]}/f{n}.py") for n in range(19)]
    play = stage(*reads, {"text": "All read."}, settings={"context": {"window": 200_000}})
    for number, folder in enumerate(folders):
        put(play.folder / folder / "AGENTS.md", f"Rule {number}: keep {folder} tidy.\n")
    for number in range(19):
        put(play.folder / folders[number // 4] / f"f{number}.py", f"x = {number}\n" * 20)
    play.agent.parts.counter.prepare()
    await play.run("look around")
    assert len(play.requests) == 20
    assert_grows(play.requests)
    told = [len(notes(request)) for request in play.requests]
    assert told == [0, *(n // 4 + 1 for n in range(19))]
    for number in range(5):
        assert sum(f"Rule {number}:" in text for text in notes(play.requests[-1])) == 1
        assert f"Rule {number}:" in notes(play.requests[4 * number + 1])[-1]
    assert len([line for line in noticed(play) if "AGENTS.md was found" in line]) == 5


async def test_an_edit_is_seen_on_the_very_next_call(stage: Make) -> None:
    play = stage(step("execute", command="echo Use spaces. > AGENTS.md"), {"text": "Yes."}, {"text": "Still."})
    put(play.folder / "AGENTS.md", "Use tabs.\n")
    await play.run()
    await play.run()
    first, second, third = play.requests
    assert "Use tabs." in first.system
    assert first.system == second.system == third.system
    (note,) = notes(second)
    assert second.messages[-1].role == "user"
    assert "Use spaces." in note
    assert "replaces what was said" in note
    assert notes(third) == [note]
    assert noticed(play) == ["AGENTS.md changed: the agent knows it from now on"]
    assert_grows(play.requests)


async def test_only_the_file_that_changed_is_told_of_and_one_that_is_gone(stage: Make) -> None:
    play = stage(
        step("execute", command="echo New. > pkg/AGENTS.md"),
        step("execute", command="rm AGENTS.md"),
        step("execute", command="echo Root again. > AGENTS.md"),
        {"text": "Done."},
        {"text": "Again."},
    )
    put(play.folder / "AGENTS.md", "The root.\n")
    put(play.folder / "pkg" / "AGENTS.md", "Old.\n")
    put(play.folder / "pkg" / "x.py", "x\n")
    await play.run()
    assert notes(play.requests[1]) == [], "a folder that no tool worked in"
    _, _, removed, back = play.requests
    (gone,) = notes(removed)
    assert f"no longer to be followed:\n- {play.folder / 'AGENTS.md'}" in gone
    assert "The root." not in gone
    assert "Root again." in notes(back)[-1]
    put(play.folder / "AGENTS.md", "Root again.\n")
    await play.run()
    assert len(notes(play.requests[-1])) == 2, "written anew, with the same words"


async def test_a_file_joins_with_the_first_touch_of_its_folder_and_stays_after_resume(stage: Make) -> None:
    play = stage(step("read_file", path="pkg/deep/x.py"), {"text": "a"}, {"text": "b"}, {"text": "c"})
    put(play.folder / "pkg" / "CLAUDE.md", "Mind the pkg.\n")
    put(play.folder / "pkg" / "deep" / "x.py", "x\n")
    await play.run()
    await play.reopen()
    await play.run()
    assert [len(notes(request)) for request in play.requests] == [0, 1, 1]
    assert_grows(play.requests)
    play.agent.session.sync()
    later(play, hours=1)
    put(play.folder / "pkg" / "CLAUDE.md", "Mind the pkg well.\n")
    await play.run()
    assert notes(play.requests[-1]) == []
    assert "Mind the pkg well." in play.requests[-1].system


async def test_skills_that_come_and_go(stage: Make) -> None:
    play = stage({"text": "a"}, {"text": "b"}, {"text": "c"})
    skill(play.folder, "deploy", "How to deploy.")
    skill(play.folder, "lint", "How to lint.")
    await play.run()
    skill(play.folder, "tests", "How to test.")
    await play.run()
    (play.folder / ".deepagents/skills/lint/SKILL.md").unlink()
    skill(play.folder, "deploy", "How to deploy well.")
    await play.run()
    first, second = notes(play.requests[-1])
    assert "- tests: How to test. (" in first
    assert "deploy" not in first
    assert "no longer to be followed:\n- lint\n" in second
    assert "- deploy: How to deploy well." in second
    assert "tests" not in second
    assert_grows(play.requests)
    assert [line.split(":")[0:2] for line in noticed(play)] == [
        ["skills changed", " tests"],
        ["skills changed", " deploy, lint"],
    ]


async def test_another_mode_is_told_of(stage: Make) -> None:
    play = stage({"text": "a"}, {"text": "b"}, {"text": "c"})
    await play.run()
    play.agent.set_mode("plan")
    await play.run()
    play.agent.set_mode("yolo")
    await play.run()
    plan, yolo = notes(play.requests[-1])
    assert "Plan mode: change nothing" in plan
    assert "Hardly anything is asked" in yolo
    assert_grows(play.requests)


async def test_a_prompt_made_for_each_run_is_told_anew_only_where_it_differs(stage: Make) -> None:
    today = ["One."]

    def custom(_: object) -> str:
        return today[-1]

    play = stage({"text": "a"}, {"text": "b"}, {"text": "c"}, prompt=custom)
    for _ in range(2):
        await play.run()
    assert [notes(request) for request in play.requests] == [[], []]
    today.append("Two.")
    await play.run()
    (note,) = notes(play.requests[-1])
    assert note.endswith("Two.")


async def test_notes_and_prompt_add_up_in_the_account(stage: Make) -> None:
    play = stage({"text": "a"}, {"text": "b"})
    await play.run()
    put(play.folder / "AGENTS.md", "Use spaces. " * 40)
    await play.run()
    account = play.agent.account()
    assert sum(row.tokens for row in account.rows) == account.used == play.agent.gauge().used
    (row,) = [row for row in account.rows if row.name == "Notes on memory and skills, 1"]
    assert row.tokens > 80


async def test_secrets_in_notes_are_masked(stage: Make) -> None:
    environ = {"OPENAI_API_KEY": "sk-very-secret-value"}
    play = stage({"text": "a"}, {"text": "b"}, environ=environ)
    await play.run()
    put(play.folder / "AGENTS.md", "The key is sk-very-secret-value.\n")
    await play.run()
    assert "[secret OPENAI_API_KEY]" in notes(play.requests[-1])[0]
    assert b"sk-very-secret" not in play.on_disk()


# Folding in


async def test_a_compaction_folds_notes_into_the_prompt(stage: Make) -> None:
    play = stage(*({"text": f"{n} {WORDS}"} for n in range(6)), {"text": "A summary."}, {"text": "x", "repeat": 5})
    await play.run("0")
    put(play.folder / "AGENTS.md", "Use spaces.\n")
    for number in range(1, 6):
        await play.run(str(number))
    assert len(notes(play.requests[-1])) == 1
    assert "Use spaces." not in play.requests[-1].system
    async for _ in play.agent.compact():
        pass
    await play.run("after")
    await play.run("and after")
    assert "Use spaces." in play.requests[-2].system
    assert notes(play.requests[-2]) == []
    assert_grows(play.requests[-2:])


@pytest.mark.parametrize(("pause", "folded"), [({"seconds": 10}, False), ({"minutes": 6}, True)])
async def test_after_a_pause_that_no_cache_outlives_the_prompt_is_new(
    stage: Make, pause: dict[str, float], folded: bool
) -> None:
    play = stage({"text": "a"}, {"text": "b"})
    await play.run()
    put(play.folder / "AGENTS.md", "Use spaces.\n")
    later(play, **pause)
    await play.run()
    assert ("Use spaces." in play.requests[-1].system) is folded
    assert bool(notes(play.requests[-1])) is not folded


async def test_notes_that_take_more_room_than_memory_may_are_folded_in(stage: Make) -> None:
    play = stage({"text": "x", "repeat": 9}, settings={"context": {"window": 20_000}})
    await play.run()
    for number in range(4):
        put(play.folder / "AGENTS.md", f"Version {number}. {WORDS * 6}\n")
        await play.run()
    assert [len(notes(request)) for request in play.requests] == [0, 1, 2, 0, 1]
    assert "Version 2." in play.requests[3].system
    counter = play.agent.parts.counter
    assert counter.text(play.requests[3].system) < counter.text(play.requests[0].system) + 20_000 // 4


async def test_what_was_rewound_is_told_again(stage: Make) -> None:
    play = stage({"text": "a"}, {"text": "b"}, {"text": "c"})
    await play.run("one")
    session = play.agent.session
    end = session.entries[-1].id
    put(play.folder / "AGENTS.md", "Use spaces.\n")
    await play.run("two")
    assert len(notes(play.requests[-1])) == 1
    session.append(Rewound(**session.header(), to=end))
    await play.run("three")
    assert "Use spaces." in play.requests[-1].system, "the prefix has changed anyway"
    assert notes(play.requests[-1]) == []
    assert "two" not in str(play.requests[-1].messages)


# Opening again


async def test_ten_seconds_later_the_same_bytes(stage: Make) -> None:
    play = stage(step("read_file", path="pkg/x.py"), {"text": "a"}, {"text": "b"}, {"text": "c"})
    put(play.folder / "AGENTS.md", "The root.\n")
    put(play.folder / "pkg" / "AGENTS.md", "The pkg.\n")
    put(play.folder / "pkg" / "x.py", "x\n")
    skill(play.folder, "deploy", "How to deploy.")
    await play.run()
    put(play.folder / "AGENTS.md", "The new root.\n")
    await play.run()
    before = play.agent.account()
    await play.reopen()
    later(play, seconds=10)
    play.agent.parts.counter.prepare()
    assert play.agent.account().rows[:-1] == before.rows[:-1]
    await play.run()
    assert_grows(play.requests)
    assert (play.requests[-1].system, play.requests[-1].tools) == (play.requests[0].system, play.requests[0].tools)


async def test_what_changed_while_the_session_was_closed_is_told_before_the_prompt(stage: Make) -> None:
    play = stage({"text": "a"}, {"text": "b"})
    await play.run("one")
    put(play.folder / "AGENTS.md", "Use spaces.\n")
    await play.reopen()
    await play.run("two")
    texts = [text_of(m) for m in play.requests[-1].messages if isinstance(m, UserMessage)]
    assert texts[0] == "one"
    assert "Use spaces." in texts[1]
    assert texts[2] == "two"
    assert_grows(play.requests)


async def test_after_a_crash_in_a_call_the_note_waits_for_the_prompt(stage: Make) -> None:
    """The call has no result; nothing but the user's own words closes it."""
    play = stage(step("ls"), {"text": "a"}, {"text": "b"})
    await play.run("one")
    await play.close()
    path = play.agent.session.storage.path(log_name(play.agent.session.id))
    lines = path.read_text().splitlines(keepends=True)
    crash = next(n for n, line in enumerate(lines) if '"role":"tool"' in line)
    path.write_text("".join(lines[:crash]))
    put(play.folder / "AGENTS.md", "Use spaces.\n")
    await play.reopen()
    assert play.agent.session.open_calls()
    await play.run("two")
    roles = [message.role for message in play.requests[-1].messages]
    assert roles == ["user", "assistant", "tool", "user", "user"]
    assert "Use spaces." in text_of(play.requests[-1].messages[-1])  # pyright: ignore[reportArgumentType] - a user's


async def test_the_prompt_of_another_version_of_ours_is_taken_over_whole(stage: Make) -> None:
    """As after an update: no note, as the whole prompt reads differently."""
    play = stage({"text": "a"}, {"text": "b"}, settings={"context": {"window": 16_000}})
    await play.run()
    await play.close()
    other = stage(
        {"text": "b"}, folder=play.folder, session=play.agent.session.id, settings={"context": {"window": 64_000}}
    )
    await other.run()
    assert notes(other.requests[-1]) == []
    assert len(other.requests[-1].system) > len(play.requests[0].system) * 1.5
    assert "compact_conversation" in other.requests[-1].system
    assert "compact_conversation" in [tool.name for tool in other.requests[-1].tools]
