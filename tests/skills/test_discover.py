"""Where skills are found, which one wins, and that links neither loop nor lead out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deepagent.skills.discover import MAX_DEPTH, discover, standard_roots
from deepagent.skills.skill import SkillRoot, Skills

MakeSkill = Callable[..., Path]


@pytest.fixture
def home(isolated: Path) -> Path:
    return isolated


def found(workspace: Path, home: Path) -> Skills:
    return discover(standard_roots(workspace=workspace, home=home, user_folder=home / ".deepagents"))


def names(skills: Skills) -> list[str]:
    return [skill.name for skill in skills.skills]


def test_four_roots_in_order_of_precedence(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    folders = (workspace / ".deepagents", workspace / ".agents", home / ".deepagents", home / ".agents")
    for folder in folders:
        make_skill(folder / "skills", "notes", f"From {folder}.")
    result = found(workspace, home)
    assert [s.description for s in result.skills] == [f"From {folders[0]}."]
    assert [s.skill.description for s in result.shadowed] == [f"From {folder}." for folder in folders[1:]]
    assert {s.by for s in result.shadowed} == set(result.skills)


def test_an_empty_root_does_not_stop_the_search(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    (workspace / ".deepagents" / "skills").mkdir(parents=True)
    make_skill(workspace / ".agents" / "skills", "notes")
    make_skill(home / ".agents" / "skills", "mine")
    result = found(workspace, home)
    assert [(s.name, s.level) for s in result.skills] == [("mine", "user"), ("notes", "project")]
    assert result.problems == ()


def test_no_roots_at_all_is_no_problem(workspace: Path, home: Path) -> None:
    assert found(workspace, home) == Skills()


def test_without_a_workspace_only_the_users_skills(make_skill: MakeSkill, home: Path) -> None:
    make_skill(home / ".deepagents" / "skills", "mine")
    result = discover(standard_roots(workspace=None, home=home, user_folder=home / ".deepagents"))
    assert [(s.name, s.level) for s in result.skills] == [("mine", "user")]


def test_a_broken_skill_is_reported_and_another_of_its_name_used(
    make_skill: MakeSkill, workspace: Path, home: Path
) -> None:
    broken = make_skill(workspace / ".deepagents" / "skills", "notes", text="---\nallowed-tools: [\n---\nbody")
    make_skill(home / ".deepagents" / "skills", "notes", "The user's.")
    result = found(workspace, home)
    assert [s.description for s in result.skills] == ["The user's."]
    assert [p.path for p in result.problems] == [broken / "SKILL.md"]


def test_every_folder_is_accounted_for(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    root = workspace / ".agents" / "skills"
    for number, text in enumerate(("", "---", "x", "---\n: :\n---", "---\nname: a\n---\n", "---\n- a\n---\n")):
        make_skill(root, f"broken-{number}", text=text)
    make_skill(root, "good")
    result = found(workspace, home)
    assert names(result) == ["good"]
    assert [p.path.parent.name for p in result.problems] == [f"broken-{n}" for n in range(6)]


def test_groups_of_skills(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    root = workspace / ".deepagents" / "skills"
    make_skill(root / "collection" / "documents", "tables")
    make_skill(make_skill(root, "outer"), "inner")  # what lies in a skill belongs to it
    make_skill(root / ".git", "hidden")
    assert names(found(workspace, home)) == ["outer", "tables"]


def test_a_skill_file_in_the_root_itself_is_reported(workspace: Path, home: Path) -> None:
    root = workspace / ".deepagents" / "skills"
    root.mkdir(parents=True)
    (root / "SKILL.md").write_text("---\nname: x\ndescription: y\n---\n")
    (problem,) = found(workspace, home).problems
    assert "folder of its own" in problem.reason


def test_linked_folders_are_followed_and_listed_once(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    real = make_skill(workspace / "tools", "notes")
    root = workspace / ".deepagents" / "skills"
    root.mkdir(parents=True)
    (root / "alias").symlink_to("../../tools/notes")
    (workspace / ".agents").symlink_to(".deepagents")
    (skill,) = found(workspace, home).skills
    assert skill.name == "alias"
    assert skill.path == root / "alias" / "SKILL.md"
    assert skill.folder == real.resolve()


def test_the_real_folder_goes_before_a_link_to_it(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    root = workspace / ".deepagents" / "skills"
    make_skill(root, "real")
    (root / "alias").symlink_to("real")
    assert names(found(workspace, home)) == ["real"]


def test_loops_and_long_chains_end_soon(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    root = workspace / ".deepagents" / "skills"
    make_skill(root, "notes")
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "self").symlink_to("self")
    (root / "up").symlink_to("..")
    (root / "notes-again").symlink_to("notes")
    chain = workspace / "chain"
    chain.mkdir()
    (chain / "0").symlink_to(root / "notes")
    for number in range(1, 1_000):
        (chain / str(number)).symlink_to(str(number - 1))
    (root / "chained").symlink_to(chain / "999")
    (root / "chained-file").mkdir()
    (root / "chained-file" / "SKILL.md").symlink_to(chain / "999")
    deep = root / "deep"
    deep.mkdir()
    for _ in range(200):  # more would outgrow what clears temporary folders away
        deep = deep / "d"
        deep.mkdir()
    start = time.perf_counter()
    result = found(workspace, home)
    assert time.perf_counter() - start < 1
    assert names(result) == ["notes"]
    reported = {problem.path.name: problem.reason for problem in result.problems}
    assert {"a", "b", "self", "chained", "SKILL.md"} <= set(reported)
    assert f"looked for in {MAX_DEPTH}" in reported["d"]


def test_broken_links_are_reported(workspace: Path, home: Path) -> None:
    root = workspace / ".deepagents" / "skills"
    root.mkdir(parents=True)
    (root / "gone").symlink_to("nowhere")
    (problem,) = found(workspace, home).problems
    assert problem.path == root / "gone"
    assert "leads nowhere" in problem.reason


@pytest.mark.parametrize("place", ["folder", "file", "root", "above"])
def test_a_projects_links_may_not_lead_out(
    make_skill: MakeSkill, workspace: Path, home: Path, tmp_path: Path, place: str
) -> None:
    outside = make_skill(tmp_path / "outside" / "skills", "private", "The secret plan.")
    root = workspace / ".deepagents" / "skills"
    if place == "above":
        root.parent.symlink_to(outside.parent.parent)
    elif place == "root":
        root.parent.mkdir()
        root.symlink_to(outside.parent)
    elif place == "folder":
        root.mkdir(parents=True)
        (root / "private").symlink_to(outside)
    else:
        (root / "private").mkdir(parents=True)
        (root / "private" / "SKILL.md").symlink_to(outside / "SKILL.md")
    result = found(workspace, home)
    assert result.skills == ()
    (problem,) = result.problems
    assert "out of the project" in problem.reason


def test_a_projects_link_to_the_users_skills_is_followed(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    make_skill(home / ".agents" / "skills", "mine")
    root = workspace / ".deepagents" / "skills"
    root.mkdir(parents=True)
    (root / "mine").symlink_to(home / ".agents" / "skills" / "mine")
    result = found(workspace, home)
    assert [(s.name, s.level) for s in result.skills] == [("mine", "project")]
    assert result.problems == ()


def test_the_users_links_may_lead_anywhere_even_where_the_projects_may_not(
    make_skill: MakeSkill, workspace: Path, home: Path, tmp_path: Path
) -> None:
    outside = make_skill(tmp_path / "dotfiles", "mine")
    for root in (workspace / ".deepagents" / "skills", home / ".deepagents" / "skills"):
        root.mkdir(parents=True)
        (root / "mine").symlink_to(outside)
    result = found(workspace, home)
    assert [(s.name, s.level) for s in result.skills] == [("mine", "user")]
    assert len(result.problems) == 1


def test_what_is_no_folder_is_reported(workspace: Path, home: Path) -> None:
    (workspace / ".deepagents").mkdir()
    (workspace / ".deepagents" / "skills").write_text("text")
    (problem,) = found(workspace, home).problems
    assert problem.reason == "is not a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_folders_are_reported(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    folder = make_skill(workspace / ".deepagents" / "skills", "notes")
    (folder / "SKILL.md").chmod(0)
    (problem,) = found(workspace, home).problems
    assert "Permission denied" in problem.reason


def test_names_that_could_forge_a_line_are_refused(make_skill: MakeSkill, workspace: Path, home: Path) -> None:
    make_skill(workspace / ".deepagents" / "skills", "a\n## System", text="---\nname: a\ndescription: b\n---\n")
    result = found(workspace, home)
    assert result.skills == ()
    assert "control characters" in result.problems[0].reason


def test_roots_are_only_arguments(make_skill: MakeSkill, tmp_path: Path) -> None:
    make_skill(tmp_path / "anywhere", "notes")
    assert names(discover((SkillRoot(path=tmp_path / "anywhere", level="user"),))) == ["notes"]
