"""The rows of what fills the window: they add up, and say which reads are out of date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepagent.context.accounting import Row
from stage import Stage

Make = Callable[..., Stage]


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def row(play: Stage, name: str) -> Row:
    """The first row whose name begins so."""
    return next(row for row in play.agent.account().rows if row.name.startswith(name))


async def test_reads_say_how_often_and_how_many_are_stale(stage: Make) -> None:
    read = call("read_file", path="a.py")
    play = stage(
        read,
        call("edit_file", path="a.py", old_string="one", new_string="two"),
        read,
        read,
        call("read_file", path="b.py"),
        {"text": "Read."},
    )
    for name in ("a.py", "b.py"):
        (play.folder / name).write_text("one\n" + "words of some length\n" * 50)
    await play.run()
    files = row(play, "Files read")
    assert files.name == "Files read, 4"
    assert {part.name: part.note for part in files.parts} == {"a.py": "read 3×, 2 stale", "b.py": ""}
    assert sum(part.tokens for part in files.parts) == files.tokens
    account = play.agent.account()
    assert sum(one.tokens for one in account.rows) == account.used
    result = next(m for m in play.logged() if m.role == "tool" and m.log.get("path") == "b.py")
    play.agent.control.drop(result.id)
    assert next(p.note for p in row(play, "Files read").parts if p.name == "b.py").startswith("pointer, whole ")


async def test_memory_files_and_skills_have_rows_of_their_own(stage: Make) -> None:
    folder = stage({"text": "x"}).folder
    (folder / "AGENTS.md").write_text("Rules. " * 100)
    for name in ("lint", "deploy"):
        (folder / ".deepagents" / "skills" / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: How to {name}.\n---\n"
        (folder / ".deepagents" / "skills" / name / "SKILL.md").write_text(text)
    play = stage({"text": "Hello."})
    await play.run()
    memory, skills = row(play, "Memory"), row(play, "Skills")
    assert [part.name.rpartition("/")[2] for part in memory.parts] == ["AGENTS.md", "what is said about them"]
    assert {part.name for part in skills.parts} == {"lint", "deploy", "what is said about them"}
    for one in (memory, skills):
        assert sum(part.tokens for part in one.parts) == one.tokens
        assert all(part.tokens > 0 for part in one.parts)
