"""Long texts go to files byte for byte, and what stands for them is small and says where they are."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from context_samples import Rig, any_texts, call, result, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.messages import Content, Pointer, Text, ToolMessage, clean, shown, text_of
from deepagent.context.offload import Offloader
from deepagent.context.session import Session
from deepagent.context.stubs import STUB_MARK
from deepagent.context.tokens import Counter
from hypothesis import HealthCheck, given, settings

LONG = "".join(f"line {number}: {number * 7919 % 1000} things were done\n" for number in range(4_000))


def pointer_of(content: Content) -> Pointer:
    assert isinstance(content, Pointer)
    return content


def file_of(storage: DiskStorage, pointer: Pointer) -> Path:
    assert pointer.path.startswith(".deepagents/")
    return storage.root / pointer.path.removeprefix(".deepagents/")


def results_of(tool: str, *texts: str) -> list[ToolMessage]:
    return [result(call(tool), text) for text in texts]


def test_a_long_result_goes_to_a_file_as_it_is(rig: Callable[..., Rig], storage: DiskStorage, tables: Counter) -> None:
    made = rig(counter=tables)
    text = LONG + "\r\nlast \x00 line é\U0001f600 without an end"
    short, long = made.ladder.admit_results(results_of("execute", "short", text))
    assert short.content == (Text(text="short"),)
    pointer = pointer_of(long.content[0])
    data = file_of(storage, pointer).read_bytes()
    assert data == text.encode() == storage.read(pointer.path.removeprefix(".deepagents/"))
    assert pointer.sha256 == hashlib.sha256(data).hexdigest()
    assert (pointer.bytes, pointer.lines) == (len(data), 4_002)
    assert pointer.tokens == tables.text(text)
    assert pointer.path == f".deepagents/large_tool_results/{made.session.id}/1-execute.txt"


def test_what_stands_for_it_says_where_how_much_and_what(rig: Callable[..., Rig], tables: Counter) -> None:
    made = rig(counter=tables)
    lines = LONG.split("\n")
    lines[2_000] = "ERROR: the disk caught fire"
    pointer = pointer_of(made.ladder.admit_results(results_of("execute", "\n".join(lines)))[0].content[0])
    assert pointer.shown.startswith(STUB_MARK)
    for part in (pointer.path, f"{pointer.bytes:,} bytes", "4,000 lines", f"{pointer.tokens:,} tokens", "read_file"):
        assert part in pointer.shown
    assert "1→line 0: 0 things" in pointer.shown
    assert "2001→ERROR: the disk caught fire" in pointer.shown
    assert "1,995 lines not shown" in pointer.shown
    assert tables.text(pointer.shown) <= 520


@pytest.mark.parametrize("text", ["x" * 400_000, '{"a":' + "[1,2,3]," * 60_000 + "0}", " " * 900_000, "\n" * 300_000])
def test_texts_of_one_line_or_of_nothing_but_line_ends(
    rig: Callable[..., Rig], storage: DiskStorage, tables: Counter, text: str
) -> None:
    pointer = pointer_of(rig(counter=tables).ladder.admit_results(results_of("execute", text))[0].content[0])
    assert file_of(storage, pointer).read_text() == text
    assert tables.text(pointer.shown) <= 520


def test_the_hint_names_no_tool_that_is_not_there(rig: Callable[..., Rig]) -> None:
    blind = rig(can_read=False).ladder.admit_results(results_of("execute", LONG))[0]
    assert not {"read_file", "grep", "execute("} & set(text_of(blind).split())
    assert "read_file" not in text_of(blind)
    assert "grep" not in text_of(rig().ladder.admit_results(results_of("execute", LONG))[0])


@pytest.mark.parametrize("id", ["call_0", "x" * 1_500, "../../x", "a/b", "", "\0", "/etc/passwd"])
@pytest.mark.parametrize("tool", ["execute", "../../evil", "", "mcp__srv__" + "x" * 300, "a\0b/c", "naïve 工具"])
def test_no_id_and_no_name_decides_where_a_file_lies(
    rig: Callable[..., Rig], storage: DiskStorage, id: str, tool: str
) -> None:
    made = rig()
    message = replace(results_of(tool, LONG)[0], call_id=id)
    pointers = [pointer_of(made.ladder.admit_results([message])[0].content[0]) for _ in range(3)]
    folder = storage.root / "large_tool_results" / made.session.id
    assert len({pointer.path for pointer in pointers}) == 3
    for pointer in pointers:
        assert file_of(storage, pointer).resolve().parent == folder
        assert file_of(storage, pointer).read_text() == LONG
    assert not (storage.root / "x").exists()


def test_a_name_that_is_taken_is_passed_over(rig: Callable[..., Rig], storage: DiskStorage) -> None:
    made = rig()
    folder = storage.root / "large_tool_results" / made.session.id
    folder.mkdir(parents=True)
    (folder / "1-execute.txt").write_text("somebody's")
    pointer = pointer_of(made.ladder.admit_results(results_of("execute", LONG))[0].content[0])
    assert pointer.path.endswith("/2-execute.txt")
    assert (folder / "1-execute.txt").read_text() == "somebody's"


def test_after_a_resume_no_file_is_written_over(session: Session, storage: DiskStorage) -> None:
    session.say(user("hello"))
    first = Rig(session).ladder.admit_results(results_of("execute", LONG))[0]
    session.close()
    resumed = Session.resume(storage, session.id)
    second = Rig(resumed).ladder.admit_results(results_of("execute", LONG + "more"))[0]
    resumed.close()
    assert file_of(storage, pointer_of(first.content[0])).read_text() == LONG
    assert file_of(storage, pointer_of(second.content[0])).read_text() == LONG + "more"


def test_eight_results_of_78_000_characters_are_judged_by_their_sum(
    rig: Callable[..., Rig], storage: DiskStorage, tables: Counter
) -> None:
    made = rig(window=200_000, counter=tables)
    texts = ["".join(random.Random(n).choices("abcdefgh \n", k=78_000))[: 78_000 - n] for n in range(8)]
    admitted = made.ladder.admit_results(results_of("execute", *texts))
    assert tables.messages(admitted) <= made.budget.step_limit
    for message, text in zip(admitted, texts, strict=True):
        block = message.content[0]
        assert (file_of(storage, block).read_text() if isinstance(block, Pointer) else shown(block)) == text


def test_of_results_too_large_together_the_largest_go_first(rig: Callable[..., Rig], tables: Counter) -> None:
    made = rig(window=200_000, counter=tables)
    sizes = [9_000, 12_000, 11_000, 10_000, 8_000]
    admitted = made.ladder.admit_results(results_of("execute", *("word " * size for size in sizes)))
    assert [isinstance(message.content[0], Pointer) for message in admitted] == [False, True, False, False, False]
    assert tables.messages(admitted) <= made.budget.step_limit


@pytest.mark.parametrize("count", [1, 8, 25])
@pytest.mark.parametrize("window", [8_000, 16_000, 128_000])
def test_many_results_in_one_step_leave_most_of_the_budget(
    rig: Callable[..., Rig], tables: Counter, window: int, count: int
) -> None:
    made = rig(window=window, counter=tables)
    admitted = made.ladder.admit_results(results_of("read_file", *[LONG] * count))
    assert tables.messages(admitted) < 0.7 * made.budget.tokens
    assert all(isinstance(message.content[0], Pointer) for message in admitted)


@pytest.mark.parametrize("window", [1_000, 8_000, 128_000])
def test_a_pointer_is_never_longer_than_what_it_stands_for(
    rig: Callable[..., Rig], tables: Counter, window: int
) -> None:
    made = rig(window=window, counter=tables)
    texts = ["word " * size for size in (1, 10, 50, 100, 150, 200, 300, 500, 900)] * 3
    for before, after in zip(results_of("x", *texts), made.ladder.admit_results(results_of("x", *texts)), strict=True):
        assert tables.message(after) <= tables.message(before)


def test_blocks_of_one_result_are_judged_together(rig: Callable[..., Rig], tables: Counter) -> None:
    made = rig(counter=tables)
    message = replace(
        results_of("x", "")[0], content=(Text(text="a " * 1_500), Text(text="b " * 1_700), Text(text="short"))
    )
    content = made.ladder.admit_results([message])[0].content
    assert [isinstance(block, Pointer) for block in content] == [False, True, False]


def test_a_long_request_goes_to_a_file_of_its_own(
    rig: Callable[..., Rig], storage: DiskStorage, tables: Counter
) -> None:
    made = rig(counter=tables)
    made.say(made.ladder.admit_user(user("short")))
    admitted = [made.ladder.admit_user(user(LONG + str(number))) for number in range(2)]
    pointers = [pointer_of(message.content[0]) for message in admitted]
    folder = f".deepagents/conversation_history/{made.session.id}"
    assert [pointer.path for pointer in pointers] == [f"{folder}/user-1.md", f"{folder}/user-2.md"]
    assert file_of(storage, pointers[1]).read_text() == LONG + "1"
    assert "The user's message" in pointers[0].shown


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_texts)
def test_any_text_is_the_file_byte_for_byte(offloader: Offloader, text: str) -> None:
    pointer = offloader.pointer(text, "tool")
    data = offloader.storage.read(pointer.path.removeprefix(".deepagents/"))
    assert data.decode() == clean(text)
    assert pointer.sha256 == hashlib.sha256(data).hexdigest()
    assert pointer.bytes == len(data)


@pytest.fixture
def offloader(rig: Callable[..., Rig]) -> Offloader:
    """The offloader of a session."""
    return rig().offloader


def test_when_no_file_can_be_written_results_stay_whole_and_that_is_said(
    rig: Callable[..., Rig], storage: DiskStorage
) -> None:
    made = rig()
    storage.mirror.mkdir(parents=True)
    (storage.mirror / "large_tool_results").write_text("a file is in the way")
    messages = results_of("execute", LONG, "short")
    assert made.ladder.admit_results(messages) == tuple(messages)
    assert len(made.troubles) == 1
    assert "stays in the view" in made.troubles[0]
    assert "large_tool_results" in made.troubles[0]
