"""Reading page by page: nothing is lost, nothing is too long, nothing hangs."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import resource
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest
from deepagent.agent.tokenizer import load_encoder
from deepagent.agent.tool import ToolResult
from deepagent.agent.tools import source
from deepagent.agent.tools.limits import SAFETY, cost, fitting
from deepagent.agent.tools.pages import fill
from hard_inputs import hard_input
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

ENCODE = load_encoder()
Call = Callable[..., Awaitable[ToolResult]]


class Bench(Protocol):
    """What the fixture `bench` is."""

    result_limit: int

    async def call(self, tool: str, /, **arguments: JsonValue) -> ToolResult: ...


ROW = re.compile(r"(\d+)(?:@(\d+))?→(.*)", re.DOTALL)
NEXT = re.compile(r"next: offset (\d+)(?: column (\d+))?")


def _rows(text: str) -> tuple[str, list[tuple[int, int, str]], dict[str, int] | None]:
    """Head, rows (line, column, text) and the place to read on from."""
    head, *lines = text.split("\n")
    onward = None
    if found := NEXT.fullmatch(lines[-1]):
        onward = {"offset": int(found[1]), "column": int(found[2] or 1)}
        lines.pop()
        if lines[-1].startswith("(line"):
            lines.pop()
    rows: list[tuple[int, int, str]] = []
    for line in lines:
        row = ROW.fullmatch(line)
        assert row, line
        rows.append((int(row[1]), int(row[2] or 1), row[3]))
    return head, rows, onward


async def _read_on(call: Call, path: str, limit: int = 1000) -> tuple[bytes, list[str]]:
    """Follows the printed hints to the end; returns the file's bytes and the pages."""
    parts: list[str] = []
    pages: list[str] = []
    place: dict[str, int] | None = {}
    end, line = "\n", 1
    while place is not None:
        result = await call("read_file", path=path, limit=limit, **place)
        assert not result.is_error, result.text
        pages.append(result.text)
        head, rows, place = _rows(result.text)
        end = "\r\n" if "CRLF" in head else "\n"
        for number, _, text in rows:
            parts += [end] * (number - line)
            parts.append(text)
            line = number
        assert len(pages) < 1_000
    parts.append("" if "no final newline" in pages[-1].split("\n")[0] else end)
    return "".join(parts).encode(), pages


SAMPLES: dict[str, bytes] = {
    "lines": "".join(f"line {n}\twith a tab  \n" for n in range(5_000)).encode(),
    "no end": b"one\ntwo\nthree",
    "empty lines": b"\n\n\nx\n\n",
    "one line": b"x" * 50_000,
    "five lines of 40k": b"\n".join(bytes([97 + n]) * 40_000 for n in range(5)) + b"\n",
    "crlf": b"".join(b"line %d\r\n" % n for n in range(3_000)),
    "crlf, no end": b"one\r\ntwo",
    "wide characters": ("日本語のテキスト" * 2_000 + "\n" + "é🙂" * 5_000).encode(),
    "json": json.dumps([{"id": n, "name": f"n{n}"} for n in range(4_000)]).encode(),
    "base64": base64.b64encode(random.Random(1).randbytes(90_000)),
    "arrows": "1→x\n2→y\n".encode() * 10,
    "lone cr": b"one\rtwo\r\rthree",
    "utf-16": ("ä line\n" * 900 + "the last, without an end").encode("utf-16"),
    "looks like a hint": b"a\nnext: offset 7\nb\n(line 1 has 2 bytes)\n",
}


@hard_input(
    "Files",
    "long lines, mixed line ends, no final newline, bytes that are no text",
    "following the hints from page to page gives every byte",
)
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("limit", [700, 20_000])
async def test_following_the_hints_gives_every_byte(name: str, limit: int, bench: Bench, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(SAMPLES[name])
    bench.result_limit = limit
    data, pages = await _read_on(bench.call, "a.txt")
    data = data.decode().encode("utf-16") if name == "utf-16" else data
    assert (data.replace(b"\n", b"\r") if name == "lone cr" else data) == SAMPLES[name]
    assert all(len(ENCODE(page)) <= limit for page in pages)


async def test_one_line_of_five_megabytes(bench: Bench, workspace: Path) -> None:
    whole = b"".join(b"%d" % n * 170 + "é🙂".encode() for n in range(10_000, 16_000))
    assert len(whole) > 5_000_000
    (workspace / "a.json").write_bytes(whole)
    began = time.monotonic()
    first = await bench.call("read_file", path="a.json")
    assert time.monotonic() - began < 2
    assert len(first.text) < 2_300
    assert f"(line 1 has {len(whole):,} bytes in all; offset 2 skips the rest)" in first.text
    bench.result_limit = 400_000
    data, pages = await _read_on(bench.call, "a.json")
    assert data == whole
    assert max(len(page) for page in pages) < 1_100_000


async def test_pages_of_three_lines_show_each_line_once(call: Call, workspace: Path) -> None:
    lines = ["short", "x" * 15_000, "short too", "last"]
    (workspace / "a").write_text("\n".join(lines) + "\n")
    data, pages = await _read_on(call, "a", limit=3)
    assert data.decode().splitlines() == lines
    assert [len(_rows(page)[1]) for page in pages] == [3, 1]


async def test_a_page(call: Call, workspace: Path) -> None:
    (workspace / "a.py").write_text("".join(f"line {n}\n" for n in range(1, 13)))
    result = await call("read_file", path="a.py", offset=4, limit=2)
    assert result.text == "a.py lines 4-5 of 12\n4→line 4\n5→line 5\nnext: offset 6"
    assert (result.summary, dict(result.log)) == ("2 lines", {"path": "a.py", "first_line": 4, "last_line": 5})
    result = await call("read_file", path="a.py", offset=11)
    assert result.text == "a.py lines 11-12 of 12\n11→line 11\n12→line 12"


@hard_input("Files", "tabs and blanks at the end of lines", "pass as they are")
async def test_tabs_and_blanks_pass_as_they_are(call: Call, workspace: Path) -> None:
    (workspace / "Makefile").write_text("all:\n\tcc -o x \n  \t two\n")
    assert (await call("read_file", path="Makefile")).text.split("\n")[1:] == ["1→all:", "2→\tcc -o x ", "3→  \t two"]


BIG = "x lines 1-2 of 2 (UTF-16, big-endian, shown as UTF-8;"
LITTLE = "x lines 1-2 of 2 (UTF-16, little-endian, shown as UTF-8;"
BROKEN = "UTF-16 with errors, � stands for them; it cannot be edited"
NO_BOM = "most likely UTF-16 text without a BOM, 120 bytes, not shown; `iconv -f UTF-16"


@hard_input(
    "Files",
    "UTF-16, UTF-32, lone CR, a PDF, an archive, a database, a program, an empty file",
    "what can be shown is shown as UTF-8 with its line ends told; for the rest it is told what it is and what helps",
)
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\r\n", "x lines 1-2 of 2 (CRLF line ends)\n1→a\n2→b"),
        (b"a\r\nb\n", "x lines 1-2 of 2 (mixed line ends, ␍ marks CRLF)\n1→a␍\n2→b"),
        (b"a\nb", "x lines 1-2 of 2 (no final newline)\n1→a\n2→b"),
        (b"\xef\xbb\xbfa\n", "x lines 1-1 of 1 (begins with a BOM)\n1→a"),
        (b"caf\xe9\n", "x lines 1-1 of 1 (� stands for bytes that are not UTF-8)\n1→caf�"),
        (b"", "x is empty (0 bytes)."),
        (b"\n", "x lines 1-1 of 1\n1→"),
        (b"\x89PNG\r\n\0\0", "x is a binary file, 8 bytes, not shown."),
        ("hi".encode("utf-16"), "x lines 1-1 of 1 (UTF-16, little-endian, shown as UTF-8; no final newline)\n1→hi"),
        (b"\xfe\xff\0h\0\n\x20\xac", f"{BIG} no final newline)\n1→h\n2→€"),
        (b"\xfe\xff\0a\0\r\0\n", "x lines 1-1 of 1 (UTF-16, big-endian, shown as UTF-8; CRLF line ends)\n1→a"),
        (b"\xff\xfea\0\r\0b\0", f"{LITTLE} CR line ends; no final newline)\n1→a\n2→b"),
        (b"\xff\xfe", "x is empty but for its BOM."),
        (b"\xef\xbb\xbf", "x is empty but for its BOM."),
        (b"\xff\xfea\0\0\xd8", f"x lines 1-1 of 1 ({BROKEN}; no final newline)\n1→a�"),
        (b"one\rtwo\r", "x lines 1-2 of 2 (CR line ends)\n1→one\n2→two"),
        (b"one\rtwo\nx", "x lines 1-2 of 2 (lines hold carriage returns; no final newline)\n1→one\rtwo\n2→x"),
        ("hi\n".encode("utf-16-le") * 20, f"x is {NO_BOM}LE -t UTF-8 FILE` prints it."),
        ("hi\n".encode("utf-16-be") * 20, f"x is {NO_BOM}BE -t UTF-8 FILE` prints it."),
        ("hi".encode("utf-32"), "x is UTF-32 text, 12 bytes, not shown; `iconv -f UTF-32 -t UTF-8 FILE` prints it."),
        (b"%PDF-1.7\n%", "x is a PDF document, 10 bytes, not shown; `pdftotext FILE -` prints its text."),
        (
            b"\x1f\x8b\x08",
            "x is gzip data, 3 bytes, not shown; `gzip -dc FILE` prints it, `tar -tzf FILE` lists an archive.",
        ),
        (b"\x7fELF\2\1", "x is a compiled program or library, 6 bytes, not shown."),
    ],
)
async def test_what_is_said_of_a_file(data: bytes, text: str, call: Call, workspace: Path) -> None:
    (workspace / "x").write_bytes(data)
    result = await call("read_file", path="x")
    assert (result.text, result.is_error) == (text, False)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"path": "nowhere"}, "nowhere does not exist"),
        ({"path": "folder"}, "folder is a directory, not a file: ls lists it."),
        ({"path": "../x"}, "outside the workspace"),
        ({"path": "a", "offset": 4}, "a has only 3 lines"),
        ({"path": "a", "offset": 2, "column": 9}, "Line 2 of a has only 3 bytes"),
        ({"path": "a", "offset": 0}, "count from 1"),
        ({"path": "a", "limit": -1}, "count from 1"),
        ({"path": "/dev/zero"}, "a device"),
        ({"path": "pipe"}, "a pipe"),
        ({}, "path: Field required"),
        ({"path": 7}, "path: Input should be a valid string"),
        ({"path": "a", "line": 7}, "line: Extra inputs are not permitted"),
    ],
)
async def test_what_cannot_be_read_is_answered(
    arguments: dict[str, JsonValue], text: str, call: Call, workspace: Path
) -> None:
    (workspace / "a").write_text("one\ntwo\nthree\n")
    (workspace / "folder").mkdir()
    (workspace / "folder/x").write_text("")
    os.mkfifo(workspace / "pipe")
    began = time.monotonic()
    result = await call("read_file", **arguments)
    assert result.is_error
    assert text in result.text
    assert time.monotonic() - began < 2


@hard_input("Files", "a sparse file of three gigabytes", "a page of it comes at once, in little memory")
async def test_a_sparse_file_of_three_gigabytes(call: Call, workspace: Path) -> None:
    with (workspace / "binary").open("wb") as file:
        file.truncate(3 * 1024**3)
    with (workspace / "text").open("wb") as file:
        file.write(b"first line\n" * 2_000)
        file.truncate(3 * 1024**3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    assert "a binary file, 3,221,225,472 bytes" in (await call("read_file", path="binary")).text
    result = await call("read_file", path="text", limit=3)
    assert result.text.startswith("text lines 1-3 of 3,221,225,472 bytes\n1→first line\n")
    assert result.text.endswith("\nnext: offset 4")
    assert time.monotonic() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


async def test_a_control_character_in_a_name_stays_on_the_line(call: Call, workspace: Path) -> None:
    (workspace / "a\nb").write_text("x\n")
    assert (await call("read_file", path="a\nb")).text.startswith("a\\nb lines 1-1 of 1\n")


async def test_a_notebook_is_text_with_a_word_of_advice(call: Call, workspace: Path) -> None:
    (workspace / "a.ipynb").write_text('{\n "cells": []\n}\n')
    head = (await call("read_file", path="a.ipynb")).text.split("\n")[0]
    assert head.startswith("a.ipynb lines 1-3 of 3 (a notebook: cells are JSON")


async def test_a_large_file_in_utf16_is_not_held(call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "HELD", 1_000)
    (workspace / "a").write_text("x" * 1_000, encoding="utf-16")
    result = await call("read_file", path="a")
    assert result.is_error
    assert "a is UTF-16 text of 2,002 bytes, too many to be shown here; `iconv" in result.text


@given(
    data=st.binary(max_size=400).filter(bool) | st.text(alphabet="ab\n\r é🙂", min_size=1).map(str.encode),
    tokens=st.floats(min_value=8, max_value=200),
    limit=st.integers(min_value=1, max_value=9),
)
def test_pages_cover_any_bytes_without_a_gap(data: bytes, tokens: float, limit: int) -> None:
    at, offset, column, seen = 0, 1, 1, b""
    while True:
        page = fill(data[at:], at_end=True, offset=offset, column=column, limit=limit, tokens=tokens)
        taken = b"".join(row.data + row.end for row in page.rows)
        assert taken or page.next is None
        assert data[at:].startswith(taken)
        seen, at = seen + taken, at + len(taken)
        if page.next is None:
            break
        offset, column = page.next
        start = sum(map(len, data.split(b"\n")[: offset - 1])) + offset - 1
        assert at == start + column - 1
    assert seen == data


@pytest.mark.parametrize("name", SAMPLES)
def test_the_judgement_is_on_the_safe_side(name: str) -> None:
    text = SAMPLES[name].decode("utf-16" if name == "utf-16" else "utf-8")[:60_000]
    characters, _ = fitting(text, 3_000 * SAFETY)
    assert len(ENCODE(text[:characters])) <= 3_000
    assert cost(text) * 4 >= len(ENCODE(text)) * SAFETY


def test_characters_that_no_one_expects_are_judged_safely() -> None:
    rng = random.Random(2)
    for low, high in [
        (0, 32),
        (33, 127),
        (97, 123),
        (65, 91),
        (0xA0, 0x700),
        (0x700, 0x3000),
        (0x4E00, 0x9FA5),
        (0x10000, 0x12000),
    ]:
        text = "".join(chr(rng.randrange(low, high)) for _ in range(6_000))
        characters, _ = fitting(text, 1_000 * SAFETY)
        assert characters > 100
        assert len(ENCODE(text[:characters])) <= 1_000, (low, high)
