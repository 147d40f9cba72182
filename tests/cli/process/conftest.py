"""Fixtures of the process tests: the program, in a repository or in a plain folder, and small disks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from process_program import Program


@pytest.fixture
def program(tmp_path: Path, isolated: Path) -> Iterator[Program]:
    """The program in a repository with one commit. What it leaves running is ended."""
    repo, scripts = tmp_path / "repo", tmp_path / "scripts"
    repo.mkdir()
    scripts.mkdir()
    (tmp_path / "without" / "litellm").mkdir(parents=True)
    (tmp_path / "without" / "litellm" / "__init__.py").touch()
    environ = {**os.environ, "HOME": str(isolated), "LC_ALL": "C.UTF-8", "PYTHONPATH": str(tmp_path / "without")}
    program = Program(repo=repo, home=isolated, scripts=scripts, environ=environ)
    (isolated / ".gitconfig").write_text("[user]\nname = a\nemail = a@localhost\n[init]\ndefaultBranch = main\n")
    program.git("init", "--quiet")
    (repo / "a.txt").write_text("one\ntwo\nthree\n")
    program.git("add", "--all")
    program.git("commit", "--quiet", "--message", "first")
    yield program
    program.end_children()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[Path, int], None]]:
    """Mounts a file system with so many KiB at a folder, which only root may."""
    if os.geteuid() != 0:
        pytest.skip("a small file system can be mounted by root only")
    mounted: list[Path] = []

    def mount(folder: Path, size: int) -> None:
        folder.mkdir(mode=0o700, parents=True)
        command = ("mount", "-t", "tmpfs", "-o", f"size={size}k,mode=700", "tmpfs", str(folder))
        done = subprocess.run(command, check=False, capture_output=True)
        if done.returncode:
            pytest.skip(f"no small file system can be mounted here: {done.stderr.decode().strip()}")
        mounted.append(folder)

    yield mount
    for folder in mounted:
        subprocess.run(("umount", "-l", str(folder)), check=True)


@pytest.fixture
def powerless(program: Program) -> Program:
    """The program without root's right to write everywhere."""
    if os.geteuid() != 0:
        return program
    wrapper = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    if subprocess.run((*wrapper, "true"), check=False, capture_output=True).returncode:
        pytest.skip("root's rights cannot be given up here: no setpriv")
    return replace(program, wrapper=wrapper)
