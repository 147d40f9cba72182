"""Running shell commands: each in a session of its own, without a terminal, ended with all that it started.

The environment is made in `environment`, the reading of output lies in `pump` and `output`, what goes on after its
shell in `jobs`. Whether a command may run at all is a matter of approvals; what it may reach, of the sandbox.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...context.stored import Stored
from ..sandbox.bounds import USUAL, Grant, Refusal
from ..sandbox.engine import SandboxError, Wrapped
from ..sandbox.sandbox import Sandbox
from .jobs import Job, JobInfo, Jobs
from .output import Kept, OpenSink, Output
from .processes import MARK, Family
from .protocol import BackendError, Executed
from .pump import OnOutput, Pump

_DRAIN = 0.2
"""Seconds that output is still read after the shell has ended, if a child holds it open."""


@dataclass(slots=True, kw_only=True)
class Shell:
    """Runs commands in one folder."""

    program: str
    """The shell's absolute path."""
    cwd: Path
    environ: Mapping[str, str]
    sandbox: Sandbox | None = None
    """What holds commands to their bounds; None: nothing does."""
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
        kept, stored = await asyncio.to_thread(first.close)
        ran = self._executed(job, kept, stored, timed_out, left)
        return replace(ran, refused=await asyncio.to_thread(self._refused, ran, grant))

    def _refused(self, ran: Executed, grant: Grant) -> tuple[Refusal, ...]:
        """What the sandbox kept a command from, as far as its output tells."""
        if self.sandbox is None or ran.exit_code == 0:
            return ()
        said = ran.stored.tail.encode() if ran.stored else ran.output
        return self.sandbox.refusals(said, ran.exit_code, grant, self.cwd)

    def _executed(self, job: Job, kept: Kept, stored: Stored | None, timed_out: bool, left: str) -> Executed:
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
        wrapped: Wrapped | None = None
        try:
            wrapped = await asyncio.to_thread(self._wrapped, command, grant)
            process = await asyncio.create_subprocess_exec(
                *wrapped.argv,
                pass_fds=wrapped.fds,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                cwd=self.cwd,
                env={**self.environ, MARK: mark},
                start_new_session=True,
            )
        except BaseException as error:
            os.close(reader)
            if isinstance(error, SandboxError):
                raise BackendError(str(error)) from error
            if isinstance(error, OSError | ValueError):
                raise BackendError(f"The command could not be started: {error}") from error
            raise
        finally:
            os.close(writer)
            if wrapped is not None:
                wrapped.close()
        family = Family(session=process.pid, mark=mark)
        pump = Pump(reader, output.add, show)
        return Job(command=command, process=process, family=family, pump=pump, output=output)

    def _wrapped(self, command: str, grant: Grant) -> Wrapped:
        argv = (self.program, "-c", command)
        return Wrapped(argv=argv) if self.sandbox is None else self.sandbox.wrap(argv, self.cwd, grant)

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
