"""The frame with a session behind it that can be opened, left and shown anew: what slash commands work on."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from textual import on, work

from ..options import RunOptions
from .frame import Frame
from .loading import Typing, background
from .login import LoginPanel, LoginResult
from .start import StartPanel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..opening import Opened


class Desk(Frame):
    """Opens agents and shows what there is of their sessions."""

    def __init__(self, options: RunOptions) -> None:
        super().__init__()
        self.options = options
        self._opening = True
        self._typing = Typing()
        self._problem = ""
        """Why the agent is not open; empty where it is, or where no model is known."""
        self._when_idle: Callable[[], None] | None = None
        self.demo_wanted = False
        """The user chose the demo, which works in a repository of its own."""

    def _add_start_panel(self) -> None:
        self.start_panel = StartPanel(self.options.cwd)
        self.transcript.add(self.start_panel)

    async def _open(self, opening: Awaitable[Opened], *, replay: bool, fresh: bool = False) -> None:
        """Waits for an agent and shows what there is, in place of what was there if `fresh`.

        What goes wrong is shown, and all stays as it was. What was sent meanwhile is sent now.
        """
        from ...agent.errors import DeepagentError
        from ...context.storage import StorageError

        self._opening = True
        try:
            opened = await opening
        except (DeepagentError, StorageError) as error:
            self._problem = str(error)
            self.presenter.notice(self._problem)
        else:
            self._problem = ""
            if fresh:
                self._fresh_start()
            self._show_opened(opened, replay=replay)
        self._opening = False
        self._opened()
        self._show_state()

    def _opened(self) -> None:
        """Opening has ended, well or not."""

    def _fresh_start(self) -> None:
        self.transcript.clear()
        self.presenter.reset()
        self._add_start_panel()

    def _show_opened(self, opened: Opened, *, replay: bool) -> None:
        """Shows what was just opened: footer, start panel, and what was said before."""
        self._look_around(opened)
        if opened.agent is None:
            self.start_panel.show_login(focus=not self.prompt.text)  # who is typing goes on
            return
        self.footer.model = _short(opened.agent.parts.model.name)
        self.footer.mode = self.conversation.mode or opened.agent.parts.settings.permissions.mode
        from ...agent.events import GaugeChanged

        self.presenter.show(GaugeChanged(gauge=opened.agent.gauge()))
        if replay:
            from ...agent.replay import events_of

            for event in events_of(opened.agent.session.entries):
                self.presenter.show(event)

    @work(exclusive=True, group="overview")
    async def _look_around(self, opened: Opened) -> None:
        """What takes a moment: tokenizer, git, the last session, and the model's library."""
        from ...agent.model.choose import prepare
        from ..overview import overview_of

        agent = opened.agent
        if agent is not None:
            await self._typing.pause()
            with background():
                await asyncio.to_thread(agent.parts.counter.prepare)
        overview = await asyncio.to_thread(overview_of, opened, agent.session.view if agent else None)
        self.start_panel.show(overview)
        self.footer.branch = overview.git
        if agent is not None and self.conversation.agent is agent:
            self._set_gauge(agent.gauge())
            with background():
                await prepare(agent.parts.model)

    def when_idle(self, then: Callable[[], None]) -> None:
        """Does something once, when what runs next has ended."""
        self._when_idle = then

    def show_anew(self) -> None:
        """What the session holds now, in place of what was shown: the talk went back."""
        opened = self.conversation.opened
        if opened is not None:
            self._fresh_start()
            self._show_opened(opened, replay=True)

    def start_over(self, session: str | None) -> None:
        """Leaves the session as it is and goes on with `session`, or with a new one."""
        if self._may_change():
            self._start_over(session)

    def open_again(self) -> None:
        """The same session, by settings that are read anew."""
        agent = self.conversation.agent
        self.start_over(agent.session.id if agent is not None and agent.session.requests() else None)

    def change_model(self, name: str) -> None:
        """The same session with another model; what was said is shown again."""
        if self._may_change():
            self._change_model(name)

    def _may_change(self) -> bool:
        """Whether nothing runs that would end with the agent; says so if something does."""
        busy = self.conversation.busy
        if busy:
            self.presenter.notice("That waits until the run has ended; Esc stops it")
        return not busy

    @work(exclusive=True, group="open")
    async def _start_over(self, session: str | None) -> None:
        await self._open(self.conversation.open(session), replay=session is not None, fresh=True)

    @work(exclusive=True, group="open")
    async def _change_model(self, name: str) -> None:
        await self._open(self.conversation.change_model(name), replay=True, fresh=True)

    def ask_for_model(self) -> None:
        """`/login`: key, local server, another address, or the demo."""
        from .login import LoginScreen

        self.push_screen(LoginScreen(), self._logged_in)

    @on(LoginPanel.Done)
    def _logged_in_at_start(self, message: LoginPanel.Done) -> None:
        message.stop()
        self._logged_in(message.result)

    def _logged_in(self, result: LoginResult | None) -> None:
        if result is None:
            return
        if result.model == "demo":  # its script is about a repository of its own
            self.demo_wanted = True
            self.exit(0)
            return
        os.environ.update(result.environ)
        if result.said:
            self.presenter.notice(result.said)
        self.change_model(result.model)
        self.prompt.focus()


def _short(model: str) -> str:
    """A model's name without its provider."""
    return model.rpartition("/")[2]
