"""The user's own editor on a text. The screen must be suspended meanwhile; that is the caller's business."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_USUAL = ("nano", "vi")
"""What is tried where neither `$VISUAL` nor `$EDITOR` is set."""


class EditorError(Exception):
    """The editor gave no text back; the message says why in one sentence."""


def edit(text: str, environ: Mapping[str, str]) -> str:
    """`text` after the user has edited it, without the line end that editors add. Raises `EditorError`."""
    command = _command(environ)
    with tempfile.TemporaryDirectory(prefix="deepagent-") as folder:
        path = Path(folder, "prompt.md")
        path.write_text(text, encoding="utf-8", newline="")
        try:
            code = subprocess.run([*command, str(path)], check=False).returncode
            edited = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise EditorError(f"{command[0]} does not run: {error.strerror}") from error
    if code:
        raise EditorError(f"{command[0]} ended with exit code {code}; the text stays as it was")
    return edited if text.endswith("\n") else edited.removesuffix("\n")


def _command(environ: Mapping[str, str]) -> list[str]:
    named = next((value for name in ("VISUAL", "EDITOR") if (value := environ.get(name, "").strip())), None)
    if named is None:
        usual = next((name for name in _USUAL if shutil.which(name)), None)
        if usual is None:
            raise EditorError("no editor: set $VISUAL or $EDITOR")
        return [usual]
    try:
        return shlex.split(os.path.expandvars(named))
    except ValueError as error:
        raise EditorError(f"$VISUAL or $EDITOR cannot be read: {error}") from error
