"""Running shell commands: each in a session of its own, without a terminal, ended with all that it started.

The environment is made in `environment`, the reading of output lies in `pump` and `output`, what goes on after its
shell in `jobs`. Whether a command may run at all is a matter of approvals; what it may reach, of the sandbox.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...context.stored import Stored
from ..sandbox.bounds import USUAL, Grant
from .jobs import Job, JobInfo, Jobs
from .output import Kept, OpenSink, Output
from .processes import MARK, Family
from .protocol import BackendError, Executed
from .pump import OnOutput, Pump

_DRAIN = 0.2
"""Seconds that output is still read after the shell has ended, if a child holds it open."""

Confine = Callable[[Sequence[str], Path, Grant], Sequence[str]]
"""Puts a sandbox around a command: arguments, working directory, and how this one is to be confined."""


def unconfined(argv: Sequence[str], cwd: Path, grant: Grant) -> Sequence[str]:
    """No sandbox at all."""
    return argv


@dataclass(slots=True, kw_only=True)
class Shell:
    """Runs commands in one folder."""

    program: str
    """The shell's absolute path."""
    cwd: Path
    environ: Mapping[str, str]
    confine: Confine = unconfined
    grace: float = 2.0
    """Seconds between the request to end and the kill."""
    _jobs: Jobs = field(default_factory=Jobs)

    async def run(
        self,
        command: str,
        limit: float,
        on_output: OnOutput | None,
        *,
        open_sink: OpenSink | None = None,
        grant: Grant = USUAL,
    ) -> Executed:
        """See `Backend.execute`. When cancelled, ends what it started before it returns."""
        job = await self._start(command, Output(open_sink), on_output, grant)
        try:
            timed_out = not await _exited(job, limit)
            if timed_out:
                await job.end(self.grace)
            with suppress(TimeoutError):
                await asyncio.wait_for(job.pump.ended.wait(), _DRAIN)
        except BaseException:
            if job.alive():
                await job.end(self.grace)
            job.pump.stop()
            await asyncio.to_thread(job.output.close)
            raise
        job.pump.flush()
        first = job.output
        left = self._leave(job, open_sink)
        return self._executed(job, await asyncio.to_thread(first.close), timed_out, left)

    def _executed(self, job: Job, output: tuple[Kept, Stored | None], timed_out: bool, left: str) -> Executed:
        kept, stored = output
        data, dropped, dropped_at = kept.result()
        code = job.process.returncode
        return Executed(
            output=data,
            stored=stored,
            exit_code=code if not timed_out and code is not None and code >= 0 else None,
            signal=-code if not timed_out and code is not None and code < 0 else None,
            timed_out=timed_out,
            job=left,
            dropped=dropped,
            dropped_at=dropped_at,
            seconds=time.monotonic() - job.started,
            directory=str(self.cwd),
        )

    async def start(self, command: str, *, open_sink: OpenSink | None, grant: Grant = USUAL) -> JobInfo:
        """Starts a command that is not waited for. Raises `BackendError`."""
        job = await self._start(command, Output(open_sink, whole=0), None, grant)
        self._jobs.take(job)
        with suppress(TimeoutError):  # one that fails at once is told of at once
            await asyncio.wait_for(job.pump.ended.wait(), _DRAIN)
            await asyncio.wait_for(job.process.wait(), _DRAIN)
        return await asyncio.to_thread(job.info)

    async def jobs(self) -> tuple[JobInfo, ...]:
        """What was left running or started without waiting, oldest first."""
        return await asyncio.to_thread(lambda: tuple(job.info() for job in self._jobs.all()))

    async def end(self, id: str) -> JobInfo:
        """Ends a job with all that it started. Raises `BackendError` if there is none."""
        job = self._jobs.get(id)
        if job is None:
            raise BackendError(f"There is no job {id!r}")
        if job.alive():
            await job.end(self.grace)
        with suppress(TimeoutError):
            await asyncio.wait_for(job.pump.ended.wait(), _DRAIN)
        return await asyncio.to_thread(job.info)

    async def _start(self, command: str, output: Output, show: OnOutput | None, grant: Grant) -> Job:
        reader, writer = os.pipe()
        mark = secrets.token_hex(8)
        try:
            argv = await asyncio.to_thread(self.confine, (self.program, "-c", command), self.cwd, grant)
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                cwd=self.cwd,
                env={**self.environ, MARK: mark},
                start_new_session=True,
            )
        except BaseException as error:
            os.close(reader)
            if isinstance(error, OSError | ValueError):
                raise BackendError(f"The command could not be started: {error}") from error
            raise
        finally:
            os.close(writer)
        family = Family(session=process.pid, mark=mark)
        pump = Pump(reader, output.add, show)
        return Job(command=command, process=process, family=family, pump=pump, output=output)

    def _leave(self, job: Job, open_sink: OpenSink | None) -> str:
        """The number of the job, if something of the command goes on; what it writes from now on has its own place."""
        if not job.alive():
            job.pump.stop()
            return ""
        job.output = Output(open_sink, whole=0)
        job.pump.divert(job.output.add)
        return self._jobs.take(job)

    async def aclose(self) -> None:
        """Ends what commands left running."""
        await self._jobs.aclose(self.grace)


async def _exited(job: Job, limit: float) -> bool:
    """Whether the shell has ended within `limit` seconds."""
    try:
        async with asyncio.timeout(limit):
            await job.process.wait()
    except TimeoutError:
        return False
    return True
