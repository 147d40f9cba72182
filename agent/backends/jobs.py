"""Commands that run, and what they left running: each a job that can be told of, read, and ended with all its own."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass, field
from typing import Literal

from .output import Output
from .processes import Family
from .pump import Pump

_POLL = 0.02
_KILLS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """How a job stands."""

    id: str
    command: str
    state: Literal["running", "ended"]
    exit_code: int | None
    """Of the shell, once it has ended; None where a signal ended it."""
    signal: int | None
    seconds: float
    """Since it was started, or that it took."""
    path: str | None
    """The file with its output, once there is any."""
    tail: str
    """The end of its output."""


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """A command that was started."""

    command: str
    process: asyncio.subprocess.Process
    family: Family
    pump: Pump
    output: Output
    id: str = ""
    """Its number for people and models; empty for one that is waited for."""
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    """When it was first seen to have ended."""

    def alive(self) -> bool:
        """Something of it still runs."""
        return self.family.running()

    def info(self) -> JobInfo:
        """How it stands now. Blocks a few milliseconds: it looks at the system's processes."""
        running = self.alive()
        if not running and self.ended is None:
            self.ended = time.monotonic()
        code = self.process.returncode
        sink = self.output.sink
        return JobInfo(
            id=self.id,
            command=self.command,
            state="running" if running else "ended",
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            seconds=(self.ended or time.monotonic()) - self.started,
            path=sink.path if sink else None,
            tail=self.output.tail(),
        )

    async def end(self, grace: float) -> None:
        """Ends all of it: asks, waits `grace` seconds, then kills."""
        self.family.signal(signal.SIGTERM)
        try:
            for _ in range(round(grace / _POLL)):
                if not self.alive():
                    break
                await asyncio.sleep(_POLL)
        finally:
            for _ in range(_KILLS):  # who was just being started is not among those that were looked up
                self.family.signal(signal.SIGKILL)
                if not self.alive():
                    break
        await self.process.wait()


class Jobs:
    """The jobs of a session, by number."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._number = 0

    def take(self, job: Job) -> str:
        """Gives a job its number."""
        self._number += 1
        job.id = str(self._number)
        self._jobs[job.id] = job
        return job.id

    def get(self, id: str) -> Job | None:
        """The job with this number, or None."""
        return self._jobs.get(id.strip().removeprefix("#"))

    def all(self) -> tuple[Job, ...]:
        """All, oldest first, also those that have ended."""
        return tuple(self._jobs.values())

    async def aclose(self, grace: float) -> None:
        """Ends all that still run."""
        jobs = self.all()
        await asyncio.gather(*(job.end(grace) for job in jobs if job.alive()))
        for job in jobs:
            job.pump.stop()
            job.output.close()
