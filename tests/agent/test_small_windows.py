"""Small windows are usable, and memory keeps within its share of any window."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from deepagent.agent.model.types import ModelRequest
from deepagent.context.entries import Compacted
from deepagent.context.messages import text_of
from stage import Stage

Make = Callable[..., "Stage"]
FILES = 5
LINES = 300


def step(name: str, /, **arguments: object) -> dict[str, object]:
    """A scripted answer with one call."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def window(tokens: int) -> dict[str, object]:
    return {"context": {"window": tokens}}


def tokens(play: Stage, request: ModelRequest) -> int:
    """The whole request by our counter, its margin left out."""
    counter = play.agent.parts.counter
    counter.prepare()
    toolbox = sum(counter.text(f"{t.name}{t.description}{dict(t.parameters)}") for t in request.tools)
    return counter.text(request.system) + toolbox + counter.messages(request.messages)


# The first request


@pytest.mark.parametrize(("size", "most"), [(8_000, 1_500), (16_000, 2_500), (200_000, 4_000)])
async def test_the_first_request_leaves_room_for_the_work(stage: Make, size: int, most: int) -> None:
    play = stage({"text": "Hello."}, settings=window(size))
    (play.folder / ".git").mkdir()
    await play.run("hello")
    assert 500 < tokens(play, play.requests[0]) < most


async def test_what_small_windows_go_without_can_be_called_all_the_same(stage: Make) -> None:
    todos = [{"text": "look", "status": "pending"}]
    calls = [step("write_todos", todos=todos), step("glob", pattern="*"), step("compact_conversation")]
    play = stage(*calls, {"text": "Done."}, settings=window(8_000))
    lines = await play.run()
    names = {tool.name for tool in play.requests[0].tools}
    assert {"read_file", "edit_file", "write_file", "grep", "execute"} <= names
    assert names.isdisjoint({"write_todos", "glob", "compact_conversation"})
    assert not any(name in play.requests[0].system for name in ("write_todos", "compact_conversation"))
    assert [line.split()[0] for line in lines if line.startswith(("done", "failed"))] == ["done"] * 3


async def test_a_window_that_turns_out_small_gets_the_short_prompt(stage: Make) -> None:
    play = stage({"text": "a"}, {"text": "b"}, settings=window(64_000))
    await play.run()
    play.agent._ladder.lower_window(8_000)  # pyright: ignore[reportPrivateUsage] - as an overflow error does
    await play.run()
    before, after = (tokens(play, request) for request in play.requests)
    assert after < before * 0.7
    assert len(play.requests[1].tools) < len(play.requests[0].tools)


# Work


def repository(folder: Path) -> None:
    """A package of a few files with a few hundred lines each, one of them with an error, and a check of them all."""
    for number in range(FILES):
        body = "".join(f"def part_{number}_{n}(x: int) -> int:\n    return x + {n}\n\n" for n in range(LINES // 3))
        (folder / f"m{number}.py").write_text(body)
    wrong = folder / "m3.py"
    wrong.write_text(wrong.read_text().replace("return x + 57\n", "return x - 57\n"))
    checks = "".join(
        f"import m{n}\nfor i in range({LINES // 3}):\n    CHECKS.append((m{n}, {n}, i))\n" for n in range(FILES)
    )
    (folder / "check.py").write_text(
        f"CHECKS = []\n{checks}failed = 0\n"
        "for module, n, i in CHECKS:\n"
        "    got = getattr(module, f'part_{n}_{i}')(100)\n"
        "    ok = got == 100 + i\n"
        "    failed += not ok\n"
        "    print(f'test part_{n}_{i} ' + ('PASSED' if ok else f'FAILED: expected {100 + i}, got {got}'))\n"
        "print(f'{failed} failed, {len(CHECKS) - failed} passed')\nraise SystemExit(failed > 0)\n"
    )


def repair() -> list[dict[str, object]]:
    """Twelve answers: look, test, search, read, repair, test again."""
    check = step("execute", command=f"{sys.executable} check.py")
    return [
        step("ls"),
        step("read_file", path="check.py"),
        check,
        step("grep", pattern="FAILED", path="{{match:lies whole in (\\S+\\.txt)}}"),
        *(step("read_file", path=f"m{n}.py") for n in range(4)),
        step("read_file", path="m3.py", offset=165, limit=20),
        step("edit_file", path="m3.py", old_string="return x - 57", new_string="return x + 57"),
        check,
        {"text": "Repaired: m3.py:173 subtracted."},
    ]


@pytest.mark.parametrize(("size", "summaries"), [(16_000, 1), (8_000, 2)])
async def test_a_repair_of_twelve_turns_ends_green(stage: Make, size: int, summaries: int) -> None:
    play = stage(*repair(), settings=window(size), script={"summaries": ["m3.py was wrong; it is being repaired."]})
    repository(play.folder)
    play.agent.parts.counter.prepare()
    lines = await play.run("The check fails: find out why and repair it.")
    assert lines[-1] == "ended success: Repaired: m3.py:173 subtracted."
    results = [message for message in play.logged() if message.role == "tool"]
    checked = [message for message in results if message.tool == "execute"]
    assert [message.log["exit_code"] for message in checked] == [1, 0]
    assert "0 failed, 500 passed" in text_of(checked[-1])
    assert not any(message.is_error for message in results)
    turns = [request for request in play.requests if request.purpose != "summary"]
    assert len(turns) == 12
    assert len(play.requests) - len(turns) <= summaries
    assert len([entry for entry in play.entries() if isinstance(entry, Compacted)]) <= summaries
    assert tokens(play, turns[0]) <= 2_500
    assert all(tokens(play, request) < size * 0.87 for request in turns)
    assert all("The check fails" in str(request.messages) for request in turns)


# Memory's share

ENGLISH = "Rule {}: keep the modules small, name things by what they are, and write the test before the change.\n"
CHINESE = "规则{}：先读后写，保持模块简短，先写测试，再改代码。\n"


@pytest.mark.parametrize(("line", "count"), [(ENGLISH, 2_700), (CHINESE, 3_000)])
async def test_sixty_thousand_tokens_of_memory_in_a_window_of_fifty(stage: Make, line: str, count: int) -> None:
    text = "".join(line.format(n) for n in range(count))
    folder = stage({"text": "x"}).folder
    (folder / "AGENTS.md").write_text(text)
    play = stage(
        step("read_file", path="AGENTS.md", offset="{{number:at offset (\\d+)}}", limit=2),
        {"text": "Read on."},
        settings=window(50_000),
    )
    counter, budget = play.agent.parts.counter, play.agent._ladder.budget  # pyright: ignore[reportPrivateUsage]
    counter.prepare()
    assert counter.text(text) > 55_000
    assert len([notice for notice in play.agent.notices if "AGENTS.md has" in notice]) == 1
    rows = {row.name: row.tokens for row in play.agent.account().rows}
    assert budget.tokens * 0.23 < rows["Memory"] <= budget.tokens * 0.25
    await play.run()
    shown = play.requests[0].system
    last = max(n for n in range(count) if line.format(n) in shown)
    assert all(line.format(n) in shown for n in range(last + 1)), "cut at a line, nothing left out before it"
    assert f"→{line.format(last + 1)}".rstrip() in str(play.requests[1].messages), "the reading goes on where it ends"
    assert play.ended.outcome == "success"


async def test_the_most_specific_file_gets_its_room_first(stage: Make) -> None:
    folder = stage({"text": "x"}).folder
    (folder / ".git").mkdir()
    (folder / "pkg").mkdir()
    (folder / "AGENTS.md").write_text("".join(ENGLISH.format(n) for n in range(2_000)))
    (folder / "pkg" / "AGENTS.md").write_text("The package comes first.\n")
    (folder / "pkg" / "x.py").write_text("x\n")
    play = stage(step("read_file", path="pkg/x.py"), {"text": "a"}, {"text": "b"}, settings=window(20_000))
    await play.run()
    assert "The package comes first." in str(play.requests[1].messages)
    async for _ in play.agent.compact():
        pass
    await play.run()
    assert "The package comes first." in f"{play.requests[-1].system}{play.requests[-1].messages}"
    counter = play.agent.parts.counter
    counter.prepare()
    assert sum(row.tokens for row in play.agent.account().rows if row.name == "Memory") <= 20_000 // 4
