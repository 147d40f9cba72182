"""Sub-agents from files: what is understood, what is reported, and what a project may not do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from deepagent.agent.config import LimitSettings
from deepagent.agent.subagents.files import find_subagents
from stage import Stage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project" / ".deepagents" / "agents"
    made.mkdir(parents=True)
    return made


def found(folder: Path) -> tuple[dict[str, object], str]:
    result = find_subagents((folder,), within=folder.parents[1])
    return {agent.name: agent for agent in result.agents}, "\n".join(result.notices)


def test_all_fields(folder: Path) -> None:
    (folder / "reviewer.md").write_text(
        "---\nname: reviewer\ndescription: reviews: all of it\ntools: read_file, grep\n"
        "max_turns: 3\ntimeout: 2.5\n---\n\nLook first.\n"
    )
    (agent,) = find_subagents((folder,)).agents
    assert (agent.name, agent.description, agent.prompt) == ("reviewer", "reviews: all of it", "Look first.")
    assert agent.tools == ("read_file", "grep")
    assert agent.limits == LimitSettings(max_turns=3, timeout=2.5)


def test_windows_line_ends_and_a_mark_at_the_beginning(folder: Path) -> None:
    (folder / "a.md").write_bytes(b"\xef\xbb\xbf---\r\ndescription: x\r\ntools:\r\n- ls\r\n---\r\nBody")
    (agent,) = find_subagents((folder,)).agents
    assert (agent.description, agent.tools, agent.prompt) == ("x", ("ls",), "Body")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.md", "no front matter", "a.md:1 does not begin with front matter"),
        ("a.md", "---\nname: a\n---\n", "has no description"),
        ("a.md", "---\ndescription: x\ntools: 7\n---\n", "has tools that are no list of names"),
        ("a.md", "---\ndescription: x\nmax_turns: many\n---\n", "limits.max_turns"),
        ("a.md", "---\ndescription: x\nmax_turns: -1\n---\n", "limits.max_turns"),
        ("A B.md", "---\ndescription: x\n---\n", "has a name that is taken or breaks the rule"),
        ("general-purpose.md", "---\ndescription: x\n---\n", "has a name that is taken or breaks the rule"),
    ],
)
def test_what_cannot_be_understood_is_reported_and_not_there(folder: Path, name: str, text: str, reason: str) -> None:
    (folder / name).write_text(text)
    agents, notices = found(folder)
    assert not agents
    assert reason in notices
    assert "this sub-agent is not there" in notices


def test_a_link_out_of_the_project_and_a_pipe(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("---\ndescription: x\n---\n")
    (folder / "linked.md").symlink_to(tmp_path / "outside.md")
    (folder / "gone.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(folder / "pipe.md")
    agents, notices = found(folder)
    assert not agents
    assert "linked.md is a link out of the project" in notices
    assert "gone.md cannot be used" in notices
    assert "pipe.md is not a regular file" in notices
    (agent,) = find_subagents((folder,)).agents  # a user's own folder may link anywhere
    assert agent.name == "linked"


def test_a_project_chooses_no_model(folder: Path) -> None:
    (folder / "a.md").write_text("---\ndescription: x\nmodel: openai/other\nnonsense: 1\n---\n")
    (theirs,) = find_subagents((folder,), within=folder.parents[1]).agents
    (own,) = find_subagents((folder,)).agents
    assert (theirs.model, own.model) == (None, "openai/other")
    assert "names a model, which only sub-agents in your own folder may" in found(folder)[1]
    assert "has a field 'nonsense' that means nothing here" in found(folder)[1]


async def test_the_projects_wins_and_has_no_more_than_its_tools(
    stage: Callable[..., Stage], isolated: Path, tmp_path: Path
) -> None:
    for place, description in ((isolated / ".deepagents", "the user's"), (tmp_path / "work" / ".deepagents", "ours")):
        (place / "agents").mkdir(parents=True)
        text = f"---\ndescription: {description}\ntools: ls\n---\nBe short."
        (place / "agents" / "looker.md").write_text(text)
    handed = {"calls": [{"name": "task", "arguments": {"prompt": "look", "agent": "looker"}}]}
    branches = [{"when": [{"where": "first", "contains": "look"}], "steps": [{"text": "Seen."}]}]
    play = stage(handed, {"text": "Done."}, script={"branches": branches})
    await play.run()
    first, child = play.requests[0], play.requests[1]
    (schema,) = [schema for schema in first.tools if schema.name == "task"]
    assert "- looker: ours" in schema.description
    assert "the user's" not in schema.description
    assert [schema.name for schema in child.tools] == ["ls"]
    assert "Be short." in child.system
