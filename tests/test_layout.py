"""The shape of the repository: whatever works in an editable install also has to be in a wheel, on any machine."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agent", "cli", "context", "skills")
OURS = (
    *PACKAGES,
    *(".ci", ".typing", "bench", "docs", "requirements", "scripts", "tests"),
    *(".deepagents/AGENTS.md", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md"),
    *("__init__.py", "__main__.py", "pyproject.toml"),
)


def sources(*folders: str) -> list[Path]:
    """The Python files in `folders` of the repository, but for data folders (a dash in the name)."""
    found = (path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(ROOT / path for path in found if not any("-" in part for part in path.parent.parts))


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the repository, without what tools leave behind and what people keep beside it."""
    for name in OURS:
        start = ROOT / name
        for path in [start] if start.is_file() else start.rglob("*"):
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8", errors="replace")


def imports(path: Path) -> Iterator[str]:
    """The absolute names that a file imports."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def test_package_list_names_every_folder_with_an_init_file() -> None:
    listed: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    inits = (path.parent.relative_to(ROOT) for path in sources(*PACKAGES) if path.name == "__init__.py")
    assert sorted(listed) == sorted(["deepagent", *(".".join(("deepagent", *path.parts)) for path in inits)])


def test_every_folder_with_sources_has_an_init_file() -> None:
    folders = {path.parent for path in sources(*PACKAGES)}
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()


def test_typing_links_lead_relatively_to_the_package() -> None:
    folder = ROOT / ".typing" / "deepagent"
    names = {*PACKAGES, "__init__.py", "__main__.py", "py.typed"}
    assert {path.name for path in folder.iterdir()} == names
    assert {name: str((folder / name).readlink()) for name in names} == {name: f"../../{name}" for name in names}
    assert all((folder / name).exists() for name in names)


def test_no_conftest_at_the_root_and_no_packages_among_the_tests() -> None:
    assert not (ROOT / "conftest.py").exists()
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_sources_import_their_own_package_relatively() -> None:
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources(*PACKAGES)
        for name in imports(path)
        if name.split(".")[0] in {"deepagent", *PACKAGES}
    }
    assert wrong == set()


def test_tests_import_the_package_by_its_name() -> None:
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("tests", "bench", "scripts")
        for name in imports(path)
        if name.split(".")[0] in PACKAGES
    }
    assert wrong == set()


FOREIGN = {
    "the host of a package registry": re.compile(
        r"pypi\.(?:org|python)|python[h]osted|npm[j]s|crates\.i[o]|(?:^|[\s\"'])--(?:extra-)?index[-]url|find[-]links"
    ),
    "a path of one machine": re.compile(r"(?<![\w.~*-])/(?:root|work|home/[a-z]+|Users/[A-Za-z]+)/[\w.]"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_no_file_names(what: str) -> None:
    found = [f"{path}: {hit.group()}" for path, text in texts() for hit in FOREIGN[what].finditer(text)]
    assert found == []


def test_links_in_documents_lead_to_files() -> None:
    broken = [
        f"{path}: {target}"
        for path, text in texts()
        if path.suffix == ".md" and path.parts[0] not in {"tests", *PACKAGES}
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)\s#]+)", text)
        if not (ROOT / path.parent / target).exists()
    ]
    assert broken == []


def test_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text() + (ROOT / "docs" / "decisions" / "README.md").read_text()
    pages = {path.name for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert {page for page in pages if f"{page})" not in index} == set()


def test_lists_agree_and_pin_every_package_by_hash() -> None:
    pins: dict[str, dict[str, str]] = {}
    for name in ("build", "run", "test"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        blocks = re.findall(r"^([\w.-]+)==(\S+)(.*(?:\n +.*)*)", text, re.MULTILINE)
        assert all("--hash=sha256:" in rest for _, _, rest in blocks)
        assert len(blocks) == len(re.findall(r"^[^\s#]", text, re.MULTILINE))
        pins[name] = {package: version for package, version, _ in blocks}
    assert pins["build"].items() | pins["run"].items() <= pins["test"].items()


def test_size_check_counts_code_without_docstrings(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "agent").mkdir()
    script = tmp_path / "scripts" / "sizes.py"
    script.write_bytes((ROOT / "scripts" / "sizes.py").read_bytes())
    line = "    x = 1\n"
    fits = 'def fits():\n    """A.\n\n    B.\n    """\n' + line * 59
    (tmp_path / "agent" / "a.py").write_text(fits + "async def long():\n" + line * 60)
    (tmp_path / "agent" / "b.py").write_text("x = 1\n" * 401)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line.split(";")[0] for line in done.stdout.splitlines()] == [
        "agent/a.py:65: long has 61 lines",
        "agent/b.py:1: 401 lines",
    ]


def test_set_up_refuses_an_interpreter_that_is_too_old_and_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "venv"
    script.write_bytes((ROOT / "scripts" / "venv").read_bytes())
    keepsake = tmp_path / ".venv" / "keepsake"
    keepsake.parent.mkdir()
    keepsake.touch()
    old = tmp_path / "python3.6"
    old.write_text('#!/bin/sh\ncase "$2" in *exit*) exit 1 ;; *) echo 3.6 ;; esac\n')
    old.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "PYTHON": str(old)}
    done = subprocess.run(["sh", script, "test"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert f"needs Python 3.11 or newer; {old} is 3.6" in done.stderr
    assert keepsake.exists()
