"""From the agent's events to widgets: the one `match` of the screen.

It keeps what it needs to find a widget again – which card belongs to which call, where a message stood – and nothing
of the conversation itself. Replayed events (`agent.replay`) go the same way. What a decision or a key means for the
agent is the app's business; `decide` only hands an answer on. Of several questions one is shown, the oldest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ...agent.events import (
    Answered,
    AnswerReworded,
    AnswerWithdrawn,
    Approval,
    ApprovalAsked,
    CallStarted,
    CompactionDone,
    CompactionStarted,
    CompactionTakenBack,
    Denied,
    Event,
    Gauge,
    GaugeChanged,
    Noticed,
    Offloading,
    Outcome,
    ReasoningArrived,
    ResultRestored,
    RunEnded,
    RunStarted,
    Steered,
    TextArrived,
    TodosChanged,
    ToolCallArriving,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    Trimmed,
)
from ...agent.sandbox.bounds import Grant
from ...context.entries import Todo
from ...context.facts import EXIT_CODE
from ...context.messages import Pointer, ToolCall, ToolMessage, UserMessage, text_of
from ...context.tokens import estimate
from ..gauge import tokens
from .approval import ApprovalCard
from .cards import ENDED, Card, State
from .diffs import starts_of
from .ladder import LadderLines
from .messages import NoticeLine, Said, UserText
from .places import Places
from .question import Question
from .todos import TodoList
from .transcript import Entry, Transcript
from .writing import QUIET, Shown, Writing, add_card

_SIZED = 1_000
"""Tokens from which a card says how long a result is."""
_GAUGED = 400
"""Characters of an answer after which the gauge moves while it is written; four of them are about a token."""
_OUTCOMES: dict[Outcome, str] = {
    "interrupted": "interrupted",
    "error": "the run ended with an error",
    "max_turns": "stopped: the limit of turns is reached",
    "max_tokens": "stopped: the limit of tokens is reached",
    "max_cost": "stopped: the limit of cost is reached",
    "timeout": "stopped: the time limit is reached",
}


@dataclass(slots=True)
class _Asked:
    """A question that waits for its answer."""

    event: ApprovalAsked
    entry: Entry[ApprovalCard] | None = None
    """None: it waits behind another one."""


class Presenter:
    """Shows one session in a transcript; `reset` before another is shown."""

    def __init__(
        self,
        transcript: Transcript,
        *,
        on_gauge: Callable[[Gauge], None] = lambda _: None,
        kept: Callable[[], str] = lambda: "in this session",
        before: Callable[[ToolCall], str | None] = lambda _: None,
    ) -> None:
        """`on_gauge` is told of each change, and of estimates while an answer is being written; `kept` says where
        "always" would keep rules, as half a sentence; `before` gives the text of the file that a call would change.
        """
        self._transcript = transcript
        self._kept, self._before = kept, before
        self._on_gauge = on_gauge
        self.reset()

    def reset(self) -> None:
        """Forgets the session; clearing the transcript is the app's business."""
        self._gauge: Gauge | None = None
        self._gauged = 0
        """Characters of the answer that the gauge was told of."""
        self._writing = self._new_writing()
        self._withdrawn: Entry[NoticeLine] | None = None
        self._cards: dict[str, Shown] = {}
        self._asked: dict[str, _Asked] = {}
        self._places = Places()
        self._ladder = LadderLines(self._transcript, self._places, self._mark)
        self._todos: Entry[TodoList] | None = None

    @property
    def asks(self) -> bool:
        """Whether something waits for a decision; its card may not be there yet."""
        return bool(self._asked)

    @property
    def question(self) -> ApprovalCard | None:
        """The card that waits for a decision, if any."""
        return next((asked.entry.widget for asked in self._asked.values() if asked.entry), None)

    def decide(self, call_id: str, approval: Approval) -> None:
        """Hands an answer on to the tool that waits for it; the card goes, and the next question is shown."""
        asked = self._asked.pop(call_id, None)
        if asked is None:
            return
        if asked.entry is not None:
            self._transcript.remove_entry(asked.entry)
        if not asked.event.answer.done():
            asked.event.answer.set_result(approval)
        self._show_question()
        if approval.allowed and (shown := self._cards.get(call_id)):
            shown.card.began = None
            shown.card.start()
            shown.show()

    def answer(self, decided: ApprovalCard.Decided, allow: Callable[[str], None]) -> None:
        """Hands on what was decided on a card, after `allow` has each rule that is to hold from now on."""
        for rule in decided.always:
            allow(rule)
        self.decide(decided.call_id, _approval(decided))

    def notice(self, text: str, kind: Literal["info", "warning", "error"] = "warning") -> None:
        """Shows a line that no event brought."""
        self._transcript.add(lambda: NoticeLine(text, kind))

    async def event(self, event: Event) -> None:
        """Shows what an event says."""
        self.show(event)

    def show(self, event: Event) -> None:  # noqa: PLR0912, PLR0915 - one line an event
        """The same, for many events at once."""
        if not isinstance(event, Offloading):
            self._ladder.tell_offloads()
        match event:
            case RunStarted(message=message):
                self._close("interrupted")
                self._user(message)
            case Steered(message=message):
                self._user(message)
            case CallStarted():
                self._writing = self._new_writing()
            case TextArrived(text=text):
                self._writing.text(text)
            case ReasoningArrived(text=text):
                self._writing.reasoning(text)
            case ToolCallArriving():
                self._writing.arriving(event)
            case AnswerWithdrawn():
                self._withdraw(event)
            case AnswerReworded(text=text):
                self._writing.reword(text)
            case Answered():
                self._answered(event)
            case ApprovalAsked():
                self._ask(event)
            case ToolStarted(call=call):
                self._start(call)
            case ToolOutput(call_id=call_id, data=data):
                self._output(call_id, data)
            case ToolFinished():
                self._finish(event)
            case Denied():
                self._deny(event)
            case Offloading():
                self._ladder.offloaded(event)
            case Trimmed():
                self._ladder.trimmed(event)
            case ResultRestored(message=message):
                self._ladder.restored(message)
            case CompactionStarted(messages=messages):
                self._ladder.started(messages)
            case CompactionDone():
                self._ladder.done(event)
            case CompactionTakenBack(compaction=compaction):
                self._ladder.taken_back(compaction)
            case TodosChanged(items=items):
                self._plan(items)
            case GaugeChanged(gauge=gauge):
                self._gauge = gauge
                self._ladder.gauged(gauge)
                self._on_gauge(gauge)
            case Noticed(text=text):
                self.notice(text)
            case RunEnded():
                self._ended(event)

    # What is said

    def _user(self, message: UserMessage) -> None:
        if message.synthetic:
            return
        said = Said(text_of(message))
        self._places.user(message.id, said.text)
        self._transcript.add(lambda: UserText(said))

    def _new_writing(self) -> Writing:
        self._gauged = 0
        return Writing(self._transcript, self._estimate)

    def _estimate(self, characters: int) -> None:
        """Moves the gauge while an answer is written."""
        if self._gauge is not None and characters - self._gauged >= _GAUGED:
            self._gauged = characters
            used = self._gauge.used + characters // 4
            self._on_gauge(replace(self._gauge, used=used, source="estimated"))

    def _withdraw(self, event: AnswerWithdrawn) -> None:
        self._writing.withdraw()
        self._writing = self._new_writing()
        if self._withdrawn is not None:
            self._transcript.remove_entry(self._withdrawn)
        wait = f" in {event.wait:.1f} s" if event.wait else ""
        mark = " –" if event.reason.endswith((".", "?", "!")) else ";"
        text = f"{event.reason}{mark} trying again{wait} (attempt {event.attempt + 1})"
        self._withdrawn = self._transcript.add(lambda: NoticeLine(text, "warning"))
        if self._gauge is not None:
            self._on_gauge(self._gauge)

    def _answered(self, event: Answered) -> None:
        self._places.message(event.message.id)
        self._cards |= self._writing.whole(event)
        self._writing, self._withdrawn = self._new_writing(), None

    # Tools

    def _card(self, call: ToolCall) -> Shown:
        """The card of a call, made if need be."""
        shown = self._cards.get(call.id)
        if shown is None:
            shown = self._cards[call.id] = add_card(self._transcript, Card(call))
        return shown

    def _start(self, call: ToolCall) -> None:
        if call.name not in QUIET:
            shown = self._card(call)
            shown.card.start()
            shown.show()

    def _output(self, call_id: str, data: bytes) -> None:
        if shown := self._cards.get(call_id):
            shown.card.put_out(data)
            shown.show()

    def _ask(self, event: ApprovalAsked) -> None:
        shown = self._card(event.call)
        shown.card.state = "asking"
        shown.show()
        self._asked[event.call.id] = _Asked(event)
        self._show_question()

    def _show_question(self) -> None:
        """Shows the oldest question, if none is shown, and how many wait behind it."""
        first = next(iter(self._asked.values()), None)
        if first is None:
            return
        waiting = len(self._asked) - 1
        if first.entry is not None:
            if first.entry.widget is not None:
                first.entry.widget.show_waiting(waiting)
            return
        asked = first.event
        question = Question(
            call=asked.call,
            rules=asked.rules,
            reason=asked.reason,
            warning=asked.warning,
            origin=asked.origin,
            kept=self._kept() if asked.rules else "",
            waiting=waiting,
            refused=asked.refused,
            before=self._before(asked.call),
        )
        first.entry = self._transcript.add(lambda: ApprovalCard(question))
        self._transcript.to_end()

    def _deny(self, event: Denied) -> None:
        shown = self._card(event.call)
        shown.card.end("denied")
        shown.card.summary = f"denied: {event.reason}"
        shown.show()
        self.decide(event.call.id, Approval(allowed=False))

    def _finish(self, event: ToolFinished) -> None:
        message = event.message
        self._places.message(message.id, event.call.id)
        if event.call.name in QUIET and not message.is_error and event.call.id not in self._cards:
            return
        shown = self._card(event.call)
        card = shown.card
        if card.state not in ENDED:
            card.summary = event.summary
        card.end(_outcome(message, event.summary))
        card.seconds = event.seconds or None
        card.result = text_of(message)
        card.starts = starts_of(message)
        card.pointer, card.size = _held(message, card.result)
        shown.show()

    def _close(self, state: State) -> None:
        """Ends what is still open: the run is over."""
        for asked in reversed(tuple(self._asked.values())):
            self.decide(asked.event.call.id, Approval(allowed=False))
        self._writing.broken_off()
        self._writing = self._new_writing()
        for shown in self._cards.values():
            if shown.card.state not in ENDED:
                shown.card.end(state)
                shown.show()
        self._ladder.stop()

    # What the context layer did

    def _mark(self, call_id: str, *, archived: bool | None = None, pointer: bool | None = None) -> None:
        """Shows how much of a call's result the model has now."""
        if shown := self._cards.get(call_id):
            shown.card.archived = shown.card.archived if archived is None else archived
            shown.card.pointer = shown.card.pointer if pointer is None else pointer
            shown.show()

    def _plan(self, items: tuple[Todo, ...]) -> None:
        """The plan stands where it was last written."""
        if self._todos is not None:
            self._transcript.remove_entry(self._todos)
        self._todos = self._transcript.add(lambda: TodoList(items))

    def _ended(self, event: RunEnded) -> None:
        if event.outcome == "interrupted" and self._writing.has_text:
            self._places.unseen()
        self._close("interrupted")
        problem = str(event.error["message"]) if event.error else ""
        text = problem or _OUTCOMES.get(event.outcome, "")
        if text:
            kind = "info" if event.outcome == "interrupted" else "error" if event.outcome == "error" else "warning"
            self.notice(text, kind)


def _approval(decided: ApprovalCard.Decided) -> Approval:
    """What a decision on a card says to the tool that waits."""
    folders = tuple(map(Path, decided.folders))
    again = decided.network or folders or decided.unconfined
    grant = Grant(network=decided.network, writable=folders, off=decided.unconfined) if again else None
    return Approval(
        allowed=decided.allowed,
        reason=decided.reason,
        arguments=decided.arguments,
        answer=decided.answer,
        grant=grant,
    )


def _outcome(message: ToolMessage, summary: str) -> State:
    if message.is_error:
        return "interrupted" if summary == "interrupted" else "failed"
    log = message.log
    failed = log.get(EXIT_CODE) not in (0, None) or log.get("signal") is not None or log.get("timed_out") is True
    return "failed" if failed else "done"


def _held(message: ToolMessage, text: str) -> tuple[bool, str]:
    """Whether the model has the result as a pointer, and how long it is."""
    whole = sum(block.tokens for block in message.content if isinstance(block, Pointer))
    if whole:
        return True, f"{tokens(whole)} tokens"
    counted = estimate(text)
    return False, f"~{tokens(counted)} tokens" if counted >= _SIZED else ""
