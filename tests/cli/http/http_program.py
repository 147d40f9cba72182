"""The program as its users start it, in a repository with a bug and with a model server of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas import check
from server import ModelServer

ROOT = Path(__file__).parents[3]
KEY = "sk-test-1234567890"
CODE = "def add(a, b):\n    return a - b\n"
TEST = """\
import unittest

from adding import add


class AddTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a run left."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The objects of standard output, which holds nothing else."""
        assert self.out.endswith("\n")
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        """The last object, checked against its schema."""
        check("result", self.lines[-1])
        return self.lines[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A repository, and a server that answers in it."""

    repo: Path
    server: ModelServer
    environ: Mapping[str, str]

    def run(self, *arguments: str, model: str = "openai/gpt-4o-mini", input: str = "", **environ: str) -> Done:
        """Runs `deepagent -p` as a program of its own, with `environ` added to the environment."""
        command = [sys.executable, "-m", "deepagent", "-p", "-m", model, *arguments]
        done = subprocess.run(
            command,
            cwd=self.repo,
            env={**self.environ, **environ},
            input=input,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def git(self, *arguments: str) -> str:
        """What git says."""
        command = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments)
        return subprocess.run(command, cwd=self.repo, capture_output=True, text=True, check=True).stdout
