"""Random files and edits: bytes outside of the edited places never change, and a refused call changes nothing.

A file is made of units: texts, line ends, bytes that are no UTF-8. Edits take runs of units, as a model would quote
them. What must come out is judged on the bytes, without the code that makes the edits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.runtime import SessionServices, ToolRuntime
from deepagent.agent.tool import ToolResult
from deepagent.agent.tools.edit import edit_file
from deepagent.agent.tools.file_text import file_text
from hard_inputs import hard_input
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

BOMS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
TEXTS = ("a", "b", "ab", "x = 1", "\t", "  ", "é", "字", "🙂", "$&", r"\1", "\x0c", "12→a", "\u2028", "%s{0}")
RAW = (b"\xe9", b"\xff\x80", b"\xc3", b"\xed\xa0\x80")
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
Unit = str | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A file and edits of it: runs of units (from, to) in order, and what is to come in their places."""

    codec: str
    bom: bool
    units: tuple[Unit, ...]
    edits: tuple[tuple[int, int, str], ...]

    def data(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of units, the BOM with the first."""
        raw = b"".join(u if isinstance(u, bytes) else u.encode(self.codec) for u in self.units[start:end])
        return BOMS[self.codec] + raw if self.bom and start == 0 else raw

    def old(self, edit: tuple[int, int, str]) -> str:
        return "".join(unit for unit in self.units[edit[0] : edit[1]] if isinstance(unit, str))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    codec = draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16-le", "utf-16-be"]))
    ends = draw(st.sampled_from([("\n",), ("\r\n",), ("\r",), ("\n", "\r\n"), ("\n", "\r\n", "\r")]))
    raw = RAW if codec == "utf-8" and draw(st.booleans()) else ()
    kinds: list[Unit] = [*TEXTS, *ends * 4, *raw]
    units = tuple(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=40)))
    new = st.lists(st.sampled_from([*TEXTS, "\n", "\r\n", "new"]), max_size=6).map("".join)
    cuts = sorted(draw(st.sets(st.integers(0, len(units)), min_size=2, max_size=8)))
    edits = tuple((start, end, draw(new)) for start, end in list(pairwise(cuts))[::2])
    return Case(codec=codec, bom=codec != "utf-8" or draw(st.booleans()), units=units, edits=edits)


def _may_be_quoted(case: Case) -> bool:
    """A model can quote what is text, and no half of a line end."""
    joined = [unit for unit in case.units if unit != b""]
    for start, end, _ in case.edits:
        if any(isinstance(unit, bytes) for unit in joined[start:end]):
            return False
        for edge in (start, end):
            if 0 < edge < len(joined) and joined[edge - 1] == "\r" and joined[edge] in {"\n", "\r\n"}:
                return False
    return True


@dataclass(slots=True)
class Fuzz:
    """Makes the edits of cases in a real file."""

    folder: Path
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    backend: LocalBackend | None = None
    tried: int = 0
    made: int = 0

    def run(self, case: Case) -> None:
        path = self.folder / "f"
        before = case.data()
        path.write_bytes(before)
        edits: list[JsonValue] = [{"old_string": case.old(edit), "new_string": edit[2]} for edit in case.edits]
        result = self.loop.run_until_complete(self._edit(edits))
        after = path.read_bytes()
        self.tried += 1
        if result.is_error:
            assert after == before, result.text
            return
        self.made += 1
        assert _follows(case, after, 0, 0), (before, after)
        if b"\r\n" in before and before.count(b"\n") == before.count(b"\r\n") and case.codec == "utf-8":
            assert after.count(b"\n") == after.count(b"\r\n"), "a file of CRLF stays one"

    async def _edit(self, edits: list[JsonValue]) -> ToolResult:
        self.backend = self.backend or LocalBackend(
            self.folder, self.folder, data=self.folder / ".deepagents", environ={}
        )
        runtime: ToolRuntime[Any] = ToolRuntime(
            context=None,
            backend=self.backend,
            session=cast(SessionServices, None),  # edits ask nothing of it
            call_id="c",
            result_limit=20_000,
            on_output=lambda _: None,
        )
        return await edit_file.run({"path": "f", "edits": edits}, runtime)


def _follows(case: Case, after: bytes, number: int, at: int) -> bool:
    """Whether `after`, from byte `at`, is what stands before edit `number`, then its new text, and so on to the end."""
    start = case.edits[number - 1][1] if number else 0
    if number == len(case.edits):
        return after[at:] == case.data(start)
    outside = case.data(start, case.edits[number][0])
    if after[at : at + len(outside)] != outside:
        return False
    at += len(outside)
    wanted = case.edits[number][2].replace("\r\n", "\n")
    return any(
        _plain(after[at:end], case.codec) == _plain(wanted.encode(case.codec), case.codec)
        and _follows(case, after, number + 1, end)
        for end in _ends(wanted, case.codec, at)
    )


def _ends(wanted: str, codec: str, at: int) -> Iterator[int]:
    """Where the new text may end: each of its line ends may have become CRLF."""
    unit = len("\r".encode(codec))
    return iter(
        range(at + len(wanted.encode(codec)), at + len(wanted.encode(codec)) + unit * wanted.count("\n") + 1, unit)
    )


def _plain(data: bytes, codec: str) -> str:
    return data.decode(codec, "replace").replace("\r\n", "\n").replace("\r", "\n")


def _check(folder: Path, examples: int) -> None:
    fuzz = Fuzz(folder)

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=SLOW)
    @given(case=cases().filter(_may_be_quoted))
    def run(case: Case) -> None:
        fuzz.run(case)

    try:
        run()
    finally:
        fuzz.loop.run_until_complete(fuzz.loop.shutdown_default_executor())
        fuzz.loop.close()
    print(f"{fuzz.tried:,} cases, {fuzz.made:,} edited, {fuzz.tried - fuzz.made:,} refused")
    assert fuzz.made > fuzz.tried / 10


@hard_input("Files", "300 random files (line ends, BOM, UTF-16, no UTF-8) and edits", "bytes outside of the edits stay")
def test_random_edits(workspace: Path) -> None:
    _check(workspace, 300)


@pytest.mark.long
@hard_input("Files", "10,000 random files and edits", "bytes outside of the edits stay")
def test_ten_thousand_random_edits(workspace: Path) -> None:
    _check(workspace, 10_000)


@given(data=st.binary(max_size=200) | st.text(max_size=60).map(lambda text: text.encode("utf-16")))
@example(data=b"\xff\xfe\r\0\n\0")
@example(data=b"\xef\xbb\xbf\r")
@example(data=b"\r\r\0\xff")
def test_a_text_is_its_file(data: bytes) -> None:
    text = file_text(data)
    assert text is None or text.encoded(text.text) == data


def test_the_judge_sees_what_is_wrong() -> None:
    case = Case(codec="utf-8", bom=True, units=("a", "\r\n", "b", b"\xe9", "c"), edits=((0, 1, "x\n"), (4, 5, "y")))
    right = b"\xef\xbb\xbfx\r\n\r\nb\xe9y"
    judge: Callable[[bytes], bool] = lambda data: _follows(case, data, 0, 0)  # noqa: E731
    assert judge(right)
    assert judge(right.replace(b"x\r\n", b"x\n"))
    for wrong in (right[3:], right.replace(b"\xe9", b"e"), right.replace(b"\r\nb", b"\nb"), right + b"\n", right[:-1]):
        assert not judge(wrong)
