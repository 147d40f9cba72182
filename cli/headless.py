"""A run without the screen: settings, agent, printer, exit code.

Whatever goes wrong, standard output holds what its format promises and the exit code says what happened.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..agent.agent import Agent
from ..agent.build import Extras, build
from ..agent.credentials import load_credentials
from ..agent.errors import AuthError, ConfigError, DeepagentError
from ..agent.sessions import Choice
from ..agent.workspace import find_workspace
from ..context.storage import StorageError
from .debug import DebugLog
from .first_steps import default_model, first_steps
from .options import DEMO_SCRIPT, PICK, RunOptions
from .printers import Ending, Json, JsonPrinter, Printer, StreamPrinter, TextPrinter, result_object, say
from .settings import LoadedSettings, load_settings
from .standard_input import read_input

OK, FAILED, USAGE, LIMIT, DENIED, TRY_LATER, INTERRUPTED = 0, 1, 2, 3, 4, 75, 130
"""Exit codes; 143 stands for an interruption by SIGTERM."""
_LATER = frozenset({"rate_limit", "server", "connection", "broken_stream", "unavailable"})


class UsageError(Exception):
    """The command line makes no sense; the text says why."""


def run_headless(options: RunOptions) -> int:
    """The exit code of a run."""
    try:
        prompt = _prompt(options)
        return asyncio.run(_Run(options, _printer(options)).run(prompt))
    except UsageError as error:
        say(str(error))
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _close_quietly()
        return FAILED


def _prompt(options: RunOptions) -> str:
    """What is to be done, from argument and standard input."""
    if options.session == PICK:
        raise UsageError("--resume needs a session's id here; `deepagent sessions` lists them")
    terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if terminal and not options.print:
        raise UsageError("the screen is not there yet: run it with -p, or see it with `deepagent demo`")
    given = (options.prompt or "", read_input())
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


def _close_quietly() -> None:
    """Keeps the interpreter from complaining about a pipe that nobody reads any more."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
        try:
            self.agent = await self._open()
            await self._watch(self.agent, prompt)
            code = self._exit_code()
        except (DeepagentError, StorageError) as failure:
            code, error = USAGE if isinstance(failure, ConfigError) else FAILED, failure
            say(str(failure))
        archive = self.agent.archive if self.agent else None
        if self.agent:
            await self.agent.aclose()
        self.printer.result(self._result(error, archive))
        return code

    async def _open(self) -> Agent:
        options = self.options
        workspace = find_workspace(options.cwd or Path.cwd(), environ=os.environ)
        loaded = self.loaded = load_settings(workspace, environ=os.environ, flags=options.flags, trust=options.trust)
        for notice in loaded.notices:
            say(notice)
        settings = loaded.settings
        if settings.model is None:
            keys = load_credentials(workspace.user).keys
            model = default_model({*os.environ, *keys})
            if model is None:
                raise AuthError(await first_steps())
            settings = replace(settings, model=model)
        choice = Choice(session=options.session, fork=options.fork, persist=options.persist)
        extras = Extras(add_dirs=options.add_dirs, demo=DEMO_SCRIPT)
        agent = build(settings, workspace, environ=os.environ, choice=choice, extras=extras)
        for notice in agent.notices:
            say(notice)
        return agent

    async def _watch(self, agent: Agent, prompt: str) -> None:
        """Hands every event to printer, ending and debug log."""
        debug = DebugLog(self.options.debug)
        with self._signals(agent), debug:
            async with aclosing(agent.astream(prompt)) as events:
                async for event in events:
                    debug.event(event)
                    self.ending.event(event)
                    self.printer.event(event)

    @contextmanager
    def _signals(self, agent: Agent) -> Generator[None, None, None]:
        """The first interrupt ends the run in order; a second one ends the process."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupt, number, agent)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def _interrupt(self, number: int, agent: Agent) -> None:
        if self.signal:
            os._exit(128 + number)
        self.signal = number
        agent.interrupt()

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
                return TRY_LATER if problem.get("kind") in _LATER else FAILED
            case _:
                say(str((ended.error or {}).get("message", ended.outcome)))
                return LIMIT

    def _result(self, error: Exception | None, archive: str | None) -> Json:
        problem = {"kind": getattr(error, "kind", "storage"), "message": str(error)} if error else None
        return result_object(
            self.ending,
            session=self.agent.session.id if self.agent else None,
            seconds=time.monotonic() - self.began,
            archive=archive,
            trusted=self.loaded.trusted if self.loaded else False,
            error=problem,
        )
