"""Nothing that the task needs is lost: through ten useless summaries, and over two hundred long reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.runtime import RecallAsk
from deepagent.agent.tokenizer import load_encoder
from deepagent.context.entries import Compacted, Shortened
from deepagent.context.messages import AssistantMessage, ToolMessage, text_of
from stage import Stage

NONSENSE = "## SUMMARY\nThe quick brown fox jumps over the lazy dog, and nothing else is to be said about any of it.\n"
RULES, FACTS, PINNED = 40, 30, 10


def rule(number: int) -> str:
    """What the user asks for, once."""
    return f"Rule {number}: module m{number} keeps its {number * 37}-line limit."


def fact(number: int) -> str:
    """What a command said, once."""
    return f"the answer of probe {number} is {number * 7919 + 10_000}"


async def test_ten_compactions_with_useless_summaries(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = []
    for number in range(RULES):
        command = f"echo '{fact(number)}'; seq 1 300" if number < FACTS else "seq 1 300"
        if number == 1:
            made = {"name": "write_file", "arguments": {"path": "made.txt", "content": "1\n2\n3\n"}}
            check = {"name": "execute", "arguments": {"command": "test -e nowhere"}}
            steps.append({"calls": [made, check]})
        steps += [{"calls": [{"name": "execute", "arguments": {"command": command}}]}, {"text": "Noted. " * 40}]
    play = Stage(
        tmp_path / "work",
        *steps,
        {"text": "The last answer."},
        settings={"context": {"window": 64_000}},
        script={"summaries": [NONSENSE] * 20},
    )
    for number in range(RULES):
        await play.run(rule(number))
        assert play.ended.outcome == "success"
        if number < PINNED:
            play.agent.control.pin(fact(number))
        if number % 4 == 3:
            play.events += [event async for event in play.agent.compact()]
    assert sum(isinstance(entry, Compacted) for entry in play.entries()) == 10
    await play.run("And now?")
    last = "\n".join(text_of(m) for m in play.requests[-1].messages if not isinstance(m, AssistantMessage))
    assert all(rule(number) in last for number in range(RULES))
    assert all(fact(number) in last for number in range(PINNED))
    assert all(fact(number) not in last for number in range(PINNED, FACTS - 4))
    encode = load_encoder()
    services = play.agent._loop.toolbox._services
    for number in range(PINNED, FACTS):
        answer = await services.recall(RecallAsk(query=f"answer probe {number}"), 2_000)
        assert fact(number) in answer.text, number
        assert len(encode(answer.text)) < 2_000
    head = play.agent.session.view.head
    assert head is not None
    for line in ("- changed made.txt (+3 −0 lines)", "- last check: `test -e nowhere`, exit 1"):
        assert line in head.shown
    await play.close()


READS = 200


@pytest.mark.long
async def test_a_needle_in_each_tenth_of_two_hundred_files(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    encode = load_encoder()
    for number in range(READS):
        lines = [
            f"value_{line} = compute_{number}({line * number % 97}, 'some text of file {number}')"
            for line in range(140)
        ]
        if number % 10 == 0:
            lines[70] = f"# needle {number}: the code word is zebra{number * 31}"
        (work / f"f{number}.py").write_text("\n".join(lines))
    reads = [
        {"text": f"I read file {n}.", "calls": [{"name": "read_file", "arguments": {"path": f"f{n}.py"}}]}
        for n in range(READS)
    ]
    asked = [{"calls": [{"name": "recall", "arguments": {"query": f'"needle {n}"'}}]} for n in range(0, READS, 10)]
    play = Stage(
        work,
        *reads,
        {"text": "All read."},
        *asked,
        {"text": "All found."},
        settings={"context": {"window": 128_000}},
        script={"usage": "estimate"},
    )
    await play.run("Read all files.")
    assert play.ended.outcome == "success"
    summaries = [request for request in play.requests if request.purpose == "summary"]
    assert len(summaries) <= 3
    assert any(isinstance(entry, Shortened) and entry.results for entry in play.entries())
    before = {message.id for message in play.agent.session.messages()}
    await play.run("Tell me every code word.")
    found = [text_of(m) for m in play.agent.session.messages() if isinstance(m, ToolMessage) and m.id not in before]
    assert len(found) == READS // 10
    for number, text in zip(range(0, READS, 10), found, strict=True):
        assert f"zebra{number * 31}" in text
        assert len(encode(text)) < 2_000
    assert play.agent.gauge().used < play.agent.gauge().trigger
    await play.close()
