"""Two hundred model calls in a small window: no request is too long, nothing that was said is lost."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.model.scripted import ScriptedModel, tokens
from deepagent.agent.model.types import Delta, ModelRequest
from deepagent.agent.tokenizer import load_encoder
from deepagent.agent.tool import tool
from deepagent.context.archive import parse
from deepagent.context.entries import Compacted, Offloaded, Shortened
from deepagent.context.messages import (
    AssistantMessage,
    Message,
    Pointer,
    ToolMessage,
    UserMessage,
    shown,
    text_of,
)
from stage import Stage

WINDOW = 32_000
PROMPTS, CALLS = 20, 10
"""Prompts, and model calls for each: all but the last run a tool."""
SIZES = (20, 150, 900, 4_000, 60, 2_300, 300, 12_000, 500, 1_200)
"""Words of the tools' results, in turn; from some 2,800 tokens on they go to files."""
LONG_PROMPT = 11
"""The prompt that is too long to stay in the view."""
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau".split()


def words(seed: str, count: int) -> str:
    """Text that no other seed gives, in lines of twelve words."""
    chance = random.Random(seed)
    chosen = [f"{seed}:", *chance.choices(WORDS, k=count)]
    return "\n".join(" ".join(chosen[at : at + 12]) for at in range(0, len(chosen), 12)) + "\n"


def prompt_text(number: int) -> str:
    """What the user asks for."""
    if number == LONG_PROMPT:
        return words(f"request {number}", 9_000)
    return f"request {number}: look into {words(f'r{number}', 12)}"


def answer_text(position: int) -> str:
    """What the model says beside its call, or in the end."""
    return f"answer {position}: {words(f'a{position}', 25)}".strip()


def content(position: int) -> str:
    """What the model writes to a file."""
    return words(f"file {position}", 450)


def steps() -> Iterator[dict[str, Any]]:
    """Reads of all sizes, every seventh answer a file that is written, every tenth the end of a run."""
    for position in range(PROMPTS * CALLS):
        if position % CALLS == CALLS - 1:
            yield {"text": answer_text(position)}
        elif position % 7 == 3:
            arguments = {"path": f"out-{position}.txt", "content": content(position)}
            yield {"text": answer_text(position), "calls": [{"name": "write_file", "arguments": arguments}]}
        else:
            yield {"text": answer_text(position), "calls": [{"name": "fetch", "arguments": {"number": position}}]}


def size_of(number: int) -> int:
    """Words of a result."""
    return SIZES[(number * 7) % len(SIZES)]


@tool(access="read")
async def fetch(number: int) -> str:
    """Fetch a page.

    Args:
        number: Which.
    """
    return words(f"page {number}", size_of(number))


class Watched:
    """A model that notes how many steps of the ladder lie before each request."""

    name = "scripted"

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model
        self.steps: Callable[[], int] = lambda: 0
        self.ladder: list[int] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        if request.purpose == "turn":
            self.ladder.append(self.steps())
        async for delta in self._model.stream(request):
            yield delta

    async def aclose(self) -> None:
        await self._model.aclose()


@pytest.fixture(scope="module")
def count() -> Callable[[str], int]:
    """Tokens of a text by the real tokenizer; each text is counted once."""
    encode = load_encoder()
    known: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in known:
            known[text] = len(encode(text))
        return known[text]

    return count


def texts(message: Message) -> Iterator[str]:
    """All that a message takes to the model."""
    if not isinstance(message, AssistantMessage):
        yield from map(shown, message.content)
        return
    yield message.text
    for call in message.calls:
        yield call.name
        yield json.dumps(dict(call.arguments), ensure_ascii=False)


def size(request: ModelRequest, count: Callable[[str], int]) -> int:
    """Tokens of a whole request, a few for the frame of each message included."""
    schemas = (json.dumps([t.name, t.description, dict(t.parameters)]) for t in request.tools)
    messages = sum(4 + sum(map(count, texts(message))) for message in request.messages)
    return count(request.system) + sum(map(count, schemas)) + messages


def open_stage(folder: Path, model: Watched, keep: Sequence[str]) -> Stage:
    """A stage whose results of some tools stay."""
    settings = {"permissions": {"mode": "yolo"}, "context": {"window": WINDOW, "keep_results": list(keep)}}
    return Stage(folder, model=model, settings=settings, tools=(fetch,))


GOOD = "## SESSION INTENT\nLook into pages.\n## SUMMARY\nPages were fetched, files written.\n## NEXT STEPS\nGo on."


NO_SUMMARY = [{"error": {"kind": "bad_request"}}]


@pytest.mark.parametrize(
    ("summaries", "keep"),
    [
        pytest.param([GOOD] * 99, ["fetch"], id="model"),
        pytest.param(NO_SUMMARY, ["fetch"], id="harness", marks=pytest.mark.long),
        pytest.param([GOOD] * 99, [], id="trimmed", marks=pytest.mark.long),
    ],
)
async def test_two_hundred_calls(
    summaries: list[Any], keep: list[str], tmp_path: Path, count: Callable[[str], int]
) -> None:
    usage = {"usage": "estimate"} if len(summaries) > 1 else {}
    model = Watched(ScriptedModel({"steps": list(steps()), "summaries": summaries, **usage}))
    play = open_stage(tmp_path / "work", model, keep)
    session = play.agent.session
    model.steps = lambda: sum(isinstance(e, Compacted | Offloaded | Shortened) for e in session.entries)
    for number in range(PROMPTS):
        await play.run(prompt_text(number))
        assert play.ended.outcome == "success"
    turns = [request for request in play.requests if request.purpose == "turn"]
    assert len(turns) == PROMPTS * CALLS
    assert all(size(request, count) < WINDOW for request in play.requests)
    measured = tokens if usage else partial(size, count=count)  # as the provider counts, if it says anything
    assert all(measured(request) < WINDOW * 0.87 for request in play.requests)
    _check_prefixes(turns, model.ladder)
    _check_requests_of_the_user(turns)
    _check_originals(play)
    compactions = [entry for entry in session.entries if isinstance(entry, Compacted)]
    assert len(compactions) >= 3 if keep else len(compactions) <= 1
    assert {entry.by for entry in compactions} == {"model" if len(summaries) > 1 else "harness"}
    shortened = [entry for entry in session.entries if isinstance(entry, Shortened)]
    assert shortened
    assert any(entry.results for entry in shortened) is not bool(keep)
    before = play.view
    await play.reopen()
    assert play.view == before
    await play.close()


def _check_prefixes(turns: Sequence[ModelRequest], ladder: Sequence[int]) -> None:
    """Each request begins with the one before, unless a step of the ladder lies between them."""
    unchanged = 0
    for (before, now), (steps_before, steps_now) in zip(pairwise(turns), pairwise(ladder), strict=True):
        assert (before.system, before.tools) == (now.system, now.tools)
        if steps_before == steps_now:
            unchanged += 1
            assert now.messages[: len(before.messages)] == before.messages
    assert unchanged > len(turns) * 0.8


def _check_requests_of_the_user(turns: Sequence[ModelRequest]) -> None:
    """What the user asked for is in every later request: word for word, or the beginning of what is too long."""
    for position, request in enumerate(turns):
        said = "\n".join(text_of(m) for m in request.messages if isinstance(m, UserMessage))
        for number in range(position // CALLS + 1):
            text = prompt_text(number)
            assert (text.split("\n")[0] if number == LONG_PROMPT else text.strip()) in said, (position, number)


def _check_originals(play: Stage) -> None:
    """Log and offloaded files hold every text as it was; the archive holds every message that left the view."""
    logged = play.logged()
    storage = play.agent.session.storage
    held = {text for message in logged for text in _held(message, play.folder)}
    for position in range(PROMPTS * CALLS):
        assert answer_text(position) in held
        if position % CALLS == CALLS - 1:
            continue
        assert (content(position) if position % 7 == 3 else words(f"page {position}", size_of(position))) in held
    assert all(prompt_text(number) in held for number in range(PROMPTS))
    archived = {m.id: m for s in parse(storage.read(play.agent.session.archive.name)).sections for m in s.messages}
    kept = {message.id for message in play.agent.session.view.tail}
    assert archived == {message.id: message for message in logged if message.id not in kept}
    moved = [b.pointer for e in play.entries() if isinstance(e, Offloaded) for b in e.blocks]
    assert all(_read(pointer, play.folder) for pointer in moved)
    assert sum(isinstance(b, Pointer) for m in logged if isinstance(m, ToolMessage) for b in m.content) > 20


def _held(message: Message, folder: Path) -> Iterator[str]:
    """The texts of a message: as the log has them, or from the file to which they went."""
    if isinstance(message, AssistantMessage):
        yield message.text
        yield from (str(call.arguments["content"]) for call in message.calls if call.name == "write_file")
        return
    for block in message.content:
        yield _read(block, folder) if isinstance(block, Pointer) else shown(block)


def _read(pointer: Pointer, folder: Path) -> str:
    data = (folder / pointer.path).read_bytes()
    assert hashlib.sha256(data).hexdigest() == pointer.sha256
    return data.decode()
