"""The gauge before each request against the provider's report of it, with a server that counts in its own way."""

from __future__ import annotations

import json
import random
import time
from asyncio import sleep
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deepagent
import pytest
from deepagent.agent.events import CallStarted
from deepagent.agent.tokenizer import load_encoder
from deepagent.context.tokens import Counter
from server import ModelServer

if TYPE_CHECKING:
    from .conftest import Talk

Server = Callable[..., "ModelServer"]
Make = Callable[..., "Talk"]
TURNS = 12
TEMPLATE = 9
"""Tokens that the server's chat template adds to each message."""
ROOT = Path(str(deepagent.__file__)).parent
RANDOM = random.Random(11)
CHINESE = "窗口大小服务器返回测试函数如果没有说明就使用默认值我们需要检查文件内容然后修改代码运行结果显示错误"


def text_of(number: int) -> str:
    """Prose; a different piece each time."""
    words = (ROOT / "docs" / "configuration.md").read_text().split()
    RANDOM.shuffle(words)
    return f"{number} " + " ".join(words[:900])


def code_of(number: int) -> str:
    source = sorted((ROOT / "agent").glob("*.py"))[number]
    return source.read_text()[:7_000]


def chinese_of(number: int) -> str:
    return f"{number} " + "".join(RANDOM.choice(CHINESE) if RANDOM.random() < 0.9 else "，" for _ in range(2_500))


def json_of(_: int) -> str:
    rows = [{"id": RANDOM.randrange(10**9), "name": f"user{n}", "score": RANDOM.random()} for n in range(70)]
    return json.dumps(rows)


KINDS: dict[str, Callable[[int], str]] = {
    "text": text_of,
    "code": code_of,
    "chinese": chinese_of,
    "json": json_of,
}


@pytest.fixture(scope="module")
def other_tokenizer() -> Callable[[str], int]:
    """An older encoding than ours: it needs half as many tokens again for Chinese."""
    load_encoder()
    import tiktoken

    encode = tiktoken.get_encoding("cl100k_base").encode_ordinary
    known: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in known:
            known[text] = len(encode(text))
        return known[text]

    return count


def counting(count: Callable[[str], int]) -> Callable[[Any], int]:
    """Counts a whole request as a server does: tools, messages, calls, and what the template adds."""

    def tokens(body: Any) -> int:
        total = count(json.dumps(body.get("tools", [])))
        for message in body["messages"]:
            total += TEMPLATE + count(message.get("content") or "")
            total += sum(count(json.dumps(call["function"])) for call in message.get("tool_calls", ()))
        return total

    return tokens


async def errors_of(one: Talk, server: ModelServer, kinds: list[str]) -> list[float]:
    """How far the gauge was off before each request, as a share of what the server then reported."""
    before: list[int] = []

    def look(event: object) -> None:
        if isinstance(event, CallStarted):
            before.append(one.gauge.used)

    one.seen = look
    for number in range(TURNS):
        content = KINDS[kinds[number % len(kinds)]]
        path = one.agent.parts.workspace.root / f"file{number}.txt"
        path.write_text(content(number))
        call = {"name": "read_file", "arguments": {"path": path.name}, "id": f"call_{number}"}
        server.answers.append({"calls": [call]})
        server.answers.append({"text": f"Read. {content(number)[:200]}"})
        assert (await one.say(content(number))).outcome == "success"
    assert server.count is not None
    reported = [server.count(body) for body in server.bodies]
    assert len(before) == len(reported) == 2 * TURNS
    return [used / report - 1 for used, report in zip(before, reported, strict=True)][1:]


@pytest.mark.parametrize("kind", KINDS)
async def test_after_the_first_report_the_gauge_is_within_two_percent_of_the_next(
    model_server: Server, talk: Make, other_tokenizer: Callable[[str], int], kind: str
) -> None:
    server = model_server(count=counting(other_tokenizer))
    one = talk(server, context={"window": 400_000})
    errors = await errors_of(one, server, [kind])
    assert max(map(abs, errors)) < 0.02, errors


async def test_a_session_of_all_kinds_is_not_far_off(
    model_server: Server, talk: Make, other_tokenizer: Callable[[str], int]
) -> None:
    server = model_server(count=counting(other_tokenizer))
    one = talk(server, context={"window": 400_000})
    errors = await errors_of(one, server, ["text", "chinese", "code", "json"])
    assert max(map(abs, errors[2:])) < 0.04, errors
    assert sum(map(abs, errors[4:])) / len(errors[4:]) < 0.01, errors


@pytest.mark.long
async def test_counting_a_line_of_five_megabytes_lets_others_run() -> None:
    from asyncio import create_task, to_thread

    counter = Counter(load_encoder)
    counter.prepare()
    line = "".join(RANDOM.choices("abcdefgh ,.;{}0123456789", k=5_000_000))
    counting = create_task(to_thread(counter.text, line))
    latest = 0.0
    while not counting.done():
        began = time.perf_counter()
        await sleep(0.01)
        latest = max(latest, time.perf_counter() - began - 0.01)
    assert await counting > 1_000_000
    assert latest < 0.1
