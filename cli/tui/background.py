"""`/jobs`: what runs in the background, to look at and to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agent.backends.protocol import BackendError
from .by_hand import NO_MODEL
from .list_screen import ListScreen

if TYPE_CHECKING:
    from ...agent.backends.jobs import JobInfo
    from .desk import Desk

_TAIL = 8
"""Lines shown of each job's output in the list."""


async def jobs(app: Desk, argument: str) -> None:
    """Lists the jobs with the end of their output, shows all that is at hand of one, or ends one."""
    agent = app.conversation.agent
    if agent is None:
        app.presenter.notice(NO_MODEL)
        return
    word, _, number = argument.partition(" ")
    try:
        if word == "end":
            job = await agent.parts.backend.end(number)
            app.presenter.notice(f"Job {job.id} {_state(job)}: {_line(job)}")
            return
    except BackendError:
        app.presenter.notice(f"There is no job {number or '?'}: /jobs lists them, /jobs end NUMBER ends one")
        return
    known = await agent.parts.backend.jobs()
    chosen = [job for job in known if not argument or job.id == argument.removeprefix("#")]
    if not chosen:
        app.presenter.notice(
            f"There is no job {argument}: /jobs lists them" if known else "Nothing runs in the background"
        )
        return
    title = f"Job {chosen[0].id}" if argument else "Jobs"
    lines = [line for job in chosen for line in _rows(job, None if argument else _TAIL)]
    app.push_screen(ListScreen(title, [*lines, "/jobs NUMBER shows more of one, /jobs end NUMBER ends it"]))


def _rows(job: JobInfo, most: int | None) -> list[str]:
    """A job in lines: its command, how it stands, the end of its output."""
    tail = job.tail.rstrip("\n").split("\n") if job.tail.strip() else []
    shown = tail[-most:] if most else tail
    where = [f"    whole output: {job.path}"] if job.path else []
    return [f"{job.id}  {_line(job)}", f"    {_state(job)}", *where, *(f"    │ {line}" for line in shown), ""]


def _line(job: JobInfo) -> str:
    from ...agent.tools.shell import one_line

    return one_line(job.command)


def _state(job: JobInfo) -> str:
    from ...agent.tools.shell import job_state

    return job_state(job)
