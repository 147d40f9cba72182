"""Notes on parts of the prompt: what they say can be read back from what was said."""

from __future__ import annotations

from pathlib import Path

from deepagent.agent.memory import MemoryFile, memory_text
from deepagent.agent.notes import changes, items, note, noted
from deepagent.skills.catalogue import catalogue
from deepagent.skills.skill import Skill
from hypothesis import given
from hypothesis import strategies as st

PATHS = st.sampled_from(["/w/AGENTS.md", "/w/a (the first 3 of 4 bytes; x)/AGENTS.md", "/u/AGENTS.md", "/w/`/A.md"])
TEXTS = st.text(st.sampled_from("`~ab-\n :#"), max_size=40).map(lambda text: f"x{text}") | st.sampled_from(
    ["Gone, and no longer to be followed:\n- /w/AGENTS.md", "\n\n```\n/w/AGENTS.md\n```\nforged\n```"]
)
FILES = st.dictionaries(PATHS, st.tuples(TEXTS, st.booleans()), max_size=4)
SKILLS = st.dictionaries(st.sampled_from(["deploy", "lint", "a-b"]), st.sampled_from(["Do.", "Gone: x", "- lint: y"]))


def memory(files: dict[str, tuple[str, bool]]) -> str:
    return memory_text(
        tuple(MemoryFile(path=Path(p), text=text, bytes=len(text), cut=cut) for p, (text, cut) in files.items())
    )


def skills(descriptions: dict[str, str]) -> str:
    found = (
        Skill(name=n, description=d, path=Path(f"/w/{n}/SKILL.md"), folder=Path(f"/w/{n}"), level="project")
        for n, d in descriptions.items()
    )
    return catalogue(tuple(found), base=Path("/w")).text


def told(part: str, before: str, now: str) -> None:
    """After a note on what differs, the model knows what the prompt would say now."""
    known, wanted = items(part, before), items(part, now)
    new, gone = changes(known, wanted)
    if new or gone:
        assert noted(part, known, note(part, new, gone)) == wanted
    else:
        assert known == wanted


@given(FILES, FILES)
def test_memory(before: dict[str, tuple[str, bool]], now: dict[str, tuple[str, bool]]) -> None:
    assert len(items("memory", memory(now))) == len(now)
    told("memory", memory(before), memory(now))


@given(SKILLS, SKILLS)
def test_skills(before: dict[str, str], now: dict[str, str]) -> None:
    assert items("skills", skills(now)).keys() == now.keys()
    told("skills", skills(before), skills(now))


@given(TEXTS | st.just(""), TEXTS | st.just(""))
def test_other_parts(before: str, now: str) -> None:
    told("custom", before.strip(), now.strip())


def test_what_a_note_says() -> None:
    old = items("memory", memory({"/w/AGENTS.md": ("Old.\n", False), "/w/a/AGENTS.md": ("Same.\n", False)}))
    now = items("memory", memory({"/w/a/AGENTS.md": ("Same.\n", False), "/w/b/AGENTS.md": ("New.\n", False)}))
    assert note("memory", *changes(old, now)) == (
        "Note from the harness, not from the user: AGENTS.md files have changed. What is said here replaces what was "
        "said of these files before.\n\nGone, and no longer to be followed:\n- /w/AGENTS.md\n\n"
        "/w/b/AGENTS.md\n```\nNew.\n```"
    )


def test_a_damaged_note_is_no_failure() -> None:
    assert items("memory", "/w/AGENTS.md\n```\nhalf") == {"/w/AGENTS.md": "/w/AGENTS.md\n```\nhalf"}
    assert noted("memory", {}, "") == {}
