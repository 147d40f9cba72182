"""Editing: bytes outside of the edit never change."""

from __future__ import annotations

import asyncio
import stat
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.tool import ToolResult
from deepagent.agent.tools.edits import Edit, checked, made
from deepagent.agent.tools.file_text import FileText, file_text
from deepagent.agent.tools.splice import changed_lines, plan
from deepagent.context.stubs import argument_stub
from hard_inputs import hard_input
from pydantic import JsonValue

Call = Callable[..., Awaitable[ToolResult]]


class Bench(Protocol):
    """What the fixture `bench` is."""

    backend: LocalBackend

    async def call(self, tool: str, /, **arguments: JsonValue) -> ToolResult: ...


def _text(data: bytes) -> FileText:
    text = file_text(data)
    assert text is not None
    return text


def _edited(data: bytes, old: str, new: str) -> bytes:
    text = _text(data)
    return text.encoded(made("f", text, checked([Edit(old_string=old, new_string=new)])).text)


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "b", "B", b"a\r\nB\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "\nc\n", "\nd\ne\n", b"a\r\nb\r\nd\r\ne\r\n"),
        (b"a\r\nb\nc\n", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc\n"),
        (b"a\r\nb\nc\n", "c", "c\nd", b"a\r\nb\nc\nd\n"),
        (b"a\r\nb\nc\n", "a", "a\nd", b"a\r\nd\r\nb\nc\n"),
        (b"a\nb", "b", "b\nc", b"a\nb\nc"),
        (b"a", "a", "x\ny", b"x\ny"),
        (b"x=1\n# caf\xe9\n", "x=1", "x=2", b"x=2\n# caf\xe9\n"),
        (b"\xef\xbb\xbffirst\nlast", "first", "1st", b"\xef\xbb\xbf1st\nlast"),
        ("é = 'è'\n".encode(), "'è'", "'é'", "é = 'é'\n".encode()),
        (b"a\rb\rc", "b", "x", b"a\rx\rc"),
        (b"f(x)", "f(x)", r"\1 \g<0> $& $$ %s {0} \n", rb"\1 \g<0> $& $$ %s {0} \n"),
        (b"a.b aXb", "a.b", "c", b"c aXb"),
    ],
)
def test_a_splice(data: bytes, old: str, new: str, after: bytes) -> None:
    assert _edited(data, old, new) == after


@pytest.mark.parametrize(
    ("data", "old", "new", "counts"),
    [
        (b"a\nb\nc\n", "b", "x", (1, 1)),
        (b"a\nb\nc\n", "b\n", "", (0, 1)),
        (b"a\nb\nc\n", "b\n", "b\nx\ny\n", (2, 0)),
        (b"a\nb\nc\n", "a\nb", "a", (0, 1)),
        (b"a\nb\nc\n", "c", "c\nd", (1, 0)),
        (b"a\r\nb\r\n", "a\nb", "a\nx\nb", (1, 0)),
        (b"a a\na\n", "a", "b", (3, 3)),
    ],
)
def test_lines_are_counted_as_a_diff_counts(data: bytes, old: str, new: str, counts: tuple[int, int]) -> None:
    text = _text(data).text
    assert changed_lines(text, plan(text, old, new)) == counts


@hard_input("Files", "a CRLF file, one word edited", "git sees one changed line")
async def test_one_word_in_a_crlf_file_is_one_line_for_git(call: Call, workspace: Path) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "core.autocrlf=false"]
    (workspace / "a.txt").write_bytes(b"".join(b"line %d\r\n" % n for n in range(200)))
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        await asyncio.to_thread(subprocess.run, [*git, *command], check=True)
    result = await call("edit_file", path="a.txt", old_string="line 57\nline 58", new_string="line 57\nline five")
    assert (result.summary, dict(result.log)) == ("+1 −1", {"path": "a.txt", "added": 1, "removed": 1, "starts": [58]})
    stat_ = await asyncio.to_thread(subprocess.run, [*git, "diff", "--numstat"], capture_output=True, check=True)
    assert stat_.stdout == b"1\t1\ta.txt\n"


@hard_input("Files", "a file with a BOM", "the BOM is hidden from the model and stays on the disk")
async def test_a_bom_stays(call: Call, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"\xef\xbb\xbffirst\nlast\n")
    await call("edit_file", path="a", old_string="\ufefffirst", new_string="one")
    await call("edit_file", path="a", old_string="last", new_string="two")
    assert (workspace / "a").read_bytes() == b"\xef\xbb\xbfone\ntwo\n"


async def test_mode_and_link_stay(call: Call, workspace: Path) -> None:
    (workspace / "run").write_text("old")
    (workspace / "run").chmod(0o755)
    (workspace / "link").symlink_to("run")
    assert not (await call("edit_file", path="link", old_string="old", new_string="new")).is_error
    assert (workspace / "link").is_symlink()
    assert ((workspace / "run").read_text(), stat.S_IMODE((workspace / "run").stat().st_mode)) == ("new", 0o755)


@hard_input(
    "Files",
    "edits that are empty, without effect, ambiguous, near misses, of binary or other encodings",
    "are refused with what differs and where; the file stays",
)
@pytest.mark.parametrize(
    ("data", "old", "new", "everywhere", "text"),
    [
        (b"a\nb\n", "", "x", False, "old_string is empty"),
        (b"a\nb\n", "", "x", True, "old_string is empty"),
        (b"a\nb\n", "a", "a", False, "No change"),
        (b"a\r\nb\n", "a\r\nb", "a\nb", False, "No change"),
        (b"a\nb\na\nc a\n", "a", "x", False, "occurs 3 times in f, at lines 1, 3, 4; nothing was written"),
        (b"bbb\nx\n", "bb", "a", False, "occurs 2 times in f, at lines 1, 1;"),
        (b"}\n}\n}\n", "}\n}", "x", False, "occurs 2 times in f, at lines 1, 2;"),
        (b"x\n" * 20, "x", "y", False, "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …"),
        (
            b"all:\n\tcc\n",
            "all:\n    cc",
            "x",
            False,
            "Only whitespace differs: before `cc` in line 2 the file has 1 line break and 1 tab, old_string 1 line "
            "break and 4 spaces. In the file it is:\n1→all:\n2→\tcc",
        ),
        (b"a\n\tif x:  \n", "if  x:", "y", False, "before `x:` in line 2 the file has 1 space, old_string 2 spaces."),
        (b"if x:  \n\ty\n", "if x:\n\ty", "z", False, "the file has 2 spaces, 1 line break and 1 tab, old_string"),
        (b"\tx = 1\n", "    x = 1", "y", False, "before `x` in line 1 the file has 1 tab, old_string 4 spaces."),
        (b"f(a,\n  b)\n", "f(a, b)", "y", False, "before `b)` in line 2 the file has 1 line break and 2 spaces"),
        (b"foo  \nbar\n", "foo\n", "y", False, "after `foo` in line 1 the file has 2 spaces and 1 line break"),
        (b"a\xc2\xa0b\n", "a b", "y", False, "the file has 1 no-break space, old_string 1 space"),
        (
            b"say \xe2\x80\x9chi\xe2\x80\x9d\n",
            'say "hi"',
            "x",
            False,
            "quotation marks, dashes, or how a letter is coded differs at line 1",
        ),
        (b"caf\xc3\xa9\n", "cafe\u0301", "x", False, "how a letter is coded differs at line 1"),
        (b'say "hi"\n', 'say \\"hi\\"', "x", False, "escaped once too often: in the file it stands at line 1"),
        (b"a < b\n", "a &lt; b", "x", False, "old_string has HTML entities"),
        (b'"a\\nb"\n', '"a\nb"', "x", False, "The file has `\\n` or `\\t` in two characters there"),
        (
            b"def compute(a, b):\n    pass\n",
            "def compute(a):\n",
            "x",
            False,
            "is line 1:\n1→def compute(a, b):",
        ),
        (b"x\nabc\ny\n", "2→abc\n3→y", "x", False, "give only what follows the arrows. Without, it stands at line 2."),
        (b"abc\ny\n", "abc\ny", "1→abc\n2→z", False, "new_string has the line numbers of read_file"),
        (b"K=sk\n", "K=[secret THE_KEY]", "x", False, "stands for a secret that is not shown to you: leave it out"),
        (b"new text\n", "old text", "new text", False, "already there, at line 1"),
        (b"abc\n", "something else", "x", False, "No line is like it"),
        (b"caf\xe9\n", "caf\u00e9", "x", False, "is not UTF-8: give only ASCII"),
        (b"x caf\xe9\n", "x", "\u00fc", False, "only ASCII text can be put into it"),
        (b"x\0", "x", "y", False, "a binary file. edit_file changes text"),
        (b"%PDF-1.7\nx", "x", "y", False, "a PDF document"),
        ("x\n".encode("utf-16-le") * 20, "x", "y", True, "UTF-16 text without a BOM"),
        (b"\xff\xfex\0\x00\xd8", "x", "y", False, "no valid UTF-16, although its BOM says so"),
        (b"abc\n", "abc", argument_stub("content", 9, "f", "e1"), False, "stands for text that is not shown"),
        (b"abc\n", "abc", "KEY=[secret OPENAI_API_KEY]", False, "stands for a secret"),
    ],
)
async def test_what_is_refused_leaves_the_file(  # noqa: PLR0917 - a table
    data: bytes, old: str, new: str, everywhere: bool, text: str, call: Call, workspace: Path
) -> None:
    (workspace / "f").write_bytes(data)
    result = await call("edit_file", path="f", old_string=old, new_string=new, replace_all=everywhere)
    assert result.is_error
    assert text in result.text
    assert (workspace / "f").read_bytes() == data


@pytest.mark.parametrize(("path", "text"), [("no", "does not exist"), (".", "a directory"), ("../x", "outside")])
async def test_what_is_no_file(path: str, text: str, call: Call) -> None:
    result = await call("edit_file", path=path, old_string="a", new_string="b")
    assert result.is_error
    assert text in result.text


@pytest.mark.parametrize("data", [b"\r\nfoo\r\n", b"\nfoo\n"])
async def test_one_line_end_is_one_place(data: bytes, call: Call, workspace: Path) -> None:
    (workspace / "f").write_bytes(data)
    result = await call("edit_file", path="f", old_string="\nfoo\n", new_string="bar\n")
    assert not result.is_error, result.text
    assert (workspace / "f").read_bytes() == b"bar" + data[: len(data) // 2 - 1]


async def test_all_places(call: Call, workspace: Path) -> None:
    (workspace / "f").write_text("a b a\nb a\n")
    result = await call("edit_file", path="f", old_string="a", new_string="aa", replace_all=True)
    assert (workspace / "f").read_text() == "aa b aa\nb aa\n"
    assert result.text == "f was changed at 3 places, lines 1, 1, 2."


async def test_text_from_a_page_is_found(call: Call, workspace: Path) -> None:
    (workspace / "f").write_bytes(b"x\r\n\tif a:  \r\n\t\tb()\r\n")
    rows = (await call("read_file", path="f")).text.split("\n")[1:]
    old = "\n".join(row.split("→", 1)[1] for row in rows[1:3])
    assert not (await call("edit_file", path="f", old_string=old, new_string="\tb()")).is_error
    assert (workspace / "f").read_bytes() == b"x\r\n\tb()\r\n"


@hard_input(
    "Files",
    "a file that somebody changed since it was read",
    "an edit elsewhere in it works on the new content",
)
async def test_an_edit_works_on_what_the_file_is_now(call: Call, workspace: Path) -> None:
    (workspace / "f").write_text("one\ntwo\n")
    await call("read_file", path="f")
    (workspace / "f").write_text("ONE\ntwo\n")
    assert not (await call("edit_file", path="f", old_string="two", new_string="2")).is_error
    assert (workspace / "f").read_text() == "ONE\n2\n"
    result = await call("write_file", path="f", content="one\n2\n")
    assert "was changed since you read it" in result.text


async def test_parallel_edits_of_one_file_all_happen(call: Call, workspace: Path) -> None:
    (workspace / "f").write_text("".join(f"<{n}>\n" for n in range(12)))
    edits = (call("edit_file", path="f", old_string=f"<{n}>", new_string=f"[{n}]") for n in range(12))
    results = await asyncio.gather(*edits)
    assert not any(result.is_error for result in results)
    assert (workspace / "f").read_text() == "".join(f"[{n}]\n" for n in range(12))


class Contended(LocalBackend):
    """A backend whose file is changed by someone else right after it was read."""

    changes = 1

    async def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        data = await super().read(path, start=start, size=size)
        if size is None and self.changes:
            self.changes -= 1
            self._paths.resolve(path).real.write_bytes(b"theirs\n" + data)
        return data


@hard_input(
    "Files",
    "somebody writes between reading and replacing",
    "the edit is made anew, or given up; nothing is lost",
)
@pytest.mark.parametrize(("changes", "text"), [(1, "theirs\nmine\n"), (9, "theirs\n" * 3 + "old\n")])
async def test_someone_else_writes_in_the_same_moment(changes: int, text: str, bench: Bench, workspace: Path) -> None:
    (workspace / "f").write_text("old\n")
    backend = Contended(workspace, workspace, data=workspace / ".deepagents", environ={})
    backend.changes = changes
    bench.backend = backend
    result = await bench.call("edit_file", path="f", old_string="old", new_string="mine")
    assert (workspace / "f").read_text() == text
    assert result.is_error == ("mine" not in text)


async def test_a_large_file(call: Call, workspace: Path) -> None:
    (workspace / "f").write_bytes(b"line of text\r\n" * 700_000 + b"needle\r\n")
    result = await call("edit_file", path="f", old_string="text\nneedle", new_string="text\npin")
    assert result.text == "f was changed at line 700,001."
    assert (workspace / "f").read_bytes().endswith(b"text\r\npin\r\n")
