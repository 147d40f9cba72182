"""Running shell commands: each in a session of its own, without a terminal, ended with all that it started.

The environment is made in `environment`; whether a command may run at all is a matter of approvals and the sandbox.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .output import Kept
from .processes import running, signal_all
from .protocol import BackendError, Executed

_DRAIN = 0.2
"""Seconds that output is still read after the shell has ended, if a child holds it open."""
_POLL = 0.02
_CHUNK = 256 * 1024

OnOutput = Callable[[bytes], None]


@dataclass(slots=True, eq=False, kw_only=True)
class _Job:
    """A command that runs, or left something running."""

    process: asyncio.subprocess.Process
    reader: int
    """Where its output comes from: a file descriptor that does not block."""
    take: OnOutput | None
    """Gets the output; None throws it away: who writes to a pipe that nobody reads is stopped."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """The output has come to its end."""

    def listen(self) -> None:
        asyncio.get_running_loop().add_reader(self.reader, self._read)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            data = os.read(self.reader, _CHUNK)
            if not data:
                self.close()
            elif self.take is not None:
                self.take(data)

    def close(self) -> None:
        if not self.ended.is_set():
            self.ended.set()
            asyncio.get_running_loop().remove_reader(self.reader)
            os.close(self.reader)

    def alive(self) -> bool:
        """Something of it still runs."""
        return running(self.process.pid)

    async def end(self, grace: float) -> None:
        """Ends all of it: asks, waits `grace` seconds, then kills."""
        signal_all(self.process.pid, signal.SIGTERM)
        try:
            for _ in range(round(grace / _POLL)):
                if not self.alive():
                    break
                await asyncio.sleep(_POLL)
        finally:
            signal_all(self.process.pid, signal.SIGKILL)
        await self.process.wait()


@dataclass(slots=True, kw_only=True)
class Shell:
    """Runs commands in one folder."""

    program: str
    """The shell's absolute path."""
    cwd: Path
    environ: Mapping[str, str]
    grace: float = 2.0
    """Seconds between the request to end and the kill."""
    _left: set[_Job] = field(default_factory=set[_Job])

    async def run(self, command: str, limit: float, on_output: OnOutput | None) -> Executed:
        """See `Backend.execute`. When cancelled, ends what it started before it returns."""
        kept, started = Kept(), time.monotonic()

        def take(data: bytes) -> None:
            kept.add(data)
            if on_output is not None:
                on_output(data)

        job = await self._start(command, take)
        try:
            timed_out = not await _exited(job, limit)
            if timed_out:
                await job.end(self.grace)
            with suppress(TimeoutError):
                await asyncio.wait_for(job.ended.wait(), _DRAIN)
        except BaseException:
            if job.alive():
                await job.end(self.grace)
            job.close()
            raise
        left_running = self._leave(job)
        output, dropped, dropped_at = kept.result()
        code = job.process.returncode
        return Executed(
            output=output,
            exit_code=code if not timed_out and code is not None and code >= 0 else None,
            signal=-code if not timed_out and code is not None and code < 0 else None,
            timed_out=timed_out,
            left_running=left_running,
            dropped=dropped,
            dropped_at=dropped_at,
            seconds=time.monotonic() - started,
            directory=str(self.cwd),
        )

    async def _start(self, command: str, take: OnOutput) -> _Job:
        reader, writer = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                self.program,
                "-c",
                command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                cwd=self.cwd,
                env=dict(self.environ),
                start_new_session=True,
            )
        except BaseException as error:
            os.close(reader)
            if isinstance(error, OSError | ValueError):
                raise BackendError(f"The command could not be started: {error}") from error
            raise
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        job = _Job(process=process, reader=reader, take=take)
        job.listen()
        return job

    def _leave(self, job: _Job) -> bool:
        """Whether something of the command goes on; then its output is read and thrown away from now on."""
        self._left = {left for left in self._left if not left.ended.is_set() or left.alive()}
        if job.ended.is_set() and not job.alive():
            return False
        job.take = None
        self._left.add(job)
        return True

    async def aclose(self) -> None:
        """Ends what commands left running."""
        left, self._left = self._left, set()
        await asyncio.gather(*(job.end(self.grace) for job in left if job.alive()))
        for job in left:
            job.close()


async def _exited(job: _Job, limit: float) -> bool:
    """Whether the shell has ended within `limit` seconds."""
    try:
        async with asyncio.timeout(limit):
            await job.process.wait()
    except TimeoutError:
        return False
    return True
