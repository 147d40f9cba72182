"""A real bash in which nothing happens but that every command leaves its name and arguments.

Programs are stubs that write themselves down; builtins are wrapped by functions that do so and then really run them,
since some of them can run more (`eval`), or change what runs next (`printf -v PATH`). The folder has traps: executables
with the names of allowed programs, which no allowed line may start.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

BASH = shutil.which("bash") or ""
STUBS = ("a", "b", "ls", "cat", "git", "find", "rm", "sh", "env", "xargs", "sudo", "timeout", "node", "id", "time")
TRAPS = ("ls", "git", "a", "0/ls", "1/ls", "2/ls", "3/ls")
_BUILTINS = (
    *("echo", "printf", "test", "[", "cd", ":", "true", "false", "eval", "exec", "source", "."),
    *("read", "let", "export", "declare", "typeset", "local", "readonly", "set", "unset", "shopt", "alias", "trap"),
    *("mapfile", "getopts", "hash", "enable", "type", "pwd", "kill", "wait", "jobs", "compgen", "umask", "shift"),
)
_MOST = 30
"""Commands after which the shell ends: a loop need not end by itself."""
_STUB = f"""#!/bin/sh
printf '%s\\0' "$0" "$@" '\x01' >> "$TRACE"
test $({shutil.which("wc")} -c < "$TRACE") -lt 4000
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What a line did."""

    ran: tuple[tuple[str, ...], ...]
    """Each command; of stubs in the path only the name is given, of anything else the whole path."""
    changed: frozenset[str]
    """Files and folders that were made, changed or removed."""


class TracedShell:
    """Runs lines in a folder that is made anew for each."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._stubs = base / "stubs"
        self._stubs.mkdir()
        for name in STUBS:
            self._write(self._stubs / name, _STUB)
        self._trace = base / "trace"
        self._prologue = base / "prologue"
        self._prologue.write_text(_prologue())
        self._count = 0

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(self, line: str) -> Traced:
        """Runs `bash -c line`, as the agent does."""
        self._count += 1
        folder = self._base / f"work{self._count}"
        folder.mkdir()
        for name in TRAPS:
            self._write(folder / name, _STUB)
        (folder / "out").mkdir()
        self._trace.write_bytes(b"")
        before = _content(folder)
        self._bash(line, folder)
        after = _content(folder)
        shutil.rmtree(folder)
        changed = frozenset(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        records = self._trace.read_bytes().decode("utf-8", "replace").split("\0\1\0")[:-1]
        return Traced(ran=tuple(self._command(record) for record in records), changed=changed)

    def _command(self, record: str) -> tuple[str, ...]:
        name, *arguments = record.split("\0")
        return (name.removeprefix(f"{self._stubs}/"), *arguments)

    def _bash(self, line: str, folder: Path) -> None:
        environ = {"PATH": str(self._stubs), "TRACE": str(self._trace), "BASH_ENV": str(self._prologue)}
        process = subprocess.Popen(
            [BASH, "-c", line],
            cwd=folder,
            env={**environ, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"/" for p in folder.rglob("*")}


def _prologue() -> str:
    wrapped = "\n".join(f'function {name} {{ __log {name} "$@"; builtin {name} "$@"; }}' for name in _BUILTINS)
    return f"""
ulimit -c 0 -f 64
__n=0
function __log {{
  if builtin test $((++__n)) -gt {_MOST}; then builtin kill -9 $$; fi
  builtin printf '%s\\0' "$@" $'\\1' >> "$TRACE"
}}
function command_not_found_handle {{ __log "$@"; builtin return 127; }}
{wrapped}
builtin unset BASH_ENV
"""
