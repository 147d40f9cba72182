"""The loop: ask the model, log its answer, run its tools, log their results, until it has nothing more to run.

It knows no policy: limits, approvals, room in the window and guards are middleware, the running of tools is
`agent.toolbox`'s. It logs before it acts: the answer is on the disk before its tools run, the results before the next
request. Whatever ends it, no call stays unanswered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from pydantic import JsonValue

from ..context.entries import UsageReported
from ..context.ladder import Ladder
from ..context.messages import (
    AssistantMessage,
    Image,
    Part,
    StopReason,
    Text,
    ToolCall,
    UserMessage,
    clean,
    new_id,
    timestamp,
)
from ..context.session import Session
from ..context.tokens import estimate
from .events import (
    Answered,
    AnswerReworded,
    AnswerWithdrawn,
    CallStarted,
    Gauge,
    GaugeChanged,
    Noticed,
    ReasoningArrived,
    RunStarted,
    Steered,
    TextArrived,
    ToolCallArriving,
)
from .middleware.base import NOTHING, Middleware, ModelHandler, RunState, RunStopped
from .model.meant import as_meant
from .model.types import (
    CallDelta,
    Completed,
    Delta,
    Model,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextReplaced,
    Withdrawn,
)
from .secrets import Masker
from .toolbox import Toolbox
from .undisturbed import undisturbed

_PATIENCE = 2
"""Answers in a row that are empty or cut off, after which the run ends."""
_WRITES_CALLS = "the model writes its calls as text; they are run where they can be read in one way only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer as the log has it, and its calls as they are to be run: masked the one, unmasked the other."""

    message: AssistantMessage
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Everything that a run needs."""

    model: Model
    session: Session
    ladder: Ladder
    toolbox: Toolbox
    middleware: tuple[Middleware, ...]
    masker: Masker
    system: Callable[[], str]
    """The system prompt as it is to be sent now."""
    gauge: Callable[[], Gauge]
    price: Callable[[Completed], float | None]
    prepare_counter: Callable[[], None]
    """Returns when the tokenizer is there; called off the loop's thread."""
    inbox: list[str]
    """What the user says while a run goes on; it joins the conversation after the running tools."""
    effort: str | None = None
    max_output: int | None = None
    image: Callable[[Image], bytes | None] | None = None
    """Gives an image's data; None for a model that sees none."""
    told: set[str] = field(default_factory=set[str])
    """What was noticed and need not be said again."""

    async def run(self, prompt: str, run: RunState) -> str:
        """Takes a prompt and returns the final answer. Raises `RunStopped`, `ModelError` or `StorageError`."""
        if not prompt.strip():
            raise RunStopped("error", "the prompt is empty", kind="empty_prompt")
        if self.ladder.meter.reported and not self.ladder.counter.exact:
            await asyncio.to_thread(self.prepare_counter)  # estimates do not compare with what was counted
        self.measure()
        message = await self._take(prompt)
        run.emit(RunStarted(session=self.session.id, message=message))
        for middleware in self.middleware:
            await middleware.before_agent(run)
        odd = 0
        while True:
            self.measure()
            for middleware in self.middleware:
                await middleware.before_model(run)
            answer = await self._ask(run)
            for middleware in self.middleware:
                await middleware.after_model(run, answer.message)
            if answer.calls:
                await self.toolbox.act(answer.message, answer.calls, run)
            steered = await self._take_inbox(run)
            run.emit(GaugeChanged(gauge=self.gauge()))
            if answer.message.text.strip() and not answer.calls and not steered:
                return self._final(answer.message, run)
            cut = answer.message.stop == "length" or not (answer.calls or steered)
            odd = odd + 1 if cut else 0
            if odd >= _PATIENCE:
                raise RunStopped("error", f"{odd} answers in a row were empty or cut off", kind="bad_answers")

    def _final(self, message: AssistantMessage, run: RunState) -> str:
        if message.stop == "length":
            run.emit(Noticed(text="the answer was cut off by the output limit"))
        return message.text

    def measure(self) -> None:
        """Counts what every request begins with."""
        counter = self.ladder.counter
        self.ladder.meter.overhead = self.toolbox.tokens(counter) + counter.text(self.system())

    async def _take_inbox(self, run: RunState) -> bool:
        """Logs what the user said meanwhile; whether there was anything."""
        heard = False
        while self.inbox:
            text = self.inbox.pop(0)  # before anything else: it can be taken back no more
            if text.strip():
                run.emit(Steered(message=await self._take(text)))
                heard = True
        return heard

    async def _take(self, prompt: str) -> UserMessage:
        """Logs what the user wrote; it is on the disk when this returns."""
        text = self.masker.mask(clean(prompt))
        if estimate(text) > self.ladder.budget.user_limit // 2:
            await asyncio.to_thread(self.prepare_counter)
        message = UserMessage(id=new_id(), time=timestamp(self.session.clock), content=(Text(text=text),))
        message = self.ladder.admit_user(message)
        self.session.say(message)
        await asyncio.to_thread(self.session.sync)
        return message

    async def _ask(self, run: RunState) -> Answer:
        """One request and its answer, which is on the disk when this returns."""
        run.turns += 1
        run.emit(CallStarted(turn=run.turns))
        text: list[str] = []
        given: list[Completed] = []
        completed: Completed | None = None
        try:
            async for delta in self._handler(run, given)(self.request()):
                completed = self._show(delta, text, run)
        except asyncio.CancelledError:
            self._keep_partial("".join(text))
            raise
        if completed is None:
            raise RunStopped("error", "the model ended without an answer", kind="model")
        return await undisturbed(self._log_answer(completed, given, run))

    def request(self) -> ModelRequest:
        """The request that the view makes now."""
        return ModelRequest(
            system=self.system(),
            messages=self.session.view.messages,
            tools=self.toolbox.schemas,
            max_output=self.max_output,
            effort=self.effort,
            image=self.image,
            position=self.session.answers,
            session=self.session.id,
        )

    def _handler(self, run: RunState, given: list[Completed]) -> ModelHandler:
        """The model with the middleware around it. Each of its answers goes to `given`: a middleware may ask twice."""
        handler: ModelHandler = lambda request: _noted(as_meant(self.model.stream(request), request), given)  # noqa: E731
        for middleware in reversed(self.middleware):
            handler = _around(middleware, run, handler)
        return handler

    def _show(self, delta: Delta, text: list[str], run: RunState) -> Completed | None:
        match delta:
            case TextDelta():
                text.append(delta.text)
                run.emit(TextArrived(text=delta.text))
            case TextReplaced():
                text[:] = [delta.text]
                run.emit(AnswerReworded(text=delta.text))
                self._tell_once(_WRITES_CALLS, run)
            case ReasoningDelta():
                run.emit(ReasoningArrived(text=delta.text))
            case CallDelta():
                run.emit(ToolCallArriving(index=delta.index, name=delta.name, arguments=delta.arguments))
            case Withdrawn():
                text.clear()
                run.emit(AnswerWithdrawn(reason=delta.reason, attempt=delta.attempt, wait=delta.wait))
            case Completed():
                return delta
        return None

    def _tell_once(self, text: str, run: RunState) -> None:
        if text not in self.told:
            self.told.add(text)
            run.emit(Noticed(text=text))

    def _keep_partial(self, text: str) -> None:
        """What an interrupted answer had said so far."""
        if text.strip():
            content = (Text(text=self.masker.mask(text)),)
            self.session.say(self._message(content, "interrupted"))
            self.session.sync()

    def _message(self, content: tuple[Part, ...], stop: StopReason) -> AssistantMessage:
        return AssistantMessage(
            id=new_id(), time=timestamp(self.session.clock), content=content, model=self.model.name, stop=stop
        )

    async def _log_answer(self, completed: Completed, given: Sequence[Completed], run: RunState) -> Answer:
        parts = tuple(self._with_own_ids(completed.content))
        message = self._message(tuple(self._masked(part) for part in parts), completed.stop)
        await asyncio.to_thread(self.prepare_counter)
        self.measure()
        for one in _passed_over(given, completed):
            self._log_usage(one, message, run, measured=False)
        self._log_usage(completed, message, run, measured=True)
        self.session.say(message)
        await asyncio.to_thread(self.session.sync)
        run.emit(Answered(message=message, usage=completed.usage, cost=self.price(completed)))
        run.emit(GaugeChanged(gauge=self.gauge()))
        return Answer(message=message, calls=tuple(part for part in parts if isinstance(part, ToolCall)))

    def _with_own_ids(self, parts: Sequence[Part]) -> Iterator[Part]:
        """Calls with ids that the session does not have yet: some servers begin with `call_0` in every answer."""
        taken = {""}
        for part in parts:
            if isinstance(part, ToolCall) and (part.id in taken or part.id in self.session.call_ids):
                part = replace(part, id=f"call_{new_id()}")  # noqa: PLW2901
            if isinstance(part, ToolCall):
                taken.add(part.id)
            yield part

    def _masked(self, part: Part) -> Part:
        if not isinstance(part, ToolCall):
            return replace(part, text=self.masker.mask(clean(part.text)))
        arguments = cast(dict[str, JsonValue], self.masker.mask_json(dict(part.arguments)))
        error, written = (text and self.masker.mask(text) for text in (part.error, part.written))
        return replace(part, arguments=arguments, error=error, written=written)

    def _log_usage(self, completed: Completed, message: AssistantMessage, run: RunState, *, measured: bool) -> None:
        """Notes what the call used, and if it is `measured` our own count of it: the view is still its request's."""
        usage, cost = completed.usage or NOTHING, self.price(completed)
        entry = UsageReported(
            **self.session.header(),
            model=self.model.name,
            usage=usage,
            cost=cost,
            purpose="turn",
            message=message.id,
            counted=self.ladder.meter.count(self.session.view.messages) if measured else 0,
        )
        self.session.append(entry)
        self.ladder.meter.add(entry)
        run.add_usage(usage, cost)
        if self.ladder.meter.suspicious is entry:
            run.emit(Noticed(text=_suspicion(entry)))


def _suspicion(report: UsageReported) -> str:
    return (
        f"the server says the request had {report.usage.input:,} tokens where we count {report.counted:,}: "
        "it may have cut the prompt, or count in its own way"
    )


def _around(middleware: Middleware, run: RunState, handler: ModelHandler) -> ModelHandler:
    return lambda request: middleware.wrap_model(run, request, handler)


async def _noted(deltas: AsyncIterator[Delta], given: list[Completed]) -> AsyncIterator[Delta]:
    async for delta in deltas:
        if isinstance(delta, Completed):
            given.append(delta)
        yield delta


def _passed_over(given: Sequence[Completed], taken: Completed) -> Sequence[Completed]:
    """The model's answers that are not the one that was taken; a middleware may have changed that one."""
    others = [one for one in given if one is not taken]
    return others if len(others) < len(given) else others[:-1]
