"""The archive: every message as it was, findable by a plain search, and whole again after any crash."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from context_samples import TIME, Rig, answer, call, messages, odd_texts, result, step, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.archive import Archive, parse, render_section
from deepagent.context.archive_text import ArchiveError, read_messages, write_message
from deepagent.context.messages import Message, ToolCall
from deepagent.context.record import Ask
from deepagent.context.storage import StorageError, archive_name
from hypothesis import given, settings
from hypothesis import strategies as st

groups_of_messages = st.lists(st.lists(messages, min_size=1, max_size=4), min_size=1, max_size=3)


def check_round_trip(groups: list[list[Message]]) -> None:
    sections = [render_section(f"c{number}", TIME, group, 5) for number, group in enumerate(groups)]
    data = b"# title\n" + b"".join(sections)
    parsed = parse(data)
    assert [list(section.messages) for section in parsed.sections] == groups
    assert (parsed.torn, parsed.end) == (None, len(data))
    for section, written in zip(parsed.sections, sections, strict=True):
        assert data[section.start : section.end] == written


@settings(max_examples=40, deadline=None)
@given(groups_of_messages)
def test_what_was_written_is_read_back(groups: list[list[Message]]) -> None:
    check_round_trip(groups)


@pytest.mark.long
@settings(max_examples=5_000, deadline=None)
@given(groups_of_messages)
def test_what_was_written_is_read_back_at_volume(groups: list[list[Message]]) -> None:
    check_round_trip(groups)


@given(odd_texts, odd_texts)
def test_a_literal_search_finds_any_text_unescaped(one: str, two: str) -> None:
    made = ToolCall(id="c", name="write_file", arguments={"path": "x", "content": two, "deep": [{"k": one}]})
    told = [user(one), answer(two, made), result(made, one + two)]
    written = render_section("c", TIME, told, 5)
    for text in (one, two, one + two):
        assert text.encode() in written
    assert read_messages("".join(map(write_message, told))) == tuple(told)


def test_grep_finds_code_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "archive.md"
    file.write_bytes(render_section("c", TIME, list(step('if a<5 && b>"6": `ls`', command="cat <<'E' >x\nb\nE")), 5))
    for text in ('if a<5 && b>"6": `ls`', "cat <<'E' >x"):
        found = subprocess.run(["grep", "-cF", text, file], capture_output=True, text=True, check=True)
        assert found.stdout == "1\n"


def test_headings_carry_role_tool_call_and_time_on_one_line() -> None:
    made = ToolCall(id="call\n7", name="a<b>\n## Compaction", arguments={})
    text = write_message(result(made, "x", is_error=True))
    heading = text.split("\n")[1]
    assert heading.startswith("### tool a‹b›·## Compaction · call call·7 · error ·")
    assert not re.search(r"^## Compaction", text, re.MULTILINE)


@pytest.mark.parametrize("broken", ["\n### user\n\n<!-- deepagent:message {MESSAGE} -->\n\nno fence"])
def test_a_message_without_its_text_is_an_error(broken: str) -> None:
    meta = re.findall(r"message (\{.*\}) -->", write_message(user("text")))[0]
    with pytest.raises(ArchiveError):
        read_messages(broken.replace("{MESSAGE}", meta))


# A file of its own

FIRST = [user("the first"), *step("```\na<5\n```")]
SECOND = [user("the second ~~~~ ````text"), answer("yes\n```\n")]
THIRD = [user("the third"), *step("and more")]


@pytest.fixture
def archive(storage: DiskStorage) -> Archive:
    """An empty archive."""
    return Archive(storage, "s")


def file_of(storage: DiskStorage) -> Path:
    return storage.mirror / archive_name("s")


def told(storage: DiskStorage) -> list[list[Message]]:
    return [list(section.messages) for section in parse(file_of(storage).read_bytes()).sections]


def test_sections_are_where_they_are_said_to_be(archive: Archive, storage: DiskStorage) -> None:
    ranges = [archive.add(f"c{n}", TIME, group, 9) for n, group in enumerate([FIRST, SECOND])]
    data = file_of(storage).read_bytes()
    assert data.startswith(b"# Conversation archive of session s\n")
    assert data == storage.path(archive.name).read_bytes()
    for written, group in zip(ranges, [FIRST, SECOND], strict=True):
        assert [list(s.messages) for s in parse(data[written.start : written.end]).sections] == [group]
    assert told(storage) == [FIRST, SECOND]


def test_torn_at_any_byte_of_its_last_section_it_is_healed_by_the_next(archive: Archive, storage: DiskStorage) -> None:
    archive.add("c0", TIME, FIRST, 9)
    written = archive.add("c1", TIME, SECOND, 9)
    data = file_of(storage).read_bytes()
    for cut in range(written.start, written.end):
        file_of(storage).write_bytes(data[:cut])
        again = Archive(storage, "s")
        assert again.add("c2", TIME, [*SECOND, *THIRD], 9).end == file_of(storage).stat().st_size
        groups = told(storage)
        assert groups[0] == FIRST, cut
        assert [message for group in groups[1:] for message in group] == [*SECOND, *THIRD], cut
        assert file_of(storage).read_bytes().startswith(data[:cut])
        assert not open_fence(file_of(storage).read_text(errors="replace")), cut
    Archive(storage, "s").add("c3", TIME, [user("last")], 9)
    assert sum(map(len, told(storage))) == 3 + len(SECOND) + 3 + 1
    assert not open_fence(data.decode())


def open_fence(text: str) -> bool:
    """Whether Markdown that follows would be read as code."""
    fence = None
    for line in text.split("\n"):
        if fence is None:
            fence = opening[1] if (opening := re.match(r"(`{3,})", line)) else None
        elif re.fullmatch(rf"{fence}`*", line):
            fence = None
    return fence is not None


def test_torn_while_it_was_healed_it_is_healed_again(archive: Archive, storage: DiskStorage) -> None:
    archive.add("c0", TIME, FIRST, 9)
    written = archive.add("c1", TIME, SECOND, 9)
    data = file_of(storage).read_bytes()
    heading_end = data.index(b"-->\n", written.start)
    for cut in (written.start + 5, heading_end - 2, heading_end, heading_end + 3, heading_end + 200, written.end - 5):
        file_of(storage).write_bytes(data[:cut])
        Archive(storage, "s").add("c2", TIME, THIRD, 9)
        healed = file_of(storage).read_bytes()
        begin = healed.index(b"\n## Compaction c2")
        for second in range(cut, begin + 1):
            file_of(storage).write_bytes(healed[:second])
            Archive(storage, "s").add("c3", TIME, THIRD, 9)
            assert told(storage) == [FIRST, THIRD], (cut, second)


@pytest.mark.parametrize("title", [b"", b"# Conv", b"# Conversation archive of session s\n"])
def test_a_file_that_holds_no_section_yet_is_gone_on_with(archive: Archive, storage: DiskStorage, title: bytes) -> None:
    storage.open(archive.name).close()
    file_of(storage).write_bytes(title)
    archive.add("c0", TIME, FIRST, 9)
    assert told(storage) == [FIRST]
    assert file_of(storage).read_bytes().count(b"torn") == (title == b"# Conv")


def test_a_complete_section_that_the_log_does_not_know_is_adopted(archive: Archive, storage: DiskStorage) -> None:
    written = archive.add("lost", TIME, FIRST, 9)
    size = file_of(storage).stat().st_size
    again = Archive(storage, "s")
    assert again.add("c1", TIME, FIRST, 9) == written
    assert file_of(storage).stat().st_size == size
    later = again.add("c2", TIME, [*FIRST, *SECOND], 9)
    assert told(storage) == [FIRST, SECOND]
    assert later.start == size


def test_an_edited_section_is_passed_over_and_nothing_crashes(archive: Archive, storage: DiskStorage) -> None:
    archive.add("c0", TIME, FIRST, 9)
    archive.add("c1", TIME, SECOND, 9)
    data = file_of(storage).read_bytes()
    file_of(storage).write_bytes(data.replace(b"the second", b"the edited"))
    Archive(storage, "s").add("c2", TIME, THIRD, 9)
    assert told(storage) == [FIRST, THIRD]
    file_of(storage).write_bytes(data.replace(b'"bytes"', b'"octets"'))
    Archive(storage, "s").add("c2", TIME, THIRD, 9)
    assert told(storage)[-1] == THIRD


def test_a_section_of_a_later_version_is_passed_over(archive: Archive, storage: DiskStorage) -> None:
    body = write_message(user("x")).replace('"role":"user"', '"role":"oracle"').encode()
    meta = {
        "compaction": "c",
        "time": TIME,
        "messages": 1,
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    storage.open(archive.name).close()
    head = f"# t\n\n## Compaction c\n\n<!-- deepagent:section {json.dumps(meta)} -->\n"
    file_of(storage).write_bytes(head.encode() + body)
    archive.add("c0", TIME, FIRST, 9)
    assert told(storage) == [FIRST]
    assert b"torn" not in file_of(storage).read_bytes()


def test_after_a_failed_sync_no_message_is_written_twice(
    archive: Archive, storage: DiskStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add("c0", TIME, FIRST, 9)
    real = storage.open

    def failing(name: str, *, lock: bool = False) -> object:
        file = real(name, lock=lock)
        monkeypatch.setattr(file, "sync", lambda: (_ for _ in ()).throw(StorageError("no sync")))
        return file

    monkeypatch.setattr(storage, "open", failing)
    with pytest.raises(StorageError):
        archive.add("c1", TIME, SECOND, 9)
    monkeypatch.setattr(storage, "open", real)
    archive.add("c2", TIME, [*SECOND, *THIRD], 9)
    assert told(storage) == [FIRST, SECOND, THIRD]


def sizes(storage: DiskStorage) -> Iterator[int]:
    """Bytes of the archive after each compaction."""
    archive = Archive(storage, "s")
    for number in range(40):
        archive.add(f"c{number}", TIME, [user(f"{number} " * 400), *step("out " * 2_000)], 9)
        yield file_of(storage).stat().st_size


def test_forty_compactions_write_as_much_as_they_archive(storage: DiskStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    real = os.write

    def counting(fd: int, data: bytes) -> int:
        nonlocal written
        done = real(fd, data)
        written += done
        return done

    monkeypatch.setattr(os, "write", counting)
    grown = list(sizes(storage))
    assert written == grown[-1]
    assert grown == sorted(grown)
    assert len(told(storage)) == 40


async def test_it_holds_originals_and_not_what_the_view_showed(rig: Callable[..., Rig], storage: DiskStorage) -> None:
    made = rig()
    content = "".join(f"print({number})\n" for number in range(1_000))[:10_000]
    assert len(content) == 10_000
    one = call("write_file", path="x.py", content=content)
    made.say(user("write it"), answer(one), result(one, "done"), *step("newer " * 900), user("and?"))
    made.ladder.trim()
    assert content not in repr(made.session.view)
    done = await made.ladder.compact(Ask(reason="user"))
    assert done is not None
    data = storage.read(archive_name(made.session.id))
    assert content.encode() in data[done.archive_start : done.archive_end]
    (section,) = parse(data).sections
    assert list(section.messages) == [
        m for m in made.session.messages() if m.id not in {k.id for k in made.session.view.tail}
    ]


async def test_parent_and_sub_agent_have_archives_of_their_own(storage: DiskStorage) -> None:
    for name in ("s", "s.task1", "s.task2"):
        Archive(storage, name).add("c0", TIME, FIRST, 9)
    assert storage.names("conversation_history") == tuple(
        f"conversation_history/{name}.md" for name in ("s", "s.task1", "s.task2")
    )


@pytest.mark.parametrize("name", ["../../x", "a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(storage: DiskStorage, name: str) -> None:
    with pytest.raises(StorageError):
        Archive(storage, name).add("c0", TIME, FIRST, 9)
    assert storage.names(".") == ()
