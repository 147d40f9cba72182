"""What the loop tells those who watch it: the headless printer, the screen, a library's caller.

Events are facts; none asks for an answer but `ApprovalAsked`, which carries the future to answer with. Consumers hold
one `match` over `Event` and own no state of the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from ..context.entries import Compacted, Todo, Usage
from ..context.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from .sandbox.bounds import Grant, Refusal

Outcome = Literal["success", "error", "max_turns", "max_tokens", "max_cost", "timeout", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """How full the window is. All figures are tokens."""

    used: int
    source: Literal["reported", "counted", "estimated"]
    """Reported: the provider's last figure plus what came since; counted: our tokenizer; estimated: from bytes."""
    window: int
    window_source: Literal["user", "server", "overflow", "table", "assumed"]
    budget: int
    trigger: int
    cost: float | None
    """US dollars so far; None where a price is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A prompt was taken; the run begins."""

    session: str
    message: UserMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """What the user said while the run went on joined the conversation."""

    message: UserMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A request is about to be sent; `turn` counts the run's model calls from 1."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextArrived:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningArrived:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallArriving:
    """A call is being written by the model."""

    index: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerWithdrawn:
    """All that arrived since `CallStarted` is void: the attempt failed and is repeated after `wait` seconds."""

    reason: str
    attempt: int
    wait: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReworded:
    """The text that arrived since `CallStarted` is void, `text` stands in its place: the rest was calls."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The whole answer is in the log."""

    message: AssistantMessage
    usage: Usage | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked:
    """A tool waits for a decision; set the future to answer, or cancel it where nobody will."""

    call: ToolCall
    rules: tuple[str, ...]
    """The rules that together would allow it, as `--allow` takes them; none where no rule could."""
    reason: str
    """Why it is asked about, as half a sentence."""
    warning: str = ""
    """What to know before saying yes, as half a sentence; such a call is asked about in every mode."""
    origin: str = ""
    """Who asks, where it is not the agent itself: the name of a sub-agent."""
    refused: tuple[Refusal, ...] = ()
    """What the sandbox kept the call from; it ran already, and is asked about again."""
    answer: asyncio.Future[Approval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A person's decision."""

    allowed: bool
    reason: str = ""
    """Why not, in the person's words."""
    arguments: Mapping[str, JsonValue] | None = None
    """The arguments as the person wants them; the model is told what was changed."""
    answer: str = ""
    """What the person says instead of letting it run: it becomes the tool's result."""
    grant: Grant | None = None
    """How the call is confined from now on, where not as usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A tool begins to run."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """Output of a running tool, as it comes."""

    call_id: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A tool's result is in the log."""

    call: ToolCall
    message: ToolMessage
    summary: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """A call was not allowed."""

    call: ToolCall
    rules: tuple[str, ...]
    """The rules that together would allow it, as `--allow` takes them; none where no rule could."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloading:
    """A text went to a file and the model sees a pointer."""

    path: str
    tokens: int
    """Tokens of the whole text."""
    shown_tokens: int
    message: str = ""
    """The id of the message whose text it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    """Old arguments became stubs, and stale or old results pointers, without a model call."""

    stubs: int
    """How many arguments."""
    results: tuple[str, ...]
    """The ids of the results' messages."""
    tokens_saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRestored:
    """A result is in the view again as it was logged."""

    message: str
    """Its message's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted:
    """Older messages are being archived and summarized."""

    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDone:
    """A compaction is in the log."""

    entry: Compacted
    archive: str
    """The archive's absolute path."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTakenBack:
    """The view is again what it was before a compaction."""

    compaction: str
    """The id of its entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TodosChanged:
    """The plan has changed."""

    items: tuple[Todo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeChanged:
    """The window's filling has changed."""

    gauge: Gauge


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """Something that a person should know; not an error of the run."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The run is over; always the last event."""

    outcome: Outcome
    text: str
    """The final answer."""
    turns: int
    usage: Usage
    cost: float | None
    compactions: int
    error: Mapping[str, JsonValue] | None = None
    """`{"kind", "message"}` when the outcome is `error`."""


Event = (
    RunStarted
    | Steered
    | CallStarted
    | TextArrived
    | ReasoningArrived
    | ToolCallArriving
    | AnswerWithdrawn
    | AnswerReworded
    | Answered
    | ApprovalAsked
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | Denied
    | Offloading
    | Trimmed
    | ResultRestored
    | CompactionStarted
    | CompactionDone
    | CompactionTakenBack
    | TodosChanged
    | GaugeChanged
    | Noticed
    | RunEnded
)
