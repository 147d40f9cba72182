"""The settings tree: frozen, checked, and every complaint names the key."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from deepagent.agent import config
from deepagent.agent.config import Settings, find_problems, flatten, nest, settings_from, user_folder
from deepagent.agent.errors import ConfigError


def test_defaults_are_those_of_the_design() -> None:
    flat = flatten(Settings())
    assert (flat["context.compact_at"], flat["context.trim_at"], flat["context.keep"]) == (0.85, 0.60, 0.10)
    assert flat["context.auto_compact"] is True
    assert flat["permissions.mode"] == "default"
    assert {flat[f"limits.{name}"] for name in ("max_turns", "max_tokens", "max_cost", "timeout")} == {None}


def test_flatten_and_nest_are_each_others_inverse() -> None:
    flat = flatten(Settings())
    assert settings_from(nest(flat)) == Settings()
    assert list(flatten(settings_from(nest(flat)))) == list(flat)


def test_values_reach_their_fields() -> None:
    settings = settings_from(
        {
            "model": "openai/x",
            "memory": ["a.md"],
            "context": {"window": 128_000, "keep": 0.2},
            "permissions": {"mode": "plan", "allow": ["execute(ls)"]},
            "limits": {"max_cost": 1},
        }
    )
    assert (settings.model, settings.memory) == ("openai/x", ("a.md",))
    assert (settings.context.window, settings.context.keep, settings.context.compact_at) == (128_000, 0.2, 0.85)
    assert (settings.permissions.mode, settings.permissions.allow) == ("plan", ("execute(ls)",))
    assert settings.limits.max_cost == 1.0


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().model = "x"  # pyright: ignore[reportAttributeAccessIssue]


WRONG: dict[str, tuple[dict[str, object], str, str]] = {
    "type": ({"model": 5}, "model", "valid string"),
    "literal": ({"permissions": {"mode": "yes"}}, "permissions.mode", "'default'"),
    "negative": ({"limits": {"max_turns": -1}}, "limits.max_turns", "greater than 0"),
    "not a number": ({"limits": {"timeout": float("nan")}}, "limits.timeout", "finite"),
    "true for a number": ({"limits": {"max_turns": True}}, "limits.max_turns", "true or false"),
    "out of range": ({"context": {"compact_at": 85}}, "context.compact_at", "between"),
    "window": ({"context": {"window": 10}}, "context.window", "at least 1000"),
    "not a list": ({"memory": "a.md"}, "memory", "tuple"),
    "item": ({"memory": ["a", 1]}, "memory.1", "valid string"),
    "not a table": ({"context": 5}, "context", ""),
    "unknown": ({"zebra": 1}, "zebra", "is no setting"),
    "unknown section": ({"zebra": {"model": "x"}}, "zebra", "is no setting"),
    "typo": ({"modle": "x"}, "modle", "did you mean model?"),
    "typo in a section": ({"context": {"compat_at": 1}}, "context.compat_at", "did you mean context.compact_at?"),
    "wrong section": ({"compact_at": 0.5}, "compact_at", "did you mean context.compact_at?"),
}


@pytest.mark.parametrize(("data", "key", "reason"), WRONG.values(), ids=WRONG)
def test_complaints_name_the_key(data: dict[str, object], key: str, reason: str) -> None:
    (problem,) = find_problems(data)
    assert problem.key == key
    assert reason in problem.reason
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        settings_from(data)


def test_all_problems_at_once() -> None:
    data: dict[str, object] = {"modle": "x", "limits": {"max_turns": 0, "timeout": "soon"}}
    assert [p.key for p in find_problems(data)] == ["modle", "limits.max_turns", "limits.timeout"]


def test_every_setting_has_its_sentence() -> None:
    """Each field is followed by a docstring, and no two settings share a last name within a section."""
    tree = ast.parse(Path(config.__file__).read_text())
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name.endswith("Settings")):
        body = node.body
        for here, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(here, ast.AnnAssign):
                assert isinstance(after, ast.Expr), f"{node.name}: {ast.unparse(here)}"


def test_the_tree_holds_only_values_and_frozen_sections() -> None:
    for f in fields(Settings()):
        value = getattr(Settings(), f.name)
        if is_dataclass(value):
            assert cast(Any, value).__dataclass_params__.frozen


def test_the_users_folder(isolated: Path) -> None:
    assert user_folder({"HOME": str(isolated)}) == isolated / ".deepagents"
    assert user_folder({"DEEPAGENT_HOME": "/x/y"}) == Path("/x/y")
    assert user_folder({"DEEPAGENT_HOME": "~/y"}) == isolated / "y"


@pytest.mark.parametrize("module", ["config", "prompt", "memory", "credentials", "secrets", "local_servers"])
def test_imports_stay_light(module: str) -> None:
    heavy = {"yaml", "httpx", "litellm", "tiktoken", "textual", "git", "tomli_w", "typer", "openai"}
    code = f"import sys, deepagent.agent.{module}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
