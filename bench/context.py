"""What the context layer itself costs: the ladder on a history of a million tokens, and a turn early and late.

    .venv/bin/python bench/context.py

The ladder: plan, head and view of a compaction, and the same for shortening, once everything was counted; the aim is
under 100 ms. A turn: `make_room`, the view and the count of a request at turn 10, 100 and 1,000; the aim is that it
does not grow. Files lie in a temporary folder; no model is asked.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from deepagent.agent.storage import DiskStorage
from deepagent.agent.tokenizer import load_encoder
from deepagent.context.budget import Budget, ContextSettings, Window, budget_for
from deepagent.context.compact import Compactor
from deepagent.context.entries import Compacted, Shortened
from deepagent.context.facts import gather
from deepagent.context.head import compose_head
from deepagent.context.ladder import Ladder
from deepagent.context.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    new_id,
    timestamp,
)
from deepagent.context.meter import Meter
from deepagent.context.offload import Offloader
from deepagent.context.record import Ask, Recorder
from deepagent.context.session import Session
from deepagent.context.shorten import plan_shortening
from deepagent.context.tokens import Counter

Result = TypeVar("Result")
TOKENS = 1_000_000
TURNS = 1_000


def turn(number: int) -> tuple[Message, ...]:
    """A request, a written file, a command and an answer: about 1,100 tokens in six messages."""
    write = ToolCall(
        id=f"w{number}", name="write_file", arguments={"path": f"src/m{number}.py", "content": _lines(number, 75)}
    )
    run = ToolCall(id=f"r{number}", name="execute", arguments={"command": "pytest -q"})
    return (
        UserMessage(id=new_id(), time=timestamp(), content=(Text(text=f"make part {number}, please"),)),
        _answer(write),
        _result(write, "75 lines written", {"path": f"src/m{number}.py", "added": 75, "removed": 0}),
        _answer(run),
        _result(run, _lines(number, 20), {"command": "pytest -q", "exit_code": 0}),
        AssistantMessage(id=new_id(), time=timestamp(), content=(Text(text="Done."),), model="bench", stop="end"),
    )


def _lines(number: int, count: int) -> str:
    return "".join(f"value_{line} = compute({number}, {line * number % 97})\n" for line in range(count))


def _answer(call: ToolCall) -> AssistantMessage:
    return AssistantMessage(id=new_id(), time=timestamp(), content=(call,), model="bench", stop="tool_calls")


def _result(call: ToolCall, text: str, log: dict[str, str | int]) -> ToolMessage:
    return ToolMessage(
        id=new_id(), time=timestamp(), call_id=call.id, tool=call.name, content=(Text(text=text),), log=dict(log)
    )


def make_ladder(session: Session, counter: Counter, window: int) -> Ladder:
    """A ladder that tells nobody and asks no model."""
    settings = ContextSettings()
    meter = Meter(counter, "bench")
    return Ladder(
        session=session,
        counter=counter,
        meter=meter,
        settings=settings,
        budget=budget_for(Window(tokens=window, source="user"), settings),
        offloader=Offloader(storage=session.storage, session=session.id, counter=counter, can_read=lambda: True),
        compactor=Compactor(
            session=session,
            counter=counter,
            meter=meter,
            recorder=Recorder(session=session, counter=counter, meter=meter, summarizer=lambda: None, on_trouble=print),
            on_start=lambda _: None,
        ),
        on_step=lambda _: None,
        on_trouble=print,
    )


def timed(name: str, work: Callable[[], Result], spent: list[float]) -> Result:
    """Runs `work`, prints its milliseconds and adds them to `spent`."""
    began = perf_counter()
    result = work()
    spent.append((perf_counter() - began) * 1_000)
    print(f"  {name:<34} {spent[-1]:8.2f} ms")
    return result


def bench_ladder(session: Session, ladder: Ladder) -> None:
    """The ladder's steps on what the session holds."""
    budget, counter, spent = ladder.budget, ladder.counter, list[float]()
    count = ladder.meter.count(session.view.messages)
    print(f"{count:,} tokens in {len(session.view.messages):,} messages, all counted")
    timed("size of the request", lambda: ladder.used, spent)
    stubs = timed("plan of the shortening", lambda: plan_shortening(session.view.tail, budget.keep, counter), spent)
    entry = Shortened(**session.header(), stubs=stubs.stubs, tokens_saved=stubs.tokens_saved)
    timed(f"view with {len(stubs.stubs):,} stubs", lambda: _apply(session, entry), spent)
    plan = timed("plan of the cut", lambda: ladder.compactor.plan(budget, Ask(reason="user")), spent)
    assert plan is not None
    text = timed("facts and head", lambda: _head(session, plan.evicted, budget, counter), spent)
    compacted = _compacted(session, plan.kept[0].id, text, len(plan.evicted))
    timed("view after the compaction", lambda: _apply(session, compacted), spent)
    print(f"  {'together':<34} {sum(spent):8.2f} ms (aim: under 100)")


def _apply(session: Session, entry: Shortened | Compacted) -> None:
    """The entry's part in the view; what the log costs is the disk's."""
    session._take(entry)
    assert session.view.messages


def _head(session: Session, evicted: tuple[Message, ...], budget: Budget, counter: Counter) -> str:
    ids = {message.id for message in evicted}
    left = [message for message in session.messages() if message.id in ids]
    requests = [message for message in left if isinstance(message, UserMessage)]
    return compose_head(
        requests=requests,
        summary="the record",
        facts=gather(left),
        todos=(),
        archive="archive.md",
        evicted=len(left),
        budget=budget,
        counter=counter,
    ).text


def _compacted(session: Session, first_kept: str, text: str, messages: int) -> Compacted:
    return Compacted(
        **session.header(),
        first_kept=first_kept,
        summary="the record",
        by="harness",
        shown=text,
        requests=(),
        archive="archive.md",
        archive_start=0,
        archive_end=0,
        tokens_before=0,
        tokens_after=0,
        messages=messages,
        files_read=(),
        files_changed=(),
        reason="user",
    )


async def bench_turns(session: Session, ladder: Ladder) -> None:
    """What the context layer does between an answer and the next request, as the history grows."""
    spent: list[float] = []
    for number in range(TURNS + 5):
        for message in turn(number):
            session.say(message)
        began = perf_counter()
        await ladder.make_room()
        ladder.meter.count(session.view.messages)
        assert ladder.used.tokens
        spent.append((perf_counter() - began) * 1_000)
    for number in (10, 100, TURNS):
        around = statistics.median(spent[number - 5 : number + 5])
        print(f"  turn {number:>5}: {around:6.3f} ms")


def main() -> None:
    """Prints both tables."""
    counter = Counter(load_encoder)
    counter.prepare()
    with tempfile.TemporaryDirectory() as folder:
        storage = DiskStorage(Path(folder) / "work", Path(folder) / "home", prefix=".deepagents")
        print("A turn's own time, counting of its new messages included")
        session = Session.start(storage, workspace=folder, cwd=folder)
        ladder = make_ladder(session, counter, 4 * TOKENS)
        asyncio.run(bench_turns(session, ladder))
        number = TURNS + 5
        while ladder.meter.count(session.view.messages) < TOKENS:
            for message in turn(number := number + 1):
                session.say(message)
        bench_ladder(session, make_ladder(session, counter, TOKENS + TOKENS // 5))
        session.close()


if __name__ == "__main__":
    main()
