"""What came of holding a call against the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["default", "accept-edits", "plan", "yolo"]
Kind = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done with a call."""

    kind: Kind
    reason: str
    """Why, as half a sentence for a person and the model."""
    rules: tuple[str, ...] = ()
    """The rules that are missing to allow the call, as `--allow` takes them: one for each command of a shell line and
    each file that it writes. None where no rule could allow it."""
    warning: str = ""
    """What a person should know before saying yes, as half a sentence; what has one asks in every mode."""
    reading: bool = False
    """It may run because it only reads: only where it can neither write nor reach a network."""

    @property
    def rule(self) -> str:
        """The first rule that is missing, or empty."""
        return self.rules[0] if self.rules else ""
