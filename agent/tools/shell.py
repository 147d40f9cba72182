"""`execute`."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from pydantic import JsonValue

from ..backends.protocol import Executed
from ..runtime import ToolRuntime
from ..tool import ToolResult, tool
from .answers import answering, count, failure
from .terminal import plain

LONGEST = 3_600
"""Seconds that a command may be given."""


@tool(access="execute", subject="command")
@answering
async def execute(command: str, runtime: ToolRuntime[Any], timeout: float = 120) -> ToolResult:  # noqa: ASYNC109
    """Run a shell command (bash). Each call begins in the working directory; no input, no terminal.

    To leave a server running, end the command with `&`.

    Args:
        timeout: Seconds after which it is ended.
    """
    if not command.strip() or "\0" in command:
        return failure("The command is empty." if not command.strip() else "The command holds a NUL character.")
    if not 0 < timeout <= LONGEST:
        return failure(f"timeout must be above 0 and at most {LONGEST:,} seconds.")
    ran = await runtime.backend.execute(command, limit=timeout, on_output=runtime.on_output)
    output = await asyncio.to_thread(_output, ran)
    state = _state(ran, timeout)
    log: dict[str, JsonValue] = {
        "command": command,
        "exit_code": ran.exit_code,
        "signal": ran.signal,
        "timed_out": ran.timed_out,
        "left_running": ran.left_running,
        "dropped_bytes": ran.dropped,
        "seconds": round(ran.seconds, 3),
    }
    summary = f"{state.replace('exit code', 'exit')} · {_gist(ran, output)}"
    text = "\n".join([*([output] if output else []), *_ending(ran, state)])
    return ToolResult(text=text, summary=summary, log=log)


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
    last = output.rstrip()[-500:].rpartition("\n")[2].strip(" =-")
    return last[:80] if ran.exit_code != 0 and last else count(output.count("\n") + bool(output), "line")


def _ending(ran: Executed, state: str) -> list[str]:
    running = "; something it started still runs and will be ended with this session" if ran.left_running else ""
    return [f"[{state}{running}; directory {ran.directory}]"]
