"""The user's own editor on a text, with the screen suspended meanwhile.

The event loop goes on, so a run does: an answer goes on arriving, and no limit of time passes unseen.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from textual.app import App, SuspendNotSupported

_USUAL = ("nano", "vi")
"""What is tried where neither `$VISUAL` nor `$EDITOR` is set."""


class EditorError(Exception):
    """The editor gave no text back; the message says why in one sentence."""


async def edit_instead(app: App[object], text: str) -> str:
    """Suspends the screen, and returns `text` after the user has edited it. Raises `EditorError`."""
    problem = None
    try:
        with app.suspend():
            try:  # in here: an error that leaves the block would leave the screen suspended
                text = await edit(text, os.environ)
            except EditorError as error:
                problem = error
    except SuspendNotSupported as error:
        raise EditorError("an editor needs a terminal") from error
    if problem is not None:
        raise problem
    return text


async def edit(text: str, environ: Mapping[str, str]) -> str:
    """`text` after the user has edited it, without the line end that editors add. Raises `EditorError`.

    To be called in the main thread. If it is cancelled, the editor is asked to end.
    """
    command = _command(environ)
    with tempfile.TemporaryDirectory(prefix="deepagent-") as folder:
        path = Path(folder, "prompt.md")
        try:
            _write(path, text)
            code = await _run([*command, str(path)])
            edited = _read(path)
        except OSError as error:
            raise EditorError(f"{command[0]} does not run: {error.strerror}") from error
    if code:
        raise EditorError(f"{command[0]} ended with exit code {code}; the text stays as it was")
    return edited if text.endswith("\n") else edited.removesuffix("\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


async def _run(command: Sequence[str]) -> int:
    with _deaf_to_interrupts():
        process = await asyncio.create_subprocess_exec(*command)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            raise


@contextmanager
def _deaf_to_interrupts() -> Generator[None]:
    """Ctrl+C in the editor goes to all processes of the terminal, and is meant for the editor alone."""
    before = signal.signal(signal.SIGINT, _nothing)  # not SIG_IGN: the editor would inherit that
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _nothing(number: int, frame: object) -> None:
    """A signal that means nothing here."""


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
