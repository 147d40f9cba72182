"""What the prompt says of the skills, and that it keeps to its budget."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from deepagent.skills.catalogue import LIMIT, Catalogue, catalogue
from deepagent.skills.discover import discover
from deepagent.skills.skill import Skill, SkillRoot

MakeSkill = Callable[..., Path]


def skill(name: str, description: str, folder: Path) -> Skill:
    return Skill(
        name=name, description=description, path=folder / name / "SKILL.md", folder=folder / name, level="project"
    )


def test_a_line_for_each_skill(tmp_path: Path) -> None:
    skills = (skill("notes", "Writes notes.", tmp_path / "skills"), skill("tables", "Makes tables.", Path("/far")))
    text = catalogue(skills, base=tmp_path).text
    assert "read_file" in text
    assert text.splitlines()[-2:] == [
        "- notes: Writes notes. (skills/notes/SKILL.md)",
        "- tables: Makes tables. (/far/tables/SKILL.md)",
    ]


def test_no_skills_no_text(tmp_path: Path) -> None:
    assert catalogue((), base=tmp_path) == Catalogue(text="")


def test_five_hundred_long_skills_keep_to_the_budget(make_skill: MakeSkill, tmp_path: Path) -> None:
    for number in range(500):
        make_skill(tmp_path / "skills", f"skill-{number:03}", "word " * 1_000)
    result = discover((SkillRoot(path=tmp_path / "skills", level="project"),))
    assert len(result.skills) == 500
    shown = catalogue(result.skills, base=tmp_path)
    lines = [line for line in shown.text.splitlines() if line.startswith("- skill-")]
    assert len(shown.text) <= LIMIT
    assert len(lines) + shown.hidden == 500
    assert len(lines) > 40
    assert f"{shown.hidden} more are not shown" in shown.text
    assert str(tmp_path / "skills") in shown.text


def test_descriptions_shrink_before_skills_are_hidden(tmp_path: Path) -> None:
    skills = tuple(skill(f"s{n}", "word " * 200, tmp_path) for n in range(30))
    shown = catalogue(skills, base=tmp_path)
    assert (shown.hidden, shown.shortened) == (0, True)
    assert len(shown.text) <= LIMIT
    assert all(f"- s{n}: word" in shown.text for n in range(30))


@pytest.mark.parametrize("limit", [0, 300, 500, 700, 1_000, 3_000])
def test_any_budget_says_how_many_are_hidden(tmp_path: Path, limit: int) -> None:
    skills = tuple(skill(f"s{n}", "word " * 200, tmp_path) for n in range(30))
    shown = catalogue(skills, base=tmp_path, limit=limit)
    assert shown.text.count("\n- s") == 30 - shown.hidden
    assert f"{shown.hidden} more" in shown.text
    assert len(shown.text) <= max(limit, 500)


def test_a_run_without_skills_does_not_load_yaml(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from deepagent.skills.catalogue import catalogue
from deepagent.skills.discover import discover, standard_roots
home = Path({str(tmp_path)!r})
found = discover(standard_roots(workspace=home / "w", home=home, user_folder=home / ".deepagents"))
assert catalogue(found.skills, base=home).text == ""
print(sorted({{"yaml", "pydantic", "asyncio"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
