"""Random histories under random steps: the view is always one that every provider takes, and nothing is ever lost."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from context_samples import SUMMARY, TIME, Rig, assert_valid, user
from deepagent.agent.model.types import ModelRequest, ToolSchema
from deepagent.agent.storage import DiskStorage
from deepagent.context.archive import parse
from deepagent.context.control import CannotDo, Control
from deepagent.context.entries import Compacted, CompactionReason, PromptPart
from deepagent.context.ladder import CannotUndo
from deepagent.context.messages import (
    AssistantMessage,
    Message,
    Part,
    Pointer,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    new_id,
    text_of,
)
from deepagent.context.record import Ask
from deepagent.context.session import Session
from deepagent.context.view import build_view
from stage import check_request

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files are synced at no cost, if the system has such a place."""
TOOLS = tuple(
    ToolSchema(name=name, description="", parameters={"type": "object"})
    for name in ("read_file", "write_file", "edit_file", "execute")
)
REASONS: tuple[CompactionReason, ...] = ("user", "trigger", "model", "overflow")
ODD = [
    "```\n````",
    "## Compaction x\n",
    "<!-- deepagent:message {} -->\n",
    "a\r\nb\rc\x00d",
    "日本 👍🏽",
    "⟦deepagent⟧ x",
    "~~~",
]


class History:
    """A session that random things happen to."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.storage = DiskStorage(folder / "work" / ".deepagents", folder / "home", prefix=".deepagents")
        self.session = Session.start(self.storage, workspace="/w", cwd="/w")
        self.window = self.chance.choice([2_000, 6_000, 16_000, 64_000])
        self.said: dict[str, Message] = {}
        self.rig = self.make_rig()

    def make_rig(self) -> Rig:
        """A ladder on the session as it is, with a model that writes good, empty or no summaries."""
        answers: list[Any] = [
            SUMMARY,
            "",
            OSError("down"),
            "nonsense, but words enough to be taken for one",
        ]
        return Rig(self.session, window=self.window, answers=[self.chance.choice(answers)])

    def text(self) -> str:
        """Words, odd things among them."""
        words = " ".join(
            self.chance.choices(["alpha", "beta", "src/x.py", "12,345", "`code`", *ODD], k=self.chance.randint(1, 30))
        )
        return words * self.chance.choice([1, 1, 1, 4, 30])

    def say(self, message: Message) -> None:
        """A message joins, by the ladder's way in, and is remembered as it was before that."""
        self.said[message.id] = message
        match message:
            case UserMessage():
                message = self.rig.ladder.admit_user(message)
            case ToolMessage():
                (message,) = self.rig.ladder.admit_results([message])
            case _:
                pass
        self.session.say(message)

    def call(self) -> ToolCall:
        name = self.chance.choice([tool.name for tool in TOOLS])
        arguments = {"path": self.chance.choice("abc"), "content": self.text()}
        return ToolCall(id=new_id(), name=name, arguments=arguments)

    def result(self, call: ToolCall) -> ToolMessage:
        log: dict[str, Any] = {"path": call.arguments["path"]}
        if call.name in {"write_file", "edit_file"}:
            log |= {"added": 1, "removed": 0}
        error = self.chance.random() < 0.1
        return ToolMessage(
            id=new_id(),
            time=TIME,
            call_id=call.id,
            tool=call.name,
            content=(Text(text=self.text()),),
            is_error=error,
            log=log,
        )

    def answer(self, *parts: Part) -> AssistantMessage:
        return AssistantMessage(id=new_id(), time=TIME, content=parts, model="m", stop="end")

    # What may happen

    def ask(self) -> None:
        self.say(user(self.text()))

    def talk(self) -> None:
        parts: list[Part] = [Text(text=self.text())]
        if self.chance.random() < 0.3:
            parts.insert(0, Reasoning(text=self.text(), data={"signature": "x"}))
        self.say(self.answer(*parts))

    def work(self) -> None:
        calls = [self.call() for _ in range(self.chance.randint(1, 6))]
        self.say(self.answer(*calls))
        answered = calls if self.chance.random() < 0.8 else calls[: self.chance.randint(0, len(calls))]
        for call in self.chance.sample(answered, len(answered)):
            self.say(self.result(call))

    def orphan(self) -> None:
        self.say(self.result(self.call()))

    def empty(self) -> None:
        self.session.say(self.answer(Reasoning(text="hm")))

    def note(self) -> None:
        note = UserMessage(id=new_id(), time=TIME, content=(Text(text="n"),), synthetic=True, part="memory")
        self.session.say(note)

    def fold(self) -> None:
        self.session.append(PromptPart(**self.session.header(), name="memory", sha256="", content=self.text()))

    async def compact(self) -> None:
        before = self.session.view
        ask = Ask(
            reason=self.chance.choice(REASONS), keep=self.chance.choice([1.0, 0.5]), model=self.chance.random() < 0.8
        )
        entry = await self.rig.ladder.compact(ask)
        if entry is not None and self.chance.random() < 0.3:
            with suppress(CannotUndo):
                self.rig.ladder.undo()
                assert self.session.view.messages == before.messages

    def undo(self) -> None:
        with suppress(CannotUndo):
            self.rig.ladder.undo()

    def trim(self) -> None:
        self.rig.ladder.trim()

    async def room(self) -> None:
        await self.rig.ladder.make_room()

    async def rescue(self) -> None:
        await self.rig.ladder.rescue(self.chance.choice([1, 2]))

    def by_hand(self) -> None:
        control = Control(ladder=self.rig.ladder)
        ids = [message.id for message in self.session.view.tail] or ["x"]
        with suppress(CannotDo):
            match self.chance.choice(["drop", "restore", "pin", "unpin"]):
                case "drop":
                    control.drop(self.chance.choice(ids))
                case "restore":
                    control.restore(self.chance.choice(ids))
                case "pin":
                    control.pin(self.text()[:60])
                case _:
                    control.unpin("1")

    def rewind(self) -> None:
        requests = self.session.requests()
        if requests and self.chance.random() < 0.3:
            with suppress(CannotDo):
                Control(ladder=self.rig.ladder).rewind(self.chance.choice(requests).id)

    def resume(self) -> None:
        if not self.said:
            return  # a session in which nothing was said has no log
        before = self.session.view
        self.session.close()
        self.session = Session.resume(self.storage, self.session.id)
        assert self.session.view == before
        self.rig = self.make_rig()

    # What must hold

    def check(self) -> None:
        """The view after a step."""
        session = self.session
        view = session.view
        assert view == build_view(session.entries)
        assert_valid(view.messages)
        if view.messages and view.messages[-1].role != "assistant":
            check_request(ModelRequest(system="s", messages=view.messages, tools=TOOLS))
        requests = session.requests()
        if requests and view.head is not None and requests[-1].id not in {m.id for m in view.tail}:
            assert requests[-1].id in view.head.requests or text_of(requests[-1])[:100] in view.head.shown
        elif requests:
            assert requests[-1] in view.messages
        if view.head is not None:
            room = self.rig.budget.head_limit + self.rig.budget.summary_limit + self.rig.budget.reattach_limit
            assert self.rig.counter.text(view.head.shown) < room + self.rig.budget.tokens // 10 + 400

    def check_nothing_lost(self) -> None:
        """Log, archive and offloaded files hold every text as it was."""
        logged = {m.id: m for m in (e.message for e in self.session.entries if e.kind == "message")}
        for message in self.said.values():
            now = logged[message.id]
            if isinstance(message, AssistantMessage) or isinstance(now, AssistantMessage):
                assert now == message
                continue
            for was, block in zip(message.content, now.content, strict=True):
                if not isinstance(block, Pointer):
                    assert block == was
                else:
                    name = block.path.removeprefix(".deepagents/")
                    assert isinstance(was, Text)
                    assert self.storage.read(name).decode() == was.text
        compactions = [entry for entry in self.session.entries if isinstance(entry, Compacted)]
        if not compactions:
            return
        sections = parse(self.storage.read(f"conversation_history/{self.session.id}.md")).sections
        archived = [message for section in sections for message in section.messages]
        assert len({message.id for message in archived}) == len(archived)
        assert all(logged[message.id] == message for message in archived)
        live = [message.id for message in self.session.messages()]
        for entry in compactions:
            if entry in self.session.live and entry.first_kept in live:
                assert set(live[: live.index(entry.first_kept)]) <= {message.id for message in archived}


async def run(seed: int, steps: int) -> None:
    """One history."""
    folder = Path(tempfile.mkdtemp(prefix="deepagent-test-", dir=MEMORY))
    try:
        history = History(seed, folder)
        things = [
            *[history.ask, history.talk, history.work] * 4,
            *(history.orphan, history.empty, history.note, history.fold, history.compact, history.undo, history.trim),
            *(history.room, history.rescue, history.by_hand, history.by_hand, history.rewind, history.resume),
        ]
        for _ in range(steps):
            done = history.chance.choice(things)()
            if done is not None:
                await done
            history.check()
        history.check_nothing_lost()
        history.session.close()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("seed", range(8))
async def test_a_random_history(seed: int) -> None:
    await run(seed, 60)


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
async def test_many_random_histories(block: int) -> None:
    for seed in range(1_000 + block * 50, 1_050 + block * 50):
        await run(seed, 80)
