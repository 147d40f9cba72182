"""`execute` and `jobs`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import JsonValue

from ..backends.jobs import JobInfo
from ..backends.protocol import Executed
from ..backends.terminal import plain
from ..runtime import ToolRuntime
from ..sandbox.bounds import Refusal
from ..tool import ToolResult, tool
from .answers import answering, count, failure

LONGEST = 3_600
"""Seconds that a command may be given."""
_COMMAND = 120
_TAIL_LINES = 40
_TAIL_WIDTH = 300


@tool(access="execute", subject="command")
@answering
async def execute(
    command: str,
    runtime: ToolRuntime[Any],
    timeout: float = 120,  # noqa: ASYNC109 - the model sets it
    background: bool = False,
) -> ToolResult:
    """Run a shell command (bash). Each call begins in the working directory; no input, no terminal.

    Args:
        timeout: Seconds after which it is ended.
        background: Do not wait for it (a server, a watcher); see `jobs`.
    """
    if not command.strip() or "\0" in command:
        return failure("The command is empty." if not command.strip() else "The command holds a NUL character.")
    if not 0 < timeout <= LONGEST:
        return failure(f"timeout must be above 0 and at most {LONGEST:,} seconds.")
    open_sink = partial(runtime.session.open_result, "execute")
    if background:
        return _started(await runtime.backend.start(command, open_sink=open_sink, grant=runtime.grant))
    ran = await runtime.backend.execute(
        command, limit=timeout, on_output=runtime.on_output, open_sink=open_sink, grant=runtime.grant
    )
    output = await asyncio.to_thread(_output, ran)
    state = _state(ran, timeout)
    log: dict[str, JsonValue] = {
        "command": command,
        "exit_code": ran.exit_code,
        "signal": ran.signal,
        "timed_out": ran.timed_out,
        "job": ran.job,
        "dropped_bytes": ran.dropped,
        "seconds": round(ran.seconds, 3),
    }
    summary = f"{state.replace('exit code', 'exit')} · {_gist(ran, output)}"
    text = "\n".join([*([output] if output else []), *_ending(ran, state)])
    return ToolResult(text=text, summary=summary, log=log, stored=ran.stored, refused=ran.refused)


@tool(access="none")
@answering
async def jobs(runtime: ToolRuntime[Any], id: str = "", end: bool = False) -> ToolResult:
    """List the commands that run in the background; with an id, show the end of one's output, or end it."""
    if not id.strip():
        if end:
            return failure("Give the id of the job to end.")
        known = await runtime.backend.jobs()
        text = "\n".join(f"{job.id}: {job_state(job)}: {one_line(job.command)}" for job in known)
        return ToolResult(text=text or "There are none.", summary=count(len(known), "job"))
    if end:
        job = await runtime.backend.end(id)
    else:
        found = [job for job in await runtime.backend.jobs() if job.id == id.strip().removeprefix("#")]
        if not found:
            return failure(f"There is no job {id!r}.")
        job = found[0]
    return ToolResult(text=_job_text(job), summary=f"job {job.id} · {job_state(job)}")


def one_line(command: str) -> str:
    """A command fit for a list."""
    line = " ".join(command.split())
    return line if len(line) <= _COMMAND else f"{line[: _COMMAND - 1]}…"


def job_state(job: JobInfo) -> str:
    """How a job stands, in a few words."""
    if job.state == "running":
        shell = f", its shell ended with exit code {job.exit_code}" if job.exit_code is not None else ""
        return f"running for {job.seconds:.0f} s{shell}"
    if job.signal is not None:
        return f"ended by signal {job.signal} after {job.seconds:.0f} s"
    return f"ended with exit code {job.exit_code} after {job.seconds:.0f} s"


def refusals_text(refused: Sequence[Refusal]) -> str:
    """What the sandbox kept a command from, in words."""
    return "; ".join(dict.fromkeys(map(_refusal_text, refused)))


def _refusal_text(refusal: Refusal) -> str:
    match refusal.kind:
        case "write":
            return f"writing {refusal.subject}"
        case "read":
            return f"reading {refusal.subject}"
        case "network":
            return f"the network ({refusal.subject})" if refusal.subject else "the network"
        case "other":
            return refusal.subject or "something"


def _started(job: JobInfo) -> ToolResult:
    log: dict[str, JsonValue] = {"command": job.command, "job": job.id, "exit_code": job.exit_code}
    return ToolResult(text=_job_text(job), summary=f"job {job.id} · {job_state(job)}", log=log)


def _job_text(job: JobInfo) -> str:
    lines = job.tail.removesuffix("\n").split("\n")[-_TAIL_LINES:]
    tail = "\n".join(line[:_TAIL_WIDTH] for line in lines)
    whole = f"; the whole output: {job.path}" if job.path else ""
    return (
        f"{tail}\n[job {job.id}: {job_state(job)}{whole}]" if tail else f"[job {job.id}: {job_state(job)}; no output]"
    )


def _output(ran: Executed) -> str:
    """What a terminal would show of the output, with a word about what is missing in it."""
    if not ran.dropped:
        return plain(ran.output).removesuffix("\n")
    head, tail = plain(ran.output[: ran.dropped_at]), plain(ran.output[ran.dropped_at :])
    return f"{head}\n[{ran.dropped:,} bytes were not kept]\n{tail.removesuffix(chr(10))}"


def _state(ran: Executed, timeout: float) -> str:
    if ran.timed_out:
        return f"ended after the time limit of {timeout:g} s"
    if ran.signal is not None:
        name = signal.Signals(ran.signal).name if ran.signal in set(signal.Signals) else "unknown"
        return f"ended by signal {ran.signal} ({name})"
    return f"exit code {ran.exit_code}"


def _gist(ran: Executed, output: str) -> str:
    """How much a command said, or the last thing that a failed one said: often that is the count of what failed."""
    if ran.stored:
        output = ran.stored.tail
    last = output.rstrip()[-500:].rpartition("\n")[2].strip(" =-")
    lines = ran.stored.lines if ran.stored else output.count("\n") + bool(output)
    return last[:80] if ran.exit_code != 0 and last else count(lines, "line")


def _ending(ran: Executed, state: str) -> list[str]:
    running = f"; something it started still runs as job {ran.job}" if ran.job else ""
    lost = f"; the end of the output is not in the file: {ran.stored.lost}" if ran.stored and ran.stored.lost else ""
    refused = f"; the sandbox kept it from {refusals_text(ran.refused)}" if ran.refused else ""
    return [f"[{state}{running}{lost}{refused}; directory {ran.directory}]"]
