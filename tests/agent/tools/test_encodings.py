"""Files that are not plain UTF-8 with LF: what is not changed stays byte for byte, and nothing is guessed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from deepagent.agent.tool import ToolResult
from hard_inputs import hard_input

Call = Callable[..., Awaitable[ToolResult]]
BE, LE = b"\xfe\xff", b"\xff\xfe"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(
            BE + "a = 'é'\r\nb\r\n".encode("utf-16-be"),
            "'é'\nb",
            "'🙂'\nx\nb",
            BE + "a = '🙂'\r\nx\r\nb\r\n".encode("utf-16-be"),
            id="big",
            marks=hard_input("Files", "a UTF-16 file with BOM", "is edited and written anew in its own encoding"),
        ),
        pytest.param(
            LE + "\u0141\u4100\n".encode("utf-16-le"),
            "\u4100",
            "x",
            LE + "\u0141x\n".encode("utf-16-le"),
            id="unaligned",
        ),
        pytest.param(
            LE + "a\rb\rc".encode("utf-16-le"), "a\nb", "a\nx", LE + "a\rx\rc".encode("utf-16-le"), id="wide cr"
        ),
        pytest.param(
            b"one\rtwo\rthree",
            "two\nthree",
            "2\nII\nthree",
            b"one\r2\rII\rthree",
            id="cr",
            marks=hard_input(
                "Files", "a file with lone CR as line ends", "is shown by lines; new lines end with CR too"
            ),
        ),
        pytest.param(b"one\rtwo\rthree", "one\rtwo", "1\r2", b"1\r2\rthree", id="cr, copied"),
        pytest.param(b"50%\r75%\r100%\ndone\n", "done", "ready\nset", b"50%\r75%\r100%\nready\nset\n", id="progress"),
        pytest.param(
            b"x = 1\n# caf\xe9\n",
            "x = 1",
            "x = 2",
            b"x = 2\n# caf\xe9\n",
            id="latin-1",
            marks=hard_input("Files", "a Latin-1 file, an edit in ASCII", "all other bytes stay"),
        ),
        pytest.param("字 = 1\n".encode("gbk"), " = 1", " = 2", "字 = 2\n".encode("gbk"), id="gbk"),
        pytest.param(b"\xc3\xa9 \xe9\n", "\u00e9 ", "e ", b"e \xe9\n", id="mixed encodings"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfx\n", "x", "y", b"\xef\xbb\xbf\xef\xbb\xbfy\n", id="two boms"),
        pytest.param(b"a" * 9000 + b"\0x\n", "x", "y", b"a" * 9000 + b"\0y\n", id="late nul"),
        pytest.param(
            b"a\x0cb\x0b\xc2\x85\xe2\x80\xa8c\n", "c", "d", b"a\x0cb\x0b\xc2\x85\xe2\x80\xa8d\n", id="odd breaks"
        ),
    ],
)
async def test_an_edit(  # noqa: PLR0917 - a table
    before: bytes, old: str, new: str, after: bytes, call: Call, workspace: Path
) -> None:
    (workspace / "f").write_bytes(before)
    result = await call("edit_file", path="f", old_string=old, new_string=new)
    assert not result.is_error, result.text
    assert (workspace / "f").read_bytes() == after


async def test_lines_of_a_utf16_file_are_counted_as_shown(call: Call, workspace: Path) -> None:
    (workspace / "f").write_bytes("one\ntwo\nthree\n".encode("utf-16"))
    assert (await call("read_file", path="f", offset=2, limit=1)).text.endswith("\n2→two\nnext: offset 3")
    result = await call("edit_file", path="f", old_string="three", new_string="3")
    assert (result.text, result.summary) == ("f was changed at line 3.", "+1 −1")


@hard_input("Files", "a Latin-1 file, an edit that puts in `é`", "is refused: the encoding is not guessed")
@pytest.mark.parametrize("edits", [[], [{"old_string": "x", "new_string": "y"}]])
async def test_other_characters_are_not_put_into_an_unknown_encoding(
    edits: list[dict[str, str]], call: Call, workspace: Path
) -> None:
    (workspace / "f").write_bytes(b"x # caf\xe9 d\n")
    result = await call("edit_file", path="f", old_string="d", new_string="d\u00e9", edits=edits)
    assert "only ASCII text can be put into it; nothing was written" in result.text
    assert (workspace / "f").read_bytes() == b"x # caf\xe9 d\n"


async def test_lone_surrogates_of_a_model_reach_no_file(call: Call, workspace: Path) -> None:
    (workspace / "f").write_bytes(b"caf\xe9 x\n")
    assert (await call("edit_file", path="f", old_string="caf\udce9", new_string="y")).is_error
    assert (await call("edit_file", path="f", old_string="x", new_string="\udce9")).is_error
    assert (workspace / "f").read_bytes() == b"caf\xe9 x\n"
    await call("write_file", path="g", content="\udce9\ud800")
    assert (workspace / "g").read_bytes() == "\ufffd\ufffd".encode()


@pytest.mark.parametrize(
    ("old", "content", "new", "said"),
    [
        (LE + "a\n".encode("utf-16-le"), "é\n", LE + "é\n".encode("utf-16-le"), " It stays UTF-16-LE."),
        (
            BE + "a\r\n".encode("utf-16-be"),
            "x\n",
            BE + "x\r\n".encode("utf-16-be"),
            "CRLF line ends were kept. It stays",
        ),
        (b"a\rb\r", "x\ny\n", b"x\ry\r", " Its CR line ends were kept."),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n", "5 bytes."),
        (b"caf\xe9\n", "caf\u00e9\n", b"caf\xc3\xa9\n", " It was not UTF-8 before, and is now."),
        (b"caf\xe9\n", "cafe\n", b"cafe\n", "5 bytes."),
    ],
)
async def test_a_file_written_anew(  # noqa: PLR0917 - a table
    old: bytes, content: str, new: bytes, said: str, call: Call, workspace: Path
) -> None:
    (workspace / "f").write_bytes(old)
    await call("read_file", path="f")
    result = await call("write_file", path="f", content=content)
    assert not result.is_error, result.text
    assert (workspace / "f").read_bytes() == new
    assert said in result.text


@hard_input("Files", "line numbers of `read_file` in what is to be written", "are refused, not written")
async def test_line_numbers_reach_no_file(call: Call, workspace: Path) -> None:
    (workspace / "f").write_text("one\ntwo\n")
    await call("read_file", path="f")
    for content in ("1→one\n2→2\n", "7→one"):
        result = await call("write_file", path="f", content=content)
        assert "line numbers of read_file" in result.text
    assert (workspace / "f").read_text() == "one\ntwo\n"
    for content in ("1→one\n1→two\n", "1→one\ntwo\n"):  # what does not count on was meant
        assert not (await call("write_file", path="f", content=content)).is_error


@hard_input("Files", "a file whose own lines look like `12→text`", "is read and edited like any other")
async def test_a_file_that_looks_like_a_page(call: Call, workspace: Path) -> None:
    (workspace / "f").write_text("1→one\n2→two\n")
    assert (await call("read_file", path="f")).text == "f lines 1-2 of 2\n1→1→one\n2→2→two"
    assert not (await call("edit_file", path="f", old_string="1→one\n2→two", new_string="1→one\n2→2")).is_error
    assert not (await call("write_file", path="f", content="1→x\n2→y\n")).is_error
    assert (workspace / "f").read_text() == "1→x\n2→y\n"
