"""What a sub-agent is: a name, what it is for, and how it differs from the agent that hands work on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..config import LimitSettings

PREAMBLE = (
    "You do one piece of work for another agent. It sees nothing of what you read and do but your last answer, so "
    "that answer must stand by itself: what you found or changed, with paths and line numbers, and what you could not "
    "find or do. Ask nothing back; where something is unclear, choose and say what you chose."
)
"""What every sub-agent is told first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """A kind of sub-agent."""

    name: str
    description: str
    """What it is for, in one line, for the model that hands work on."""
    prompt: str = ""
    """What it is told besides; empty for nothing."""
    tools: tuple[str, ...] | None = None
    """Names of the tools that it has; None for all."""
    model: str | None = None
    """As `--model` takes it; None for the model of the agent that hands work on."""
    limits: LimitSettings = field(default_factory=LimitSettings)
    """Where a task ends by itself."""
    path: Path | None = None
    """The file that it comes from; None where it is built in or given by a program."""


GENERAL = Subagent(
    name="general-purpose",
    description="has all tools: explores, answers a question about the code, or does a piece of work of many steps",
)
"""There is always this one."""
