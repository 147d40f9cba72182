"""The index of recall: it finds what the files hold, whoever else writes it, and forgets what is removed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from context_samples import SUMMARY, Rig, answer, call, result, user
from deepagent.agent.storage import DiskStorage
from deepagent.context.recall import Found, Recall
from deepagent.context.recall_index import CHUNK, MOST, OVERLAP
from deepagent.context.recall_query import Mode, Query
from deepagent.context.recall_store import INDEX_NAME
from deepagent.context.record import Ask
from deepagent.context.session import Session
from deepagent.context.storage import log_name

Make = Callable[..., Rig]
MODES: tuple[Mode, ...] = ("words", "literal", "regex")


def find(storage: DiskStorage, text: str, mode: Mode = "words", session: str | None = None) -> Found:
    return Recall(storage).search(Query(text=text, mode=mode, session=session))


def places(found: Found) -> set[tuple[str, int]]:
    return {(hit.passage.message, hit.passage.part) for hit in found.hits}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("set max_tokens here", "max_tokens"),
        ("set max_tokens here", "tokens"),
        ("see src/parser/read.py", "src/parser/read.py"),
        ("see src/parser/read.py", "parser read"),
        ("我们使用数据库配置", "配置"),
        ("我们使用数据库配置", "数据库"),
        ("テストが失敗した", "失敗"),
        ("un café au lait", "cafe"),
        ("if a<5: b", "a<5"),
        ("a -> b", "->"),
    ],
)
def test_words_are_found_in_identifiers_paths_and_scripts_without_blanks(
    session: Session, storage: DiskStorage, text: str, query: str
) -> None:
    session.say(user("something else"))
    session.say(wanted := user(text))
    assert places(find(storage, query)) == {(wanted.id, 1)}


@pytest.mark.parametrize("length", [3, OVERLAP, OVERLAP + 1, 3 * CHUNK])
@pytest.mark.parametrize("at", [CHUNK - 60, CHUNK - 2, CHUNK + OVERLAP - 1, 2 * CHUNK])
def test_what_lies_across_the_edge_of_a_chunk_is_found(
    session: Session, storage: DiskStorage, at: int, length: int
) -> None:
    needle = "".join(chr(0x4E00 + number % 5000) for number in range(length))
    session.say(wanted := user("." * at + needle + "." * CHUNK))
    (hit,) = find(storage, needle, "literal").hits
    assert (hit.passage.message, hit.span) == (wanted.id, (at, at + length))


def test_with_and_without_an_index_the_same_is_found(session: Session, storage: DiskStorage) -> None:
    for number in range(8):
        one = call("write_file", path=f"f{number}.py", content=f"def part_{number}(): return 'Ünï {number}'\n" * 300)
        session.say(answer(f"part {number}", one))
        session.say(result(one, f"written part_{number}", path=f"f{number}.py"))
    queries: tuple[tuple[str, Mode], ...] = (("part_3", "literal"), ("part 3 return", "words"), ("Ünï 7", "literal"))
    indexed = [find(storage, text, mode) for text, mode in queries]
    path = storage.own(INDEX_NAME)
    path.unlink()
    path.mkdir()
    streamed = [find(storage, text, mode) for text, mode in queries]
    assert [places(found) for found in indexed] == [places(found) for found in streamed]
    assert all(found.hits for found in indexed)
    assert all("the index cannot be used" in found.notices[0] for found in streamed)


def test_two_processes_make_one_index(session: Session, storage: DiskStorage) -> None:
    for number in range(300):
        session.say(user(f"needle {number} " + "some words around it " * 100))
    session.sync()
    script = (
        "import sys; from pathlib import Path; from deepagent.agent.storage import DiskStorage\n"
        "from deepagent.context.recall import Recall; from deepagent.context.recall_query import Query\n"
        "storage = DiskStorage(Path(sys.argv[1]), Path(sys.argv[2]), prefix='.deepagents')\n"
        "found = [Recall(storage).search(Query(text='needle', mode=m), limit=1) for m in ('words', 'words')]\n"
        "print([(f.total, f.notices) for f in found])\n"
    )
    command = [sys.executable, "-c", script, str(storage.root), str(storage.mirror)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert said == ["[(300, ()), (300, ())]"] * 3


@pytest.mark.parametrize("mode", MODES)
async def test_an_archive_stands_for_a_log_that_is_gone(rig: Make, storage: DiskStorage, mode: Mode) -> None:
    made = rig(answers=[SUMMARY])
    one = call("write_file", path="a.py", content="needle one\n" * 300)
    wanted = answer(one)
    made.say(user("go"), wanted, result(one, "done"), user("next " * 900), answer("later " * 900), user("and?"))
    await made.ladder.compact(Ask(reason="user"))
    made.session.close()
    assert find(storage, "needle one", mode).total == 1
    for path in (storage.own(log_name(made.session.id)), storage.path(log_name(made.session.id))):
        path.unlink()
    found = find(storage, "needle one", mode)
    assert places(found) == {(wanted.id, 2)}
    assert found.hits[0].passage.text == "needle one\n" * 300
    passages = Recall(storage).message(made.session.id, wanted.id)
    assert passages is not None
    assert passages[1].text == "needle one\n" * 300


@pytest.mark.parametrize("mode", MODES)
def test_a_log_that_cannot_be_read_is_passed_over_with_a_notice(
    session: Session, storage: DiskStorage, mode: Mode
) -> None:
    session.say(user("a needle"))
    session.sync()
    storage.create("sessions/20200101-000000-aaaa.jsonl", b'{"kind":"message","role":"x needle"}\n')
    found = find(storage, "needle", mode)
    assert found.total == 1
    assert "20200101-000000-aaaa.jsonl is no log" in found.notices[0]


def test_an_offloaded_text_whose_file_is_gone_is_found_by_its_preview(rig: Make, storage: DiskStorage) -> None:
    made = rig()
    one = call("execute", command="make")
    made.say(user("go"), answer(one))
    text = "first needle\n" + "noise\n" * 9_000
    made.say(*made.ladder.admit_results([result(one, text)]))
    assert find(storage, "first needle").hits[0].passage.text == text
    for name in storage.names("large_tool_results"):
        storage.own(name).unlink()
        storage.path(name).unlink()
    storage.own(INDEX_NAME).unlink()
    found = find(storage, "first needle")
    assert found.total == 1
    assert "only its preview" in found.notices[0]


def test_nothing_of_a_forgotten_session_stays_in_the_index(session: Session, storage: DiskStorage) -> None:
    other = Session.start(storage, workspace="/w", cwd="/w")
    other.say(user("the zebracorn runs"))
    other.close()
    session.say(user("the horse walks"))
    session.sync()
    assert find(storage, "zebracorn").total == find(storage, "horse").total == 1
    index = storage.own(INDEX_NAME)
    assert b"zebracorn" in index.read_bytes()
    Recall(storage).forget(other.id)
    assert b"zebra" not in index.read_bytes()
    assert find(storage, "horse", session=session.id).total == 1
    (again,) = find(storage, "zebracorn").hits  # its file is still there
    assert again.session == other.id


def test_a_search_whose_filters_let_little_through_does_not_claim_to_be_exact(
    session: Session, storage: DiskStorage
) -> None:
    for number in range(MOST // 20 + 1):
        one = call("recall", query=f"needle {number}", **{f"more{n}": "needle" for n in range(20)})
        session.say(answer(one))
    found = find(storage, "needle")
    assert (found.total, found.exact) == (0, False)
    assert Recall(storage).search(Query(text="needle", tool="recall")).total > MOST


def test_a_line_longer_than_a_block_hides_nothing(session: Session, storage: DiskStorage) -> None:
    session.say(user("x" * 9_000_000 + " quokka"))
    session.say(user("after quokka"))
    found = find(storage, "quokka")
    assert (found.total, found.exact, found.notices) == (2, True, ())
