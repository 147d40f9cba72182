"""What the context layer's tests are made of: messages by hand, random messages and entries, and a session's ladder."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from deepagent.context.budget import Budget, ContextSettings, Window, WindowSource, budget_for
from deepagent.context.compact import Compactor
from deepagent.context.entries import (
    ArgumentStub,
    Compacted,
    CompactionUndone,
    Ended,
    Entry,
    MessageLogged,
    ModelChanged,
    Note,
    Offloaded,
    OffloadedBlock,
    PromptPart,
    SessionStarted,
    Shortened,
    Todo,
    TodosWritten,
    Usage,
    UsageReported,
)
from deepagent.context.ladder import Ladder, Step
from deepagent.context.messages import (
    AssistantMessage,
    Image,
    Message,
    Part,
    Pointer,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    clean,
    new_id,
)
from deepagent.context.meter import Meter
from deepagent.context.offload import Offloader
from deepagent.context.record import Recorder
from deepagent.context.session import Session
from deepagent.context.summary import Summarizer
from deepagent.context.tokens import Counter, Encode
from hypothesis import strategies as st

TIME = "2026-11-30T21:15:11.042Z"
SUMMARY = "## SESSION INTENT\nbuild the parser\n## SUMMARY\nthe parser reads numbers and names, tested with pytest\n"


def no_tables() -> Encode:
    """For counters that estimate."""
    raise FileNotFoundError("no tables")


def user(text: str, *, synthetic: bool = False) -> UserMessage:
    """A request."""
    return UserMessage(id=new_id(), time=TIME, content=(Text(text=text),), synthetic=synthetic)


def answer(*parts: str | Part) -> AssistantMessage:
    """An answer of texts and calls."""
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return AssistantMessage(id=new_id(), time=TIME, content=content, model="m", stop="end")


def call(name: str = "execute", /, **arguments: Any) -> ToolCall:
    """A call with an id of its own."""
    return ToolCall(id=f"call_{new_id()}", name=name, arguments=arguments)


def result(of: ToolCall, text: str, *, is_error: bool = False, **log: Any) -> ToolMessage:
    """The result of a call."""
    return ToolMessage(
        id=new_id(), time=TIME, call_id=of.id, tool=of.name, content=(Text(text=text),), is_error=is_error, log=log
    )


def step(text: str, tool: str = "execute", /, **arguments: Any) -> tuple[AssistantMessage, ToolMessage]:
    """An answer with one call, and its result."""
    made = call(tool, **arguments)
    return answer(made), result(made, text)


def said(message: Message) -> MessageLogged:
    """The entry of a message."""
    return MessageLogged(id=message.id, time=message.time, parent=None, message=message)


def assert_valid(messages: Sequence[Message]) -> None:
    """What every provider asks for: each call is followed by its one result, each result follows its call."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.call_id in waiting, f"a result without its call: {message}"
            waiting.remove(message.call_id)
            continue
        assert not waiting, f"calls without results: {waiting}"
        if isinstance(message, AssistantMessage):
            assert message.text.strip() or message.calls, "an empty answer"
            waiting = [made.id for made in message.calls]
    assert not waiting, f"calls without results at the end: {waiting}"


# Random texts and messages. Texts have no lone surrogates: the log takes them out (see `any_texts`).
odd_texts = st.sampled_from(
    [
        "",
        "\n",
        "```",
        "````text\nx\n````",
        'a<5 && b>"c" `d` ~~~ {limit} {} \' \\',
        "\n## Compaction x\n",
        "<!-- deepagent:message {} -->\n",
        '<!-- deepagent:section {"compaction":"x","time":"","messages":1,"bytes":3,"sha256":""} -->\n',
        "\n<!-- deepagent:torn x -->\n",
        "\x00text",
        "line\r\nline\rline\u2028line\x85line\x0b",
        "<|endoftext|>",
        "\U0001f600 \ufffd",
    ]
)
texts = st.one_of(
    st.text(max_size=40).map(clean), st.text(alphabet='`~\n#<>!-- {}"\\r\r\x00ab', max_size=60), odd_texts
)
any_texts = st.lists(
    st.one_of(st.characters(exclude_categories=()), st.sampled_from("\ud800\udc97\udfff")), max_size=30
).map("".join)
"""With lone surrogates."""
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**6), 10**6),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
objects = st.dictionaries(texts, json_values, max_size=3)
counts = st.integers(0, 10**9)
pointers = st.builds(
    Pointer, path=texts, sha256=texts, bytes=counts, lines=counts, tokens=counts, shown=texts, kind=st.just("pointer")
)
plain = st.builds(Text, text=texts, kind=st.just("text"))
images = st.builds(
    Image,
    name=texts,
    sha256=texts,
    media=texts,
    bytes=counts,
    width=counts,
    height=counts,
    shown=texts,
    kind=st.just("image"),
)
contents = st.lists(st.one_of(plain, pointers, images), max_size=3).map(tuple)
calls = st.builds(ToolCall, id=texts, name=texts, arguments=objects, error=st.none() | texts, kind=st.just("tool_call"))
reasonings = st.builds(Reasoning, text=texts, data=objects, kind=st.just("reasoning"))
users = st.builds(UserMessage, id=texts, time=texts, content=contents, synthetic=st.booleans(), role=st.just("user"))
answers = st.builds(
    AssistantMessage,
    id=texts,
    time=texts,
    content=st.lists(st.one_of(plain, calls, reasonings), max_size=4).map(tuple),
    model=texts,
    stop=st.sampled_from(["end", "tool_calls", "length", "filter", "interrupted"]),
    role=st.just("assistant"),
)
results = st.builds(
    ToolMessage,
    id=texts,
    time=texts,
    call_id=texts,
    tool=texts,
    content=contents,
    is_error=st.booleans(),
    log=objects,
    role=st.just("tool"),
)
messages: st.SearchStrategy[Message] = st.one_of(users, answers, results)

_header: dict[str, Any] = {"id": texts, "time": texts, "parent": st.none() | texts}
_todos = st.lists(
    st.builds(Todo, text=texts, status=st.sampled_from(["pending", "in_progress", "completed"])), max_size=3
).map(tuple)
_words = st.lists(texts, max_size=3).map(tuple)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(
        SessionStarted,
        **_header,
        version=counts,
        session=texts,
        workspace=texts,
        cwd=texts,
        forked_from=st.none() | texts,
        kind=st.just("session_started"),
    ),
    st.builds(MessageLogged, **_header, message=messages, kind=st.just("message")),
    st.builds(PromptPart, **_header, name=texts, sha256=texts, content=texts, kind=st.just("prompt_part")),
    st.builds(
        Offloaded,
        **_header,
        blocks=st.lists(st.builds(OffloadedBlock, message=texts, block=counts, pointer=pointers), max_size=2).map(
            tuple
        ),
        kind=st.just("offloaded"),
    ),
    st.builds(
        Shortened,
        **_header,
        stubs=st.lists(
            st.builds(ArgumentStub, message=texts, call_id=texts, argument=texts, shown=texts), max_size=2
        ).map(tuple),
        tokens_saved=counts,
        kind=st.just("shortened"),
    ),
    st.builds(
        Compacted,
        **_header,
        first_kept=st.none() | texts,
        summary=texts,
        by=st.sampled_from(["model", "harness"]),
        shown=texts,
        requests=_words,
        archive=texts,
        archive_start=counts,
        archive_end=counts,
        tokens_before=counts,
        tokens_after=counts,
        messages=counts,
        files_read=_words,
        files_changed=_words,
        reason=st.sampled_from(["trigger", "user", "model", "overflow"]),
        kind=st.just("compacted"),
    ),
    st.builds(CompactionUndone, **_header, compaction=texts, kind=st.just("compaction_undone")),
    st.builds(TodosWritten, **_header, items=_todos, kind=st.just("todos")),
    st.builds(ModelChanged, **_header, model=texts, kind=st.just("model_changed")),
    st.builds(
        UsageReported,
        **_header,
        model=texts,
        usage=st.builds(Usage, input=counts, output=counts, cache_read=counts, cache_write=counts),
        cost=st.none() | st.floats(0, 1e6),
        purpose=st.sampled_from(["turn", "summary"]),
        message=st.none() | texts,
        counted=counts,
        kind=st.just("usage"),
    ),
    st.builds(Note, **_header, text=texts, kind=st.just("note")),
    st.builds(Ended, **_header, reason=texts, kind=st.just("ended")),
)


@st.composite
def conversations(draw: st.DrawFn, *, most_calls: int = 12, open_end: bool = True) -> list[Message]:
    """Well-formed histories: requests, answers, parallel calls and all their results, maybe an open end."""
    made: list[Message] = []
    number = itertools.count()
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["user", "answer", "calls", "calls", "empty", "reasoning"]))
        match kind:
            case "user":
                made.append(replace(user("ask " * draw(st.integers(1, 30))), id=f"m{next(number)}"))
            case "answer":
                made.append(replace(answer("say " * draw(st.integers(1, 30))), id=f"m{next(number)}"))
            case "empty":
                made.append(replace(answer(draw(st.sampled_from(["", " \n"]))), id=f"m{next(number)}"))
            case "reasoning":
                made.append(replace(answer(Reasoning(text="hm")), id=f"m{next(number)}"))
            case _:
                made += draw(_batches(number, most_calls))
    if open_end and draw(st.booleans()):
        batch = draw(_batches(number, most_calls))
        made += batch[: draw(st.integers(1, len(batch)))]
    return made


@st.composite
def _batches(draw: st.DrawFn, number: Iterable[int], most_calls: int) -> list[Message]:
    """An answer with parallel calls, and its results in any order."""
    numbers = iter(number)
    made = [
        ToolCall(id=f"c{next(numbers)}", name="read_file", arguments={"path": "p" * draw(st.integers(1, 40))})
        for _ in range(draw(st.integers(1, most_calls)))
    ]
    found = [replace(result(one, "line\n" * draw(st.integers(1, 60))), id=f"m{next(numbers)}") for one in made]
    return [replace(answer(*made), id=f"m{next(numbers)}"), *draw(st.permutations(found))]


class Rig:
    """A session's ladder, with a scripted model for summaries; records what it is told."""

    def __init__(
        self,
        session: Session,
        *,
        window: int = 16_000,
        source: WindowSource = "user",
        answers: Sequence[str | BaseException | Callable[[str], str]] = (),
        counter: Counter | None = None,
        settings: ContextSettings | None = None,
        can_read: bool = True,
    ) -> None:
        self.session = session
        self.counter = counter or Counter(no_tables)
        self.meter = Meter(self.counter, "m")
        self.settings = settings or ContextSettings()
        self.prompts: list[str] = []
        self.steps: list[Step] = []
        self.troubles: list[str] = []
        self.started: list[int] = []
        self._answers = list(answers)
        self._window = window
        self.offloader = Offloader(
            storage=session.storage, session=session.id, counter=self.counter, can_read=lambda: can_read
        )
        self.compactor = Compactor(
            session=session,
            counter=self.counter,
            meter=self.meter,
            recorder=Recorder(
                session=session,
                counter=self.counter,
                meter=self.meter,
                summarizer=self._summarizer,
                on_trouble=self.troubles.append,
            ),
            on_start=self.started.append,
        )
        self.ladder = Ladder(
            session=session,
            counter=self.counter,
            meter=self.meter,
            settings=self.settings,
            budget=budget_for(Window(tokens=window, source=source), self.settings),
            offloader=self.offloader,
            compactor=self.compactor,
            on_step=self.steps.append,
            on_trouble=self.troubles.append,
        )

    @property
    def budget(self) -> Budget:
        return self.ladder.budget

    def _summarizer(self) -> Summarizer | None:
        return Summarizer(ask=self.ask, window=self._window) if self._answers else None

    async def ask(self, prompt: str, limit: int) -> str:
        """Answers from the list; the last one again and again."""
        self.prompts.append(prompt)
        made = self._answers[min(len(self.prompts), len(self._answers)) - 1]
        if isinstance(made, BaseException):
            raise made
        return made if isinstance(made, str) else made(prompt)

    def say(self, *messages: Message) -> None:
        for message in messages:
            self.session.say(message)

    def report(self) -> int:
        """The provider reports what we count of the request, so its cache is warm; gives the tokens."""
        counted = self.meter.count(self.session.view.messages)
        entry = UsageReported(
            **self.session.header(),
            model="m",
            usage=Usage(input=counted, output=1),
            cost=None,
            purpose="turn",
            message=None,
            counted=counted,
        )
        self.session.append(entry)
        self.meter.add(entry)
        return counted

    def compactions(self) -> list[Compacted]:
        return [entry for entry in self.session.entries if isinstance(entry, Compacted)]

    def head(self) -> str:
        """The text at the head of the view."""
        head = self.session.view.head
        assert head is not None
        return head.shown
