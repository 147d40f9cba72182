"""The user's own editor on the text of the input."""

from __future__ import annotations

from pathlib import Path

import pytest
from deepagent.cli.tui.editor import EditorError, edit


def script(folder: Path, body: str) -> str:
    path = folder / "my editor"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return f"'{path}' -w"


async def test_text_comes_back_without_the_line_end_that_editors_add(tmp_path: Path) -> None:
    command = script(tmp_path, 'test "$1" = -w && printf "new\\n日本\\n" >> "$2"')
    assert await edit("old\n[/b] ", {"VISUAL": command, "EDITOR": "false"}) == "old\n[/b] new\n日本"
    assert await edit("old\n", {"VISUAL": " ", "EDITOR": command}) == "old\nnew\n日本\n"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("false", "false ended with exit code 1"),
        ("no-such-editor", "no-such-editor does not run"),
        ("'", "cannot be read"),
    ],
)
async def test_editor_that_fails_says_why(value: str, reason: str) -> None:
    with pytest.raises(EditorError, match=reason):
        await edit("text", {"EDITOR": value})


async def test_editor_that_removes_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EditorError, match="No such file"):
        await edit("text", {"EDITOR": script(tmp_path, 'rm "$2"')})


async def test_no_editor_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EditorError, match=r"set \$VISUAL or \$EDITOR"):
        await edit("text", {})
