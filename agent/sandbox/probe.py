"""Whether an engine keeps what it promises on this machine: a program runs in it and tries to break out.

Kernels, containers and distributions forbid different parts, and some say yes and do nothing; so nothing is believed
that was not tried.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from socket import AF_INET, SOCK_STREAM, socket

from .bounds import Bounds, enclosing
from .engine import Command, Engine

_SECONDS = 5.0
_REASON_BYTES = 300
_PROGRAM = """
import os, sys, _socket
def tried(letter, attempt):
    try:
        attempt()
    except OSError:
        return
    os.write(1, letter)
def connect():
    with_port = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    with_port.connect(("127.0.0.1", int(sys.argv[1])))
tried(b"i", lambda: os.close(os.open("in/file", os.O_WRONLY | os.O_CREAT)))
tried(b"w", lambda: os.close(os.open("out/file", os.O_WRONLY | os.O_CREAT)))
tried(b"h", lambda: os.close(os.open("hidden/file", os.O_RDONLY)))
tried(b"n", connect)
os.write(1, b".")
"""
_BROKEN = {"w": "write outside", "h": "read what is hidden", "n": "reach the network"}


def failure(engine: Engine, bounds: Bounds, environ: Mapping[str, str]) -> str:
    """Why this engine does not hold on this machine; empty if it does. Takes some tens of milliseconds.

    Raises `SandboxError` where it cannot even be asked, `OSError` where there is no temporary folder.
    """
    with tempfile.TemporaryDirectory(prefix="deepagent-probe-") as name, socket(AF_INET, SOCK_STREAM) as listener:
        folder = Path(name).resolve()
        for part in ("in", "out", "hidden"):
            (folder / part).mkdir()
        (folder / "hidden" / "file").touch()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        writable = tuple(path for path in bounds.writable if not enclosing((path,), folder))
        mine = replace(bounds, writable=(*writable, folder / "in"), hidden=(*bounds.hidden, folder / "hidden"))
        python = (os.path.realpath(sys.executable), "-I", "-S", "-c", _PROGRAM, str(listener.getsockname()[1]))
        wrapped = engine.wrap(Command(argv=python, cwd=folder, bounds=mine, environ=environ))
        try:
            ran = subprocess.run(
                wrapped.argv,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                pass_fds=wrapped.fds,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        finally:
            wrapped.close()
        return _judged(ran, folder)


def _judged(ran: subprocess.CompletedProcess[bytes], folder: Path) -> str:
    said = ran.stdout.decode("utf-8", "replace")
    if not said.endswith("."):
        reason = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        return reason[-1][:_REASON_BYTES] if reason else f"it ended with {ran.returncode}"
    broken = [what for letter, what in _BROKEN.items() if letter in said]
    if broken or (folder / "out" / "file").exists():
        return f"a probe could {' and '.join(broken) or 'write outside'}"
    return "" if "i" in said and (folder / "in" / "file").exists() else "a probe could not write in its own folder"
