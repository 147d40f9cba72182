"""Calls back somebody who looks elsewhere: a bell, or a notification of the terminal's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..terminal import plain

if TYPE_CHECKING:
    from ...agent.config import Notify

LONG = 10.0
"""Seconds from which the end of a run is worth a call."""
_MOST = 120
"""Characters of a notification."""


def notification(way: Notify, text: str, environ: Mapping[str, str]) -> str:
    """What to write to the terminal. Within tmux the notification is wrapped, so that the terminal around gets it."""
    shown = " ".join(plain(text).split())[:_MOST]
    code = f"\x1b]9;{shown}\x1b\\"
    if "TMUX" in environ:
        escaped = code.replace("\x1b", "\x1b\x1b")
        code = f"\x1bPtmux;{escaped}\x1b\\"
    return {"off": "", "bell": "\a", "osc9": code, "both": f"\a{code}"}[way]
