"""`recall` as the model has it: one call finds what left the view, another reads any of it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from deepagent.agent.tokenizer import load_encoder
from deepagent.context.entries import Compacted
from deepagent.context.messages import ToolMessage, text_of
from stage import Stage

Make = Callable[..., "Stage"]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def results(play: Stage, prompt: str = "go") -> list[str]:
    """The results of a run."""
    before = {m.id for m in play.agent.session.messages()}
    await play.run(prompt)
    assert play.ended.outcome == "success", play.ended
    new = (m for m in play.agent.session.messages() if m.id not in before)
    return [text_of(m) for m in new if isinstance(m, ToolMessage)]


async def test_a_needle_that_left_the_view_is_found_in_one_call(stage: Make) -> None:
    play = stage(
        call("read_file", path="hay.txt"),
        {"text": "Read. " + "word " * 800},
        {"text": "More. " + "word " * 800},
        call("recall", query="which port"),
        {"text": "Found."},
        settings={"context": {"window": 16_000}},
    )
    (play.folder / "hay.txt").write_text("\n".join(f"line {n} of hay" for n in range(60)) + "\nthe port is 48213\n")
    await play.run("look for the port")
    await play.run("and more")
    async for _ in play.agent.compact():
        pass
    assert any(isinstance(entry, Compacted) for entry in play.entries())
    assert "48213" not in str(play.view)
    (found,) = await results(play)
    assert "the port is 48213" in found
    assert len(load_encoder()(found)) < 2_000
    assert "in view" not in found


async def test_arguments_that_became_stubs_are_read_back_byte_for_byte(stage: Make) -> None:
    content = "".join(f"print({n})  # <|endoftext|> é 日本\n" for n in range(120))
    steps = [call("write_file", path="x.py", content=content), {"text": "word " * 1_500}]
    play = stage(*steps, call("recall", id="{{id}}", lines="1-"), {"text": "Done."})
    await play.run("write")
    written = next(m for m in play.agent.session.messages() if m.role == "assistant" and m.calls)
    read = ""
    at = "1-"
    services = play.agent._loop.toolbox._services
    from deepagent.agent.runtime import RecallAsk

    for _ in range(40):
        answer = await services.recall(RecallAsk(id=f"{written.id}#2", lines=at), 700)
        rows = [line.partition("→") for line in answer.text.split("\n") if "→" in line and line[0].isdigit()]
        for place, _, text in rows:
            if "@" not in place and read:
                read += "\n"
            read += text
        onward = [line for line in answer.text.split("\n") if line.startswith("There is more")]
        if not onward:
            break
        at = onward[0].split('lines="')[1].split('"')[0]
    assert read == content


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "give a query to search, or an id to read"),
        ({"id": "nothing"}, "there is no message 'nothing'"),
        ({"id": "#"}, "is no id"),
        ({"query": "(", "mode": "regex"}, "the regular expression cannot be read"),
        ({"query": "zebra"}, "0 passages in this session with all the words"),
    ],
)
async def test_what_cannot_be_found_or_read(stage: Make, arguments: dict[str, str], said: str) -> None:
    play = stage(call("recall", **arguments), {"text": "Done."})
    (found,) = await results(play)
    assert said in found


async def test_another_session_of_the_project_is_searched_if_asked(stage: Make) -> None:
    first = stage({"text": "The secret word is xylophone."})
    await first.run("tell me")
    await first.close()
    play = stage(
        call("recall", query="xylophone"), call("recall", query="xylophone", sessions="all"), {"text": "Done."}
    )
    here, everywhere = await results(play)
    assert "0 passages in this session" in here
    assert f"{first.agent.session.id}/" in everywhere
    assert "The secret word is xylophone." in everywhere


async def test_its_own_calls_are_not_found(stage: Make) -> None:
    play = stage(call("recall", query="quagga"), call("recall", query="quagga"), {"text": "Done."})
    for found in await results(play):
        assert "0 passages" in found


async def test_secrets_stay_masked(stage: Make) -> None:
    secret = "sk-test-0123456789abcdef"
    play = stage(
        {"text": "word"},
        call("recall", query=secret),
        {"text": "Done."},
        environ={"OPENAI_API_KEY": secret},
    )
    await play.run(f"the key is {secret}")
    (found,) = await results(play)
    assert secret not in found + json.dumps([str(e) for e in play.entries()])


async def test_what_is_a_stub_in_the_view_is_not_said_to_be_in_view(stage: Make) -> None:
    content = "quagga line\n" * 400
    play = stage(
        call("write_file", path="x.py", content=content),
        {"text": "word " * 3_000},
        call("recall", query="quagga"),
        {"text": "Done."},
        settings={"context": {"window": 16_000}},
    )
    await play.run("write")
    play.agent._ladder.trim()
    (found,) = await results(play)
    assert "quagga line" in found
    assert "in view" not in found
