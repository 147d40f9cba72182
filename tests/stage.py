"""What tests of the loop play on: an agent with a scripted model, a real folder, a real shell and a real log.

Every request that it sends is looked at first, as each provider would (`outgoing`). Test folders are no
packages, so fixtures load this file by its path; types: `if TYPE_CHECKING: from ..stage import Stage`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from deepagent.agent.agent import Agent
from deepagent.agent.build import Extras, build
from deepagent.agent.config import Settings, settings_from
from deepagent.agent.events import (
    Answered,
    AnswerReworded,
    AnswerWithdrawn,
    ApprovalAsked,
    CallStarted,
    CompactionDone,
    Denied,
    Event,
    GaugeChanged,
    Noticed,
    Offloading,
    ReasoningArrived,
    RunEnded,
    RunStarted,
    Steered,
    TextArrived,
    ToolCallArriving,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from deepagent.agent.model.quirks import Lane, profile_of
from deepagent.agent.model.scripted import ScriptedModel
from deepagent.agent.model.types import Delta, Model, ModelRequest
from deepagent.agent.model.wire import Wire
from deepagent.agent.sessions import Choice
from deepagent.agent.workspace import find_workspace
from deepagent.context.entries import Entry
from deepagent.context.log import load
from deepagent.context.messages import AssistantMessage, Message, ToolMessage, UserMessage, text_of
from deepagent.context.storage import archive_name, log_name
from outgoing import (
    DEEPSEEK,
    LITELLM,
    MISTRAL,
    MISTRAL_TEMPLATE,
    OLDER_OPENAI,
    OPENAI,
    OPENROUTER,
    PLAIN,
    TEMPLATE,
    THINKING_TEMPLATE,
    Checker,
    Dialect,
)

_PROVIDERS: tuple[tuple[str, str, Lane, Dialect], ...] = (
    ("openai", "gpt-5", "lean", OPENAI),
    ("openai", "gpt-4o", "lean", OLDER_OPENAI),
    ("mistral", "mistral-large", "lean", MISTRAL),
    ("groq", "qwen3-32b", "lean", PLAIN),
    ("deepseek", "deepseek-reasoner", "lean", DEEPSEEK),
    ("openrouter", "anthropic/claude-sonnet-4.5", "lean", OPENROUTER),
    ("", "qwen3-coder", "lean", TEMPLATE),
    ("", "devstral-small", "lean", MISTRAL_TEMPLATE),
    ("", "glm-4.6", "lean", THINKING_TEMPLATE),
    ("anthropic", "claude-sonnet-4-5", "litellm", LITELLM),
    ("gemini", "gemini-2.5-pro", "litellm", LITELLM),
)
"""Those that take the most and the least, and those whose rules are their own."""
_WIRES = [(Wire(model, profile_of(name, model, lane)), Checker(dialect)) for name, model, lane, dialect in _PROVIDERS]


@dataclass(slots=True)
class CheckedModel:
    """A model that looks at each request before it passes it on."""

    model: Model
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])

    @property
    def name(self) -> str:
        return self.model.name

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        check_request(request)
        self.requests.append(request)
        async for delta in self.model.stream(request):
            yield delta

    async def aclose(self) -> None:
        await self.model.aclose()


class Stage:
    """An agent in `folder`. `close` it, or `reopen` it as a new process would."""

    def __init__(
        self,
        folder: Path,
        *steps: Mapping[str, Any],
        settings: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        session: str | None = None,
        model: Model | None = None,
        name: str = "scripted",
        script: Mapping[str, Any] | None = None,
        **extras: Any,
    ) -> None:
        """`steps` are the script's; `settings` a tree as `deepagent.toml` has it; `extras` go to `Extras`."""
        self.folder = folder
        folder.mkdir(exist_ok=True)
        given = {"permissions": {"mode": "yolo"}, "sandbox": {"mode": "off"}, **(settings or {})}
        self._settings: Settings = settings_from(given)
        self._environ = {**os.environ, **(environ or {})}
        self._extras = extras
        self.model = CheckedModel(model or ScriptedModel({"steps": steps, **(script or {})}, name=name))
        self.events: list[Event] = []
        self.agent: Agent = self._build(session)

    def _build(self, session: str | None) -> Agent:
        workspace = find_workspace(self.folder, environ=self._environ)
        extras = Extras(model=self.model, **self._extras)
        return build(self._settings, workspace, environ=self._environ, choice=Choice(session=session), extras=extras)

    @property
    def requests(self) -> list[ModelRequest]:
        """What the model was asked, summaries included."""
        return self.model.requests

    @property
    def view(self) -> tuple[Message, ...]:
        """What the model would be sent now."""
        return self.agent.session.view.messages

    async def run(self, prompt: str = "go", on: Callable[[Event], None] | None = None) -> list[str]:
        """Runs a prompt to its end and tells of its events; `on` sees each as it comes. The log is checked after it."""
        events: list[Event] = []
        async with aclosing(self.agent.astream(prompt)) as stream:
            async for event in stream:
                events.append(event)
                if on:
                    on(event)
        self.events += events
        self.check()
        return told(events)

    @property
    def ended(self) -> RunEnded:
        """How the last run ended."""
        event = self.events[-1]
        assert isinstance(event, RunEnded)
        return event

    def entries(self) -> tuple[Entry, ...]:
        """The log, read from the disk; empty before the first prompt, when nothing is worth a file yet."""
        name = log_name(self.agent.session.id)
        try:
            loaded = load(name, self.agent.session.storage.read(name))
        except FileNotFoundError:
            return ()
        assert not loaded.notices
        assert loaded.closed
        return loaded.entries

    def logged(self) -> list[Message]:
        """The messages in the log, read from the disk."""
        return [entry.message for entry in self.entries() if entry.kind == "message"]

    def check(self) -> None:
        """The log on the disk is whole and is what the session believes; the view could be sent."""
        assert list(self.entries()) == self.agent.session.entries or not tuple(self.agent.session.messages())
        check_messages(self.view)
        answers = [m for m in self.agent.session.messages() if isinstance(m, AssistantMessage)]
        ids = [call.id for answer in answers for call in answer.calls]
        assert len(set(ids)) == len(ids)

    def on_disk(self) -> bytes:
        """All that the session wrote: log, archive, and offloaded texts."""
        storage, session = self.agent.session.storage, self.agent.session.id
        names = [log_name(session), archive_name(session), *storage.names(f"large_tool_results/{session}")]
        names += storage.names(f"conversation_history/{session}")
        return b"\n".join(storage.read(name) for name in names if storage.path(name).exists())

    async def close(self) -> None:
        await self.agent.aclose()

    async def reopen(self) -> None:
        """Closes the agent and opens the session again."""
        await self.close()
        self.agent = self._build(self.agent.session.id)
        self.check()


def told(events: Sequence[Event]) -> list[str]:
    """The events, a line each; pieces that follow each other are one line, gauges are left out."""
    lines: list[str] = []
    shown = (event for event in events if not isinstance(event, GaugeChanged))
    for kind, group in groupby(shown, type):
        if kind in (TextArrived, ReasoningArrived, ToolCallArriving, ToolOutput):
            lines.append(_arrived(list(group)))
        else:
            lines += map(_line, group)
    return lines


def _arrived(pieces: Sequence[Event]) -> str:
    match pieces[0]:
        case ToolCallArriving():
            calls = {piece.index: piece.name for piece in pieces if isinstance(piece, ToolCallArriving)}
            return f"writes {', '.join(calls.values())}"
        case ToolOutput():
            return "output"
        case first:
            word = "says" if isinstance(first, TextArrived) else "thinks"
            return f"{word} {''.join(getattr(piece, 'text') for piece in pieces)}"  # noqa: B009 - both kinds have it


def _line(event: Event) -> str:  # noqa: PLR0912 - one line an event
    match event:
        case RunStarted(message=message) | Steered(message=message):
            word = "takes" if isinstance(event, RunStarted) else "hears"
            return f"{word} {text_of(message)[:40]}"
        case CallStarted(turn=turn):
            return f"call {turn}"
        case AnswerWithdrawn(attempt=attempt):
            return f"withdrawn {attempt}"
        case AnswerReworded(text=text):
            return f"reworded {text}".rstrip()
        case Answered(message=message):
            return f"answered {message.stop}"
        case ApprovalAsked(rules=rules):
            return f"asks {' '.join(rules)}"
        case Denied(rules=rules):
            return f"denied {' '.join(rules)}"
        case ToolStarted(call=call):
            return f"runs {call.name} {call.id}"
        case ToolFinished(call=call, message=message):
            return f"{'failed' if message.is_error else 'done'} {call.name} {call.id}"
        case Offloading(path=path):
            return f"offloads {path.rpartition('/')[2]}"
        case CompactionDone(entry=entry):
            return f"compacted by {entry.by} for {entry.reason}"
        case Noticed(text=text):
            return f"notice {text}"
        case RunEnded(outcome=outcome, text=text, error=error):
            return f"ended {outcome}: {text if error is None else error['kind']}"
        case _:
            return type(event).__name__


def check_request(request: ModelRequest) -> None:
    """Fails for a request that some provider would refuse."""
    if request.purpose == "summary" and not request.tools:  # text alone: calls would need their tools
        assert [type(message) for message in request.messages] == [UserMessage]
    else:
        assert request.messages[-1].role != "assistant"
    assert len({tool.name for tool in request.tools}) == len(request.tools)
    check_messages(request.messages)
    for wire, checker in _WIRES:
        body = wire.body(request)
        assert checker.problems(body) == [], body["model"]


def check_messages(messages: Sequence[Message]) -> None:
    """Pairs are whole, nothing is empty, the first to speak is the user."""
    open_calls: list[str] = []
    seen: set[str] = set()
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            assert message.call_id in open_calls, f"message {position} answers no call that is open"
            open_calls.remove(message.call_id)
            continue
        assert not open_calls, f"before message {position} calls are unanswered: {open_calls}"
        if isinstance(message, UserMessage):
            assert text_of(message).strip(), f"message {position} is empty"
            continue
        assert position, "the first to speak is the model"
        assert message.text.strip() or message.calls, f"answer {position} is empty"
        open_calls = [call.id for call in message.calls]
        assert all(open_calls)
        assert len({*seen, *open_calls}) == len(seen) + len(open_calls), f"answer {position} uses an id again"
        seen.update(open_calls)
    assert not open_calls, f"calls are unanswered at the end: {open_calls}"


def without_ids(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages without what is made anew each time."""
    for message in messages:
        yield replace(message, id="", time="")
