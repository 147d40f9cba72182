"""Front matter as people really write it: it loads, or it is reported with file, line and reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from deepagent.skills.read import MAX_FILE, one_line, read_skill
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MakeSkill = Callable[..., Path]

LOADS = {
    "plain": (b"---\nname: s\ndescription: Makes notes.\n---\nbody\n", "Makes notes."),
    "byte order mark": (b"\xef\xbb\xbf---\nname: s\ndescription: Makes notes.\n---\nbody\n", "Makes notes."),
    "windows line ends": (b"---\r\nname: s\r\ndescription: Makes notes.\r\n---\r\nbody\r\n", "Makes notes."),
    "ends after the dashes": (b"---\nname: s\ndescription: Makes notes.\n---", "Makes notes."),
    "blanks after the dashes": (b"---  \nname: s\ndescription: Makes notes.\n--- \t\nbody", "Makes notes."),
    "colon": (b"---\nname: s\ndescription: Use when: notes are due\n---\n", "Use when: notes are due"),
    "colon and apostrophe": (b"---\nname: s\ndescription: The user's way: notes\n---\n", "The user's way: notes"),
    "colon, more lines": (b"---\nname: s\ndescription: Use when: notes\n  are due\n---\n", "Use when: notes are due"),
    "colon in a windows file": (b"---\r\nname: s\r\ndescription: Use when: notes\r\n---\r\n", "Use when: notes"),
    "colon beside a quoted name": (b"---\nname: 's'\ndescription: Use: notes\n---\n", "Use: notes"),
    "starts with a quote": (b'---\nname: s\ndescription: "Notes" when: due\n---\n', '"Notes" when: due'),
    "starts with a bracket": (b"---\nname: s\ndescription: [beta] notes\n---\n", "[beta] notes"),
    "starts with an at sign": (b"---\nname: s\ndescription: @notes\n---\n", "@notes"),
    "folded block": (b"---\nname: s\ndescription: >\n  Makes: many\n  notes.\n---\n", "Makes: many notes."),
    "dashes inside a block": (b"---\nname: s\ndescription: |\n  one\n  ---\n  two\n---\n", "one --- two"),
    "escaped surrogate": (b'---\nname: s\ndescription: "a \\u202e b\\x07"\n---\n', "a b"),
    "umlauts": ("---\nname: s\ndescription: Schöne Grüße 日本\n---\n".encode(), "Schöne Grüße 日本"),
    "unknown fields": (b"---\nname: s\ndescription: Notes.\nallowed-tools: [a]\nx: {y: 1}\n---\n", "Notes."),
}

BROKEN = {
    "no front matter": (b"# Title\n", 1, "does not begin with front matter"),
    "empty file": (b"", 1, "does not begin with front matter"),
    "never closed": (b"---\nname: s\ndescription: x\nbody\n", 1, "no line `---` closes"),
    "tab indent": (b"---\nname: s\nmeta:\n\tkey: 1\ndescription: x\n---\n", 4, "no YAML"),
    "open bracket": (b"---\nname: s\ndescription: x\nallowed-tools: [a, b\n---\n", 5, "no YAML"),
    "restriction with a colon": (b"---\nname: s\ndescription: x\nallowed-tools: a: b\n---\n", 4, "no YAML"),
    "no fields": (b"---\njust words\n---\n", 2, "holds no fields"),
    "empty front matter": (b"---\n---\n", 2, "holds no fields"),
    "no description": (b"---\nname: s\n---\n", 3, "has no description"),
    "empty description": (b"---\nname: s\ndescription:\n---\n", 3, "has no description"),
    "blank description": (b"---\nname: s\ndescription: '  '\n---\n", 3, "has no description"),
    "list as description": (b"---\nname: s\ndescription: [a]\n---\n", 3, "is no text"),
    "impossible date": (b"---\nname: s\ndescription: x\nday: 2024-13-45\n---\n", 2, "no YAML"),
    "python object": (b"---\nname: s\ndescription: x\nm: !!python/object/apply:os.getcwd []\n---\n", 4, "no YAML"),
    "binary": (b"\x7fELF\x02\x01\x00\x00", 1, "NUL bytes"),
    "binary inside": (b"---\nname: s\ndescription: a\x00b\n---\n", 1, "NUL bytes"),
    "utf-16": ("---\nname: s\ndescription: x\n---\n".encode("utf-16"), 1, "NUL bytes"),
    "deep nesting": (b"---\nname: s\ndescription: x\na: " + b"[" * 50_000 + b"\n---\n", None, "no YAML"),
    "endless front matter": (b"---\nname: s\n" + b"# more\n" * 20_000, 1, "more than 65,536 bytes"),
}


@pytest.mark.parametrize(("content", "description"), LOADS.values(), ids=LOADS)
def test_front_matter_that_loads(make_skill: MakeSkill, tmp_path: Path, content: bytes, description: str) -> None:
    skill, problems = read_skill(make_skill(tmp_path, "s", text=content), "project")
    assert skill is not None
    assert (skill.name, skill.description, problems) == ("s", description, ())


@pytest.mark.parametrize(("content", "line", "reason"), BROKEN.values(), ids=BROKEN)
def test_front_matter_that_is_reported(
    make_skill: MakeSkill, tmp_path: Path, content: bytes, line: int | None, reason: str
) -> None:
    folder = make_skill(tmp_path, "s", text=content)
    skill, (problem,) = read_skill(folder, "project")
    assert skill is None
    assert not problem.loaded
    assert problem.path == folder / "SKILL.md"
    assert reason in problem.reason
    assert line is None or problem.line == line
    assert str(problem).endswith("; not loaded")


def test_another_name_than_the_folder_loads_under_the_folders(make_skill: MakeSkill, tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "notes", text="---\nname: other\ndescription: x\n---\n")
    skill, (problem,) = read_skill(folder, "user")
    assert skill is not None
    assert skill.name == "notes"
    assert problem.loaded
    assert "notes" in problem.reason


@pytest.mark.parametrize("name", ["My Notes", "a--b", "x" * 65, "_notes"])
def test_names_that_break_the_rule_load_with_a_notice(make_skill: MakeSkill, tmp_path: Path, name: str) -> None:
    skill, (problem,) = read_skill(make_skill(tmp_path, name), "user")
    assert skill is not None
    assert skill.name == name
    assert "breaks the rule" in problem.reason


def test_long_description_is_capped_with_a_notice(make_skill: MakeSkill, tmp_path: Path) -> None:
    skill, (problem,) = read_skill(make_skill(tmp_path, "s", "x" * 1_068), "user")
    assert skill is not None
    assert len(skill.description) == 1_024
    assert skill.description.endswith("x…")
    assert "1,068 characters" in problem.reason


def test_a_description_of_just_the_limit_is_left_alone(make_skill: MakeSkill, tmp_path: Path) -> None:
    skill, problems = read_skill(make_skill(tmp_path, "s", "x" * 1_024), "user")
    assert skill is not None
    assert (skill.description, problems) == ("x" * 1_024, ())


def test_other_encodings_load_with_a_notice(make_skill: MakeSkill, tmp_path: Path) -> None:
    skill, (problem,) = read_skill(make_skill(tmp_path, "s", text=b"---\nname: s\ndescription: caf\xe9\n---\n"), "user")
    assert skill is not None
    assert skill.description == "caf�"
    assert "not valid UTF-8" in problem.reason


def test_a_replacement_character_in_valid_utf8_is_no_problem(make_skill: MakeSkill, tmp_path: Path) -> None:
    skill, problems = read_skill(make_skill(tmp_path, "s", "a � b"), "user")
    assert skill is not None
    assert problems == ()


def test_the_body_is_not_read(make_skill: MakeSkill, tmp_path: Path) -> None:
    text = b"---\nname: s\ndescription: x\n---\n" + b"\x00\xff" * 100_000
    skill, problems = read_skill(make_skill(tmp_path, "s", text=text), "user")
    assert skill is not None
    assert problems == ()


def test_huge_files_are_reported(make_skill: MakeSkill, tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "s")
    os.truncate(folder / "SKILL.md", MAX_FILE + 1)
    skill, (problem,) = read_skill(folder, "user")
    assert skill is None
    assert "10,485,761 bytes" in problem.reason


def test_pipes_folders_and_missing_files_are_reported_at_once(tmp_path: Path) -> None:
    for name in ("pipe", "folder", "missing"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    (tmp_path / "folder" / "SKILL.md").mkdir()
    found = {name: read_skill(tmp_path / name, "user") for name in ("pipe", "folder", "missing")}
    assert [skill for skill, _ in found.values()] == [None] * 3
    assert [problems[0].reason for _, problems in found.values()] == [
        "is not a regular file",
        "is not a regular file",
        "cannot be read (No such file or directory)",
    ]


@pytest.mark.parametrize("secret", ["'hunter2secret: x", "key: 'a' hunter2secret: b: c", "@hunter2secret", "*hunter2"])
def test_no_reason_quotes_the_file(make_skill: MakeSkill, tmp_path: Path, secret: str) -> None:
    skill, (problem,) = read_skill(make_skill(tmp_path, "s", text=f"---\n{secret}\n---\n"), "project")
    assert skill is None
    assert "hunter2" not in str(problem)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.binary(max_size=200), st.text(max_size=80).map(lambda t: f"---\n{t}\n---\n".encode(errors="replace"))
    )
)
def test_any_bytes_load_or_are_reported(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "any"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_bytes(content)
    skill, problems = read_skill(folder, "project")
    assert (skill is not None) == all(problem.loaded for problem in problems)
    if skill is not None:
        assert skill.description == one_line(skill.description)
