"""The footer: mode, model and branch, the live gauge, the keys, and what Esc would do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.reactive import reactive
from textual.widgets import Static

from .text import safe

if TYPE_CHECKING:
    from ...agent.events import Gauge

_KEYS = "? keys  / commands  @ files  ! shell  Ctrl+J newline"
_KEYS_BUSY = "Enter steers  Tab queues  ↑ takes back"
_BAR = 64
"""Cells from which the gauge has its bar."""


class Footer(Vertical):
    """Two lines at the bottom."""

    DEFAULT_CSS = """
    Footer {
        dock: bottom;
        height: 2;
        padding: 0 1;
        color: $text-muted;
    }
    Footer Horizontal { height: 1; }
    Footer .left { width: 1fr; text-overflow: ellipsis; text-wrap: nowrap; }
    Footer .right { width: auto; max-width: 100%; margin: 0 0 0 2; text-wrap: nowrap; text-overflow: ellipsis; }
    Footer #gauge.-high { color: $warning; }
    Footer #gauge.-full { color: $error; }
    """

    mode: reactive[str] = reactive("default")
    model: reactive[str] = reactive("")
    branch: reactive[str] = reactive("")
    busy: reactive[bool] = reactive(False)
    escape: reactive[str] = reactive("nothing to stop")
    """What Esc would do next."""
    gauge: reactive[Gauge | None] = reactive(None)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(id="state", classes="left")
            yield Static(id="gauge", classes="right")
        with Horizontal():
            yield Static(safe(_KEYS), id="keys", classes="left")
            yield Static(id="escape", classes="right")

    def watch_mode(self) -> None:
        """Shows mode, model and branch."""
        parts = (f"{self.mode} ⇧Tab", self.model, self.branch)
        self._show("#state", " · ".join(part for part in parts if part))

    watch_model = watch_mode
    watch_branch = watch_mode

    def watch_busy(self) -> None:
        """Shows the keys that matter now."""
        self._show("#keys", _KEYS_BUSY if self.busy else _KEYS)

    def watch_escape(self) -> None:
        """Shows what Esc would do."""
        self._show("#escape", f"Esc: {self.escape}")

    def watch_gauge(self) -> None:
        """Shows how full the window is."""
        gauge = self.gauge
        if gauge is None:
            return
        from ..gauge import gauge_line

        self._show("#gauge", gauge_line(gauge, short=self.size.width < _BAR))
        line = self.query_one("#gauge", Static)
        line.set_class(gauge.used >= gauge.trigger * 0.8, "-high")
        line.set_class(gauge.used >= gauge.trigger, "-full")

    def _show(self, selector: str, text: str) -> None:
        if self.is_attached:
            self.query_one(selector, Static).update(safe(text))

    def on_resize(self) -> None:
        """Shows a shorter gauge where there is no room for its bar."""
        self.watch_gauge()

    def on_mount(self) -> None:
        """Shows what was set before."""
        self.watch_mode()
        self.watch_escape()
        self.watch_gauge()
