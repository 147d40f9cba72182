"""Several edits in one call: in order, all of them or none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from deepagent.agent.tool import ToolResult
from hard_inputs import hard_input
from pydantic import JsonValue

Call = Callable[..., Awaitable[ToolResult]]
Json = dict[str, JsonValue]


def edit(old: str, new: str, **more: JsonValue) -> Json:
    return {"old_string": old, "new_string": new, **more}


async def test_edits_are_made_in_order(call: Call, workspace: Path) -> None:
    (workspace / "f").write_bytes(b"one\r\ntwo\r\nthree\r\ntwo\r\n")
    edits: list[JsonValue] = [edit("one", "1"), edit("1\ntwo", "1\n2"), edit("three\n", "3\nmore\n"), edit("two", "II")]
    result = await call("edit_file", path="f", edits=edits)
    assert not result.is_error, result.text
    assert (workspace / "f").read_bytes() == b"1\r\n2\r\n3\r\nmore\r\nII\r\n"
    assert result.text == "f was changed by 4 edits at 4 places, lines 1, 2, 3, 5."
    assert (result.summary, result.log["added"], result.log["removed"]) == ("+5 −4", 5, 4)


async def test_the_one_edit_may_come_with_more(call: Call, workspace: Path) -> None:
    (workspace / "f").write_text("a b c b\n")
    edits: list[JsonValue] = [edit("b", "B", replace_all=True)]
    result = await call("edit_file", path="f", old_string="a", new_string="A", edits=edits)
    assert (workspace / "f").read_text() == "A B c B\n"
    assert result.text == "f was changed by 2 edits at 3 places, lines 1, 1, 1."
    edits = [edit("c", "C")]
    assert not (await call("edit_file", path="f", edits=edits)).is_error
    assert (workspace / "f").read_text() == "A B C B\n"


@hard_input("Files", "three edits in a call, one of which fails", "none is made; which one, and why, is told")
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (edit("no such text", "x"), "Edit 2 of 3: old_string was not found in f; nothing was written. No line is like"),
        (edit("b", "x"), "Edit 2 of 3: old_string occurs 2 times in f, at lines 2, 4; nothing was written."),
        (edit("c", "c"), "Edit 2 of 3: No change"),
        (edit("", "c"), "Edit 2 of 3: old_string is empty"),
        (edit("first", "x"), "An edit before it in this call changed that text"),
        (edit("\tc", "x"), "Only whitespace differs: before `c` in line 3 the file has nothing, old_string 1 tab."),
        (edit("c", "[secret A_KEY]"), "stands for a secret"),
        (edit("c", "\u27e6deepagent\u27e7 3,000 characters are hidden."), "stands for text that is not shown"),
    ],
)
async def test_all_or_none(wrong: Json, text: str, call: Call, workspace: Path) -> None:
    (workspace / "f").write_text("first\nb\nc\nb\nlast\n")
    result = await call("edit_file", path="f", edits=[edit("first", "1st"), wrong, edit("last", "end")])
    assert result.is_error
    assert text in result.text
    assert (workspace / "f").read_text() == "first\nb\nc\nb\nlast\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "old_string is empty"),
        ({"edits": []}, "old_string is empty"),
        ({"edits": [{"old_string": "a"}]}, "edits.0.new_string: "),
        ({"edits": [{"old_string": 7, "new_string": "x"}]}, "edits.0.old_string: "),
        ({"new_string": "x", "edits": [edit("a", "b")]}, "Edit 1 of 2: old_string is empty"),
    ],
)
async def test_what_is_missing_is_told(arguments: Json, text: str, call: Call, workspace: Path) -> None:
    (workspace / "f").write_text("a\n")
    result = await call("edit_file", path="f", **arguments)
    assert result.is_error
    assert text in result.text
    assert (workspace / "f").read_text() == "a\n"
