"""The system prompt: its parts and their order, no hint for a tool that is absent, and a size that does not creep."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import get_args

import pytest
from deepagent.agent.config import PermissionMode
from deepagent.agent.prompt import Environment, build_prompt, environment_of, prompt_text
from deepagent.agent.workspace import find_workspace
from hypothesis import given
from hypothesis import strategies as st

TOOLS = (
    "ls",
    "read_file",
    "write_file",
    "edit_file",
    "glob",
    "grep",
    "execute",
    "write_todos",
    "compact_conversation",
)
ENVIRONMENT = Environment(workspace="/src/shop", cwd="/src/shop/api", platform="Linux", date="2026-11-30", git=True)


def text_for(
    *, tools: tuple[str, ...] = TOOLS, mode: PermissionMode = "default", environment: Environment = ENVIRONMENT
) -> str:
    return prompt_text(build_prompt(environment=environment, tools=tools, mode=mode, context=None))


def test_the_order_of_the_parts() -> None:
    parts = build_prompt(
        environment=ENVIRONMENT,
        tools=TOOLS,
        mode="default",
        context=None,
        custom="Custom.",
        memory="Memory.",
        skills="Skills.",
        subagents="Sub-agents.",
        middleware=(("limits", "Limits."), ("recall", "Recall.")),
    )
    expected = ["custom", "base", "planning", "memory", "skills", "files", "subagents", "limits", "recall", "approvals"]
    assert [part.name for part in parts] == expected
    assert prompt_text(parts).startswith("Custom.\n\nYou are deepagent")


def test_empty_parts_are_left_out() -> None:
    parts = build_prompt(environment=ENVIRONMENT, tools=(), mode="default", context=None, memory=" \n")
    assert [part.name for part in parts] == ["base", "files", "approvals"]


def test_parts_are_counted_as_they_are_sent() -> None:
    parts = build_prompt(environment=ENVIRONMENT, tools=TOOLS, mode="plan", context=None, custom="\n x \n")
    assert prompt_text(parts) == "\n\n".join(part.text for part in parts)
    assert all(part.text == part.text.strip() != "" for part in parts)


def test_our_own_words_stay_short() -> None:
    """At most 900 tokens by 4 characters each, which is more than a tokenizer counts for English prose."""
    for mode in get_args(PermissionMode):
        assert len(text_for(mode=mode)) < 3_600


@given(st.sets(st.sampled_from(TOOLS)))
def test_no_hint_names_a_tool_that_is_absent(present: set[str]) -> None:
    text = text_for(tools=tuple(present))
    for absent in set(TOOLS) - present - {"ls"}:
        named = re.search(rf"\b{absent}\b", text.replace("conversation_history", ""))
        alternatives = {"glob", "grep", "read_file"}  # one line names both of a pair if either is there
        assert named is None or (absent in alternatives and present & alternatives), f"{absent} in:\n{text}"


@given(st.sets(st.sampled_from(TOOLS)), st.sampled_from(get_args(PermissionMode)), st.booleans())
def test_no_condition_is_left_in_the_text(present: set[str], mode: PermissionMode, git: bool) -> None:
    environment = Environment(workspace="/w", cwd="/w", platform="Linux", date="2026-11-30", git=git)
    text = text_for(tools=tuple(present), mode=mode, environment=environment)
    assert "[if" not in text
    assert not re.search(r"^## .*\n*(\Z|^## )", text, re.MULTILINE), "a heading with nothing below it"


def test_what_the_model_is_told_of_its_place() -> None:
    text = text_for()
    for fact in ("/src/shop (a git repository)", "/src/shop/api", "Linux", "2026-11-30"):
        assert fact in text
    assert "Commit, push" in text
    outside = Environment(workspace="/w", cwd="/w", platform="Linux", date="2026-11-30", git=False)
    assert "/w (not a git repository)" in text_for(environment=outside)
    assert "Commit, push" not in text_for(environment=outside)


def test_the_facts_about_a_real_folder(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / "api").mkdir()
    environment = environment_of(find_workspace(workspace / "api", environ={}), date(2026, 11, 30))
    assert (environment.workspace, environment.cwd) == (str(workspace), str(workspace / "api"))
    assert (environment.git, environment.date, environment.data) == (True, "2026-11-30", ".deepagents")
    assert environment.platform in {"Linux", "macOS"}


def test_the_archive_is_named_where_it_really_lies() -> None:
    assert "`.deepagents/conversation_history/`" in text_for()
    elsewhere = Environment(workspace="/w", cwd="/w", platform="Linux", date="2026-11-30", git=False, data="/data/x")
    text = text_for(environment=elsewhere)
    assert "`/data/x/conversation_history/`" in text
    assert ".deepagents" not in text


def test_one_mode_at_a_time() -> None:
    texts = {mode: text_for(mode=mode) for mode in get_args(PermissionMode)}
    assert len(set(texts.values())) == 4
    assert [mode for mode, text in texts.items() if "Plan mode" in text] == ["plan"]
    assert all("When a call is denied" in text for text in texts.values())


def test_when_compacting_helps() -> None:
    text = text_for()
    assert "compact_conversation" in text
    for moment in ("new, unrelated task", "given its result", "finished subtask"):
        assert moment in text


@dataclass(frozen=True)
class Person:
    name: str


def test_parts_may_be_functions_of_the_runs_own_data() -> None:
    calls: list[str] = []

    def greet(person: Person) -> str:
        calls.append(person.name)
        return f"You work for {person.name}."

    parts = build_prompt(
        environment=ENVIRONMENT,
        tools=(),
        mode="default",
        context=Person(name="A"),
        custom=greet,
        middleware=(("policy", lambda person: f"Policy of {person.name}."),),
    )
    assert parts[0].text == "You work for A."
    assert parts[-2].text == "Policy of A."
    assert calls == ["A"]


def test_texts_from_outside_are_not_touched() -> None:
    """No second formatting pass: braces, our own conditions and paths in other people's words stay as they are."""
    odd = "{hash} {0} %s [if read_file] .deepagents/x\n[if nothing] - kept"
    elsewhere = Environment(workspace="/w", cwd="/w", platform="Linux", date="2026-11-30", git=False, data="/data")
    parts = build_prompt(
        environment=elsewhere, tools=TOOLS, mode="default", context=None, custom=odd, memory=odd, skills=odd
    )
    assert [part.text for part in parts if part.name in {"custom", "memory", "skills"}] == [odd] * 3


def test_lone_surrogates_cannot_break_the_request() -> None:
    parts = build_prompt(environment=ENVIRONMENT, tools=(), mode="default", context=None, custom="a\udcffb")
    parts[0].text.encode()


def test_skills_without_a_way_to_read_them_are_left_out() -> None:
    parts = build_prompt(environment=ENVIRONMENT, tools=("execute",), mode="default", context=None, skills="Skills.")
    assert "skills" not in [part.name for part in parts]


def test_two_parts_of_one_name_are_a_bug() -> None:
    with pytest.raises(ValueError, match="one name"):
        build_prompt(environment=ENVIRONMENT, tools=(), mode="default", context=None, middleware=(("memory", "x"),))


def test_the_same_facts_give_the_same_bytes() -> None:
    assert text_for(tools=TOOLS) == text_for(tools=tuple(reversed(TOOLS)))
