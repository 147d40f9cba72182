"""Writing whole files: nothing unseen is overwritten."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from deepagent.agent.stand_ins import refuse_stand_in
from deepagent.agent.tool import ToolResult
from deepagent.agent.tools.rewrite import compared
from deepagent.context.stubs import STUB_MARK, argument_stub, pointer_text
from hard_inputs import hard_input

Call = Callable[..., Awaitable[ToolResult]]


async def test_a_new_file(call: Call, workspace: Path) -> None:
    result = await call("write_file", path="new/deep/a.txt", content="one\nzwei ü\n")
    assert result.text == "new/deep/a.txt was created: 12 bytes."
    assert (result.summary, dict(result.log)) == ("+2 −0", {"path": "new/deep/a.txt", "added": 2, "removed": 0})
    assert (workspace / "new/deep/a.txt").read_text() == "one\nzwei ü\n"


@hard_input("Files", "a file that was not read is written anew", "refused")
async def test_an_unread_file_is_not_overwritten(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("precious\n")
    result = await call("write_file", path="a", content="x")
    assert result.is_error
    assert "exists, and you have not read it; nothing was written" in result.text
    assert (workspace / "a").read_text() == "precious\n"
    (workspace / "empty").touch()
    assert not (await call("write_file", path="empty", content="x")).is_error


async def test_a_file_that_was_read_may_be_overwritten(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one\ntwo\n")
    await call("read_file", path="a", limit=1)
    result = await call("write_file", path=str(workspace / "a"), content="one\n2\n")
    assert (result.is_error, result.summary) == (False, "+1 −1")
    assert (workspace / "a").read_text() == "one\n2\n"


@hard_input("Files", "a file that somebody changed is written anew", "refused, also if size and time are the same")
async def test_a_change_that_keeps_size_and_time_is_not_overwritten(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one")
    status = (workspace / "a").stat()
    await call("read_file", path="a")
    (workspace / "a").write_text("two")
    os.utime(workspace / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    result = await call("write_file", path="a", content="three")
    assert "was changed since you read it; nothing was written. Read it" in result.text
    assert (workspace / "a").read_text() == "two"
    await call("read_file", path="a")
    assert not (await call("write_file", path="a", content="three")).is_error


async def test_own_writes_need_no_reading(call: Call, workspace: Path) -> None:
    for content in ("one", "two", "three"):
        assert not (await call("write_file", path="a", content=content)).is_error
    assert not (await call("edit_file", path="a", old_string="three", new_string="four")).is_error
    assert not (await call("write_file", path="./a", content="five")).is_error
    assert (workspace / "a").read_text() == "five"


async def test_an_edit_of_an_unread_file_is_no_reading(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one\nmore\n")
    assert not (await call("edit_file", path="a", old_string="one", new_string="two")).is_error
    assert (await call("write_file", path="a", content="x")).is_error


async def test_line_ends_and_bom_are_kept(call: Call, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await call("read_file", path="a")
    result = await call("write_file", path="a", content="one\n2\n")
    assert (workspace / "a").read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"
    assert result.text.endswith("Its CRLF line ends were kept.")
    assert result.summary == "+1 −1"


@hard_input("Files", "a Latin-1 file is written anew with `�` in it", "refused")
async def test_bytes_that_are_no_text_are_not_lost(call: Call, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"x=1\n# caf\xe9\n")
    shown = (await call("read_file", path="a")).text
    assert "caf\ufffd" in shown
    result = await call("write_file", path="a", content="x=2\n# caf\ufffd\n")
    assert result.is_error
    assert (workspace / "a").read_bytes() == b"x=1\n# caf\xe9\n"


STUB = argument_stub("content", 4_000, "a.py", "e1")
POINTER = pointer_text(what="x", path="p", size=1, lines=1, tokens=1, preview="1→x", hint="")


@hard_input("Files", "a stub of ours, or a mask of a secret, as content", "never reaches a file")
@pytest.mark.parametrize(
    "text",
    [
        STUB,
        POINTER,
        f"\n  {STUB}\n",
        f"import os\n\n# {STUB}",
        f"import os\n{STUB}\n",
        f"import os\nx = '{STUB}'",
        f"a\n{STUB_MARK} the rest of the file\nb\n",
        "KEY = [secret OPENAI_API_KEY]\n",
    ],
)
async def test_what_stands_for_other_text_is_never_written(text: str, call: Call, workspace: Path) -> None:
    result = await call("write_file", path="a.py", content=text)
    assert result.is_error
    assert "nothing was done" in result.text
    assert not (workspace / "a.py").exists()


def test_text_about_stubs_may_be_written() -> None:
    assert refuse_stand_in(f"The mark `{STUB_MARK}` begins a stub.\nMore.\n") is None
    assert refuse_stand_in("A mask looks like [secret NAME].\n") is None


@hard_input("Files", "`... rest of the code unchanged` over a long file", "refused")
@pytest.mark.parametrize(
    "line",
    [
        "# ... rest of code unchanged",
        "// ... existing code ...",
        "/* ... the remaining methods stay the same here ... */",
        "    ... (rest of the file is unchanged)",
        "<!-- keep the existing content here -->",
        "# Rest of the implementation remains the same",
        "… other functions unchanged …",
    ],
)
async def test_a_placeholder_does_not_replace_code(line: str, call: Call, workspace: Path) -> None:
    code = "".join(f"def f{n}():\n    return {n}\n" for n in range(250))
    (workspace / "a.py").write_text(code)
    await call("read_file", path="a.py")
    result = await call("write_file", path="a.py", content="def f0():\n    return 1\n" * 9 + f"{line}\n")
    assert result.is_error
    assert line.strip() in result.text
    assert (workspace / "a.py").read_text() == code


async def test_a_short_file_may_replace_a_long_one(call: Call, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\n" * 500)
    await call("read_file", path="a.py")
    text = "# The rest is history.\nfor name in other:\n    ...\n"
    assert not (await call("write_file", path="a.py", content=text)).is_error


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".", "directory"),
        ("../a", "outside"),
        (".deepagents/sessions/x.jsonl", "own record"),
        ("a/b", "not a directory"),
        ("/dev/null", "a device"),
    ],
)
async def test_where_nothing_can_be_written(path: str, text: str, call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("x")
    result = await call("write_file", path=path, content="x")
    assert result.is_error
    assert text in result.text


async def test_parallel_writes(call: Call, workspace: Path) -> None:
    results = await asyncio.gather(*(call("write_file", path=f"f{n}", content=str(n)) for n in range(8)))
    assert not any(result.is_error for result in results)
    assert [(workspace / f"f{n}").read_text() for n in range(8)] == [str(n) for n in range(8)]
    results = await asyncio.gather(*(call("write_file", path="same", content=str(n)) for n in range(8)))
    assert not any(result.is_error for result in results)


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("", "a\nb\n", (2, 0)),
        ("a\nb\n", "", (0, 2)),
        ("a\nb\nc\n", "a\nc\n", (0, 1)),
        ("a\nb\nc\nd\n", "x\nb\ny\nd\n", (2, 2)),
        ("a\n" * 900 + "b\n", "c\n" + "a\n" * 900, (1, 1)),
        ("a\n", "a\n", (0, 0)),
    ],
)
def test_lines_of_a_rewritten_file(old: str, new: str, counts: tuple[int, int]) -> None:
    assert compared(old, new) == counts
