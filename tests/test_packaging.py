"""The wheel: what it holds, what it leaves out, and that it works where the repository is not at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agent", "cli", "context", "skills")
BESIDE = (*PACKAGES, "bench", "docs", "requirements", "scripts", "tests")
"""Folders copied before the build: those that belong in the wheel, and those that must stay out."""


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that has to succeed, in an environment that does not lead to this repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the repository, so that the build leaves nothing behind here."""
    copy = tmp_path_factory.mktemp("source")
    for name in BESIDE:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    options = ("--wheel", "--no-isolation", "--skip-dependency-check", "--outdir", copy / "dist")
    run(sys.executable, "-m", "build", *options, copy, cwd=copy)
    (built,) = (copy / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    """The files in the wheel."""
    return set(ZipFile(wheel).namelist())


def test_wheel_holds_every_source_prompt_and_marker(names: set[str]) -> None:
    files = (path for folder in PACKAGES for path in (ROOT / folder).rglob("*") if path.is_file())
    expected = {f"deepagent/{path.relative_to(ROOT)}" for path in files if "__pycache__" not in path.parts}
    expected |= {"deepagent/__init__.py", "deepagent/__main__.py", "deepagent/py.typed"}
    assert {name for name in names if name.startswith("deepagent/")} == expected


def test_wheel_holds_nothing_else_but_its_own_description(names: set[str]) -> None:
    rest = {name.split("/", 1)[1] for name in names if not name.startswith("deepagent/")}
    assert rest == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}


def test_description_of_the_wheel(wheel: Path, names: set[str]) -> None:
    (metadata,) = (name for name in names if name.endswith("/METADATA"))
    described = message_from_bytes(ZipFile(wheel).read(metadata))
    assert described["License-Expression"] == "MIT"
    assert described["Requires-Python"] == ">=3.11"
    assert str(described.get_payload()).startswith("# deepagent")


def test_installed_wheel_works_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, wheel, cwd=tmp_path)
    # -S leaves out the hook that leads to the repository; the dependencies come back by hand.
    code = (
        f"import sys; sys.path[:0] = [{str(target)!r}]; sys.path += {_site_packages()!r}\n"
        "import deepagent, deepagent.context.entries; print(deepagent.__file__)"
    )
    assert run(sys.executable, "-S", "-c", code, cwd=tmp_path).strip() == str(target / "deepagent" / "__init__.py")
    assert (target / "bin" / "deepagent").exists()


def _site_packages() -> list[str]:
    """Where the dependencies lie."""
    return [path for path in sys.path if path.endswith("site-packages")]
