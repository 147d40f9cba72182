"""What starting the program loads: a person who asks for the version must not wait for libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"textual", "litellm", "tiktoken", "httpx", "git", "tree_sitter", "tree_sitter_bash"}

PROBE = """
import sys
sys.argv = ["deepagent", *sys.argv[1:]]
from deepagent.cli.main import main
try:
    main()
except SystemExit as ended:
    code = ended.code
else:
    code = 0
print(code or 0, *sorted(sys.modules), file=sys.stderr)
"""


def loaded(*arguments: str, cwd: Path) -> tuple[str, set[str]]:
    """What the program printed, and the modules that it had loaded when it ended well."""
    command = [sys.executable, "-W", "error", "-c", PROBE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return done.stdout, set(modules)


@pytest.mark.parametrize(
    ("flag", "forbidden"), [("--version", HEAVY | {"typer", "click", "pydantic"}), ("--help", HEAVY)]
)
def test_no_heavy_library_is_loaded_for(flag: str, forbidden: set[str], tmp_path: Path) -> None:
    output, modules = loaded(flag, cwd=tmp_path)
    assert "deepagent" in output
    assert forbidden & modules == set()


def test_version_is_that_of_the_package(tmp_path: Path) -> None:
    import deepagent

    output, _ = loaded("--version", cwd=tmp_path)
    assert output.split() == ["deepagent", deepagent.__version__]


def test_importing_the_package_loads_nothing_else_of_it(tmp_path: Path) -> None:
    code = "import sys, deepagent; print(*(name for name in sys.modules if name.startswith('deepagent.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == []


def test_the_first_frame_waits_for_nothing_but_textual(tmp_path: Path) -> None:
    code = "import sys, deepagent.cli.run, deepagent.cli.tui.launch; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    late = {"typer", "markdown_it", "pygments", "pydantic", "yaml", "litellm", "tiktoken", "httpx", "git"}
    late |= {"tree_sitter_bash"}
    assert late & set(done.stdout.split()) == set()


def test_the_grammar_of_the_shell_waits_for_the_first_line(tmp_path: Path) -> None:
    code = """
import sys
import deepagent.agent.build
from deepagent.agent.approvals.rules import parse_rules
parse_rules(["execute(ls *)"])
print("tree_sitter" in sys.modules)
from deepagent.agent.approvals.shell import split
split("ls")
print("tree_sitter" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["False", "True"]
