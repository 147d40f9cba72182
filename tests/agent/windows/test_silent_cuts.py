"""Servers that cut a long prompt without a word: it is noticed, the answer is withdrawn, and the work goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from deepagent.agent.events import AnswerWithdrawn
from deepagent.context.entries import Compacted, UsageReported
from deepagent.context.messages import AssistantMessage
from server import Answer, ModelServer

if TYPE_CHECKING:
    from .conftest import Talk

Server = Callable[..., "ModelServer"]
Make = Callable[..., "Talk"]
WINDOW = 8_192


def quarter(body: Any) -> int:
    """A token for four characters."""
    return len(json.dumps(body)) // 4


def cutting(body: Any) -> int:
    """What a server reads that keeps no more than its window."""
    return min(quarter(body), WINDOW)


def prompt(number: int, words: int = 1_000) -> str:
    return f"question {number} " + "with rather many words in it " * (words // 6)


def answers(*texts: str) -> list[Answer]:
    return [{"text": text} for text in texts]


async def test_a_prompt_that_is_cut_at_once(model_server: Server, talk: Make) -> None:
    server = model_server(*answers("Hello.", *("words and more words " * 1_300 for _ in range(3))))
    one = talk(server)
    for text in ("hello", "say much", "say more", "say still more"):  # reports come from the next request on
        await one.say(text)
    server.count, server.answers = cutting, answers("Given to half a prompt.", *["Given to all of it."] * 4)
    sent = len(server.bodies)
    ended = await one.say("the newest question")
    assert ended.text == "Given to all of it."
    assert one.window == (WINDOW, "overflow")
    assert one.on_windows == [
        "window: 8,192 tokens from now on (the server took 8,192 tokens of a longer request; 32,000 were assumed)"
    ]
    withdrawn = [event.reason for event in one.events if isinstance(event, AnswerWithdrawn)]
    assert withdrawn == ["the server took only 8,192 tokens of the request; it is made shorter"]
    assert [quarter(body) > WINDOW for body in server.bodies[sent:]] == [
        True,
        *[False] * (len(server.bodies) - sent - 1),
    ]
    assert "the newest question" in server.bodies[-1]["messages"][-1]["content"]
    said = [m.text for m in one.agent.session.view.tail if isinstance(m, AssistantMessage)]
    assert "Given to half a prompt." not in said


async def test_a_conversation_that_grows_into_the_cut(model_server: Server, talk: Make) -> None:
    server = model_server(count=cutting)
    one = talk(server)
    for number in range(12):
        server.answers[:] = answers(*(f"Answer {number}." for _ in range(4)))
        assert (await one.say(prompt(number))).outcome == "success"
    taken = [quarter(body) for body in server.bodies]
    assert one.window == (WINDOW, "overflow")
    assert sum(isinstance(event, AnswerWithdrawn) for event in one.events) == 1
    assert max(taken) < 1.3 * WINDOW, "noticed at the first turn that brought nothing new"
    assert any(isinstance(entry, Compacted) for entry in one.agent.session.entries)
    assert talk(server).window == (WINDOW, "overflow")


async def test_what_was_given_to_a_cut_prompt_is_paid_for_and_teaches_no_ratio(
    model_server: Server, talk: Make
) -> None:
    server = model_server(count=cutting)
    one = talk(server)
    for number in range(8):
        server.answers[:] = answers(*(f"Answer {number}." for _ in range(4)))
        await one.say(prompt(number))
    reports = [e for e in one.agent.session.entries if isinstance(e, UsageReported) and e.purpose == "turn"]
    assert len(reports) == sum("tools" in body for body in server.bodies) == 9
    assert sum(report.counted == 0 for report in reports) == 1
    assert one.gauge.used < WINDOW
    assert not any("it may have cut the prompt" in text for text in one.notices)


async def test_an_answer_that_found_no_room_for_a_word(model_server: Server, talk: Make) -> None:
    server = model_server(count=quarter)
    one = talk(server)
    for number in range(4):
        server.answers[:] = answers(f"Answer {number}.")
        await one.say(prompt(number))
    empty: Answer = {"text": "", "finish": "length", "usage": {"completion_tokens": 1}}
    server.answers[:] = [empty, *answers("There it is.", "There it is.", "There it is.")]
    full = quarter(server.bodies[-1])
    ended = await one.say(prompt(5))
    assert ended.text == "There it is."
    assert one.window[1] == "overflow"
    assert full < one.window[0] < 2 * full
    assert quarter(server.bodies[-1]) < one.window[0]


async def test_an_empty_answer_far_from_a_stated_window_says_nothing_of_it(model_server: Server, talk: Make) -> None:
    routes = {"/v1/models": {"data": [{"id": "m", "max_model_len": 65_536}]}}
    empty: Answer = {"text": "", "finish": "length", "usage": {"completion_tokens": 1}}
    server = model_server(empty, *answers("There it is."), routes=routes, count=quarter)
    one = talk(server)
    assert (await one.say(prompt(1))).text == "There it is."
    assert one.window == (65_536, "server")
    assert not any(isinstance(event, AnswerWithdrawn) for event in one.events)


async def test_servers_that_report_only_what_is_new_are_let_be(model_server: Server, talk: Make) -> None:
    known: list[int] = [0]

    def new(body: Any) -> int:
        whole = quarter(body)
        known[0], fresh = whole, whole - known[0]
        return fresh

    server = model_server(count=new)
    one = talk(server)
    for number in range(4):
        server.answers[:] = answers(f"Answer {number}.")
        assert (await one.say(prompt(number))).text == f"Answer {number}."
    assert one.window == (32_000, "assumed")
    assert not any(isinstance(event, AnswerWithdrawn) for event in one.events)


@pytest.mark.long
async def test_long_thoughts_that_are_not_sent_again_are_no_cut(model_server: Server, talk: Make) -> None:
    server = model_server(count=quarter)
    one = talk(server)
    for number in range(5):
        server.answers[:] = [{"thinking": "I think of this and that. " * 800, "text": f"Answer {number}."}]
        assert (await one.say(prompt(number, 60))).text == f"Answer {number}."
    assert one.window == (32_000, "assumed")
    assert not any(isinstance(event, AnswerWithdrawn) for event in one.events)
    assert one.gauge.used < 1.1 * quarter(server.bodies[-1]) + 100
