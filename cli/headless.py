"""A run without the screen: settings, agent, printer, exit code.

Whatever goes wrong, standard output holds what its format promises and the exit code says what happened.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field

from ..agent.agent import Agent
from ..agent.errors import AuthError, ConfigError, DeepagentError
from ..agent.events import RunEnded
from ..context.entries import Usage
from ..context.storage import StorageError
from .debug import DebugLog
from .first_steps import first_steps
from .opening import Opener
from .options import PICK, RunOptions
from .printers import Ending, Json, JsonPrinter, Printer, StreamPrinter, TextPrinter, result_object, say
from .settings import LoadedSettings
from .standard_input import InputTooLong, read_input
from .streams import OutputLost, drop_output

OK, FAILED, USAGE, LIMIT, DENIED, TRY_LATER, INTERRUPTED = 0, 1, 2, 3, 4, 75, 130
"""Exit codes; 143 stands for an interruption by SIGTERM."""
_LATER = frozenset({"rate_limit", "server", "connection", "broken_stream", "unavailable"})
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOT_BEGUN = RunEnded(outcome="interrupted", text="", turns=0, usage=Usage(input=0, output=0), cost=None, compactions=0)


class UsageError(Exception):
    """The command line makes no sense; the text says why."""


def run_headless(options: RunOptions) -> int:
    """The exit code of a run."""
    printer = _printer(options)
    try:
        return _run(options, printer)
    except OutputLost as error:
        say(str(error))
        drop_output()
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(options: RunOptions, printer: Printer) -> int:
    try:
        prompt = _prompt(options)
    except UsageError as error:
        say(str(error))
        printer.result(_failure("usage", str(error)))
        return USAGE
    return asyncio.run(_Run(options, printer).run(prompt))


def _failure(kind: str, message: str) -> Json:
    """The result object where there was no run."""
    problem = {"kind": kind, "message": message}
    return result_object(Ending(), session=None, seconds=0, archive=None, trusted=False, error=problem)


def _prompt(options: RunOptions) -> str:
    """What is to be done, from argument and standard input."""
    if options.session == PICK:
        raise UsageError("--resume needs a session's id here; `deepagent sessions` lists them")
    terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if terminal and not options.print:
        raise UsageError("this terminal cannot show the screen (TERM=dumb): run it with -p")
    if options.fork and options.session is None:
        raise UsageError("--fork needs --continue or --resume: it goes on in a copy of a session")
    try:
        given = (options.prompt or "", read_input())
    except InputTooLong as error:
        raise UsageError(str(error)) from error
    prompt = "\n\n".join(text for text in given if text.strip())
    if not prompt:
        raise UsageError("there is no prompt: give it as an argument of -p, or on standard input (--help shows all)")
    return prompt


def _printer(options: RunOptions) -> Printer:
    match options.output:
        case "text":
            return TextPrinter(sys.stdout)
        case "json":
            return JsonPrinter(sys.stdout)
        case "stream-json":
            return StreamPrinter(sys.stdout)


@dataclass(slots=True)
class _Run:
    """One run, from settings to exit code."""

    options: RunOptions
    printer: Printer
    ending: Ending = field(default_factory=Ending)
    loaded: LoadedSettings | None = None
    agent: Agent | None = None
    signal: int = 0
    began: float = field(default_factory=time.monotonic)

    async def run(self, prompt: str) -> int:
        error: Exception | None = None
        with self._signals():
            try:
                await self._attempt(prompt)
            except OutputLost:
                raise
            except Exception as failure:  # noqa: BLE001 - told below: standard output holds what its format promises
                error = failure
            finally:
                error = await self._close() or error
        code = self._failed(error) if error else self._exit_code()
        self.printer.result(self._result(error))
        return code

    async def _attempt(self, prompt: str) -> None:
        with DebugLog(self.options.debug) as debug:
            self.agent = await self._open()
            if self.signal:  # it came before there was a run to end
                self.ending.event(_NOT_BEGUN)
                return
            async with aclosing(self.agent.astream(prompt)) as events:
                async for event in events:
                    debug.event(event)
                    self.ending.event(event)
                    self.printer.event(event)

    async def _close(self) -> StorageError | None:
        """Gives the session back; an error if not all of it is on the disk."""
        try:
            if self.agent:
                await self.agent.aclose()
        except StorageError as error:
            return error
        return None

    async def _open(self) -> Agent:
        opened = Opener(self.options).open(session=self.options.session, on_loaded=self._loaded)
        if opened.agent is None:
            raise AuthError(await first_steps())
        for notice in opened.agent.notices:
            say(notice)
        return opened.agent

    def _loaded(self, loaded: LoadedSettings) -> None:
        """The settings are said, and kept for the result, also when what follows them fails."""
        self.loaded = loaded
        for notice in loaded.notices:
            say(notice)

    @contextmanager
    def _signals(self) -> Generator[None, None, None]:
        """The first interrupt ends the run in order, a second one the process. What is ignored (`nohup`) stays so."""
        loop = asyncio.get_running_loop()
        heard = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
        for number in heard:
            loop.add_signal_handler(number, self._interrupt, number)
        try:
            yield
        finally:
            for number in heard:
                loop.remove_signal_handler(number)

    def _interrupt(self, number: int) -> None:
        if self.signal:
            os._exit(128 + number)
        self.signal = number
        if self.agent:
            self.agent.interrupt()

    def _failed(self, error: Exception) -> int:
        """The exit code of what went wrong outside the run."""
        if not isinstance(error, DeepagentError | StorageError):
            traceback.print_exception(error)
        say(str(error))
        if isinstance(error, ConfigError):
            return USAGE
        return TRY_LATER if _kind(error) in _LATER else FAILED

    def _exit_code(self) -> int:
        ended = self.ending.ended
        if ended is None:
            return FAILED
        match ended.outcome:
            case "success":
                return DENIED if self.ending.denials else OK
            case "interrupted":
                return 128 + (self.signal or signal.SIGINT)
            case "error":
                problem = ended.error or {}
                say(str(problem.get("message", "the run failed")))
                return self._failure_code(str(problem.get("kind")))
            case _:
                say(str((ended.error or {}).get("message", ended.outcome)))
                return LIMIT

    def _failure_code(self, kind: str) -> int:
        """A run that ended because the model repeats a denied call was denied, not broken."""
        if kind in _LATER:
            return TRY_LATER
        return DENIED if kind == "repeated_denial" else FAILED

    def _result(self, error: Exception | None) -> Json:
        problem = {"kind": _kind(error), "message": str(error)} if error else None
        return result_object(
            self.ending,
            session=self.agent.session.id if self.agent else None,
            seconds=time.monotonic() - self.began,
            archive=self.agent.archive if self.agent else None,
            trusted=self.loaded.trusted if self.loaded else False,
            error=problem,
        )


def _kind(error: Exception) -> str:
    return "storage" if isinstance(error, StorageError) else getattr(error, "kind", "internal")
