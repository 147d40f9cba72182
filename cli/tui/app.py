"""The app: puts the screen together and says what each key means. Light at import: everything of the agent comes later.

How a run goes is `conversation`'s business, what is shown of it `presenter`'s, what a slash command does `actions`'.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from ..options import PICK, RunOptions
from ..slash import parse_slash
from .approval import ApprovalCard
from .driver import TerminalDriver
from .footer import Footer
from .login import LoginPanel, LoginResult
from .prompt import Prompt, PromptArea
from .queue import Waiting
from .start import StartPanel
from .steps import StepLine
from .transcript import Transcript

if TYPE_CHECKING:
    from ...agent.config import PermissionMode
    from ...agent.events import Event
    from ..opening import Opened
    from .actions import Actions
    from .conversation import Conversation
    from .presenter import Presenter

MODES = ("default", "accept-edits", "plan", "yolo")
"""What Shift+Tab goes through."""
_TWICE = 2.0
"""Seconds within which a second Ctrl+C leaves."""


class DeepagentApp(App[int], inherit_bindings=False):
    """A talk with an agent in one workspace."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { layout: vertical; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "escape", show=False),
        Binding("ctrl+c", "copy_or_stop", show=False, priority=True),
        Binding("ctrl+d", "leave_if_empty", show=False, priority=True),
        Binding("shift+tab", "next_mode", show=False, priority=True),
        Binding("ctrl+o", "toggle_fold", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, options: RunOptions) -> None:
        super().__init__(driver_class=TerminalDriver)
        self.options = options
        self._conversation: Conversation | None = None
        self._actions: Actions | None = None
        self._presenter: Presenter | None = None
        self._early: list[str] = [options.prompt] if options.prompt else []
        """What was sent before the agent was open."""
        self._stopped_at = 0.0
        self.farewell = ""
        """What is left in the scrollback after leaving."""

    def compose(self) -> ComposeResult:
        yield Transcript(id="transcript")
        yield PromptArea(id="prompt-area")
        yield Footer(id="footer")

    @property
    def transcript(self) -> Transcript:
        """What was said and done."""
        return self.query_one(Transcript)

    @property
    def prompt(self) -> Prompt:
        """Where the user writes."""
        return self.query_one(Prompt)

    @property
    def footer(self) -> Footer:
        """The two lines at the bottom."""
        return self.query_one(Footer)

    @property
    def conversation(self) -> Conversation:
        """What runs behind the screen; there once the first frame is."""
        assert self._conversation is not None
        return self._conversation

    @property
    def presenter(self) -> Presenter:
        """What turns events into widgets; there once the agent's modules are loaded."""
        assert self._presenter is not None
        return self._presenter

    # ---------------------------------------------------------------- start

    def on_mount(self) -> None:
        """Shows the first frame, and only then loads anything."""
        self._add_start_panel()
        self.prompt.focus()
        self.prompt.take_back = self._take_back
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit, 128 + number)
        self.call_after_refresh(self._begin)

    def _add_start_panel(self) -> None:
        self.start_panel = StartPanel(self.options.cwd)
        self.transcript.add(self.start_panel)

    @work(exclusive=True, group="open")
    async def _begin(self) -> None:
        """Loads the agent's modules in a thread, then opens it."""
        await asyncio.to_thread(_load_modules)
        from ..opening import Opener
        from .actions import Actions
        from .conversation import Conversation
        from .presenter import Presenter

        opener = Opener(self.options, interactive=True)
        self._presenter = Presenter(self.transcript, on_gauge=self._set_gauge)
        self._conversation = Conversation(opener, self._on_event, self._on_idle, self._handle_exception)
        self._actions = Actions(self)
        self._attach_prompt()
        pick = self.options.session == PICK
        await self._open(None if pick else self.options.session)
        if pick:
            self._actions.run("resume", "")
        self._send_early()

    def _attach_prompt(self) -> None:
        """Hands the prompt its history, its draft and the workspace's files."""
        from ...agent.errors import DeepagentError
        from ...agent.workspace import find_workspace
        from .drafts import Drafts
        from .file_index import FileIndex
        from .history import History

        try:
            place = find_workspace(self.options.cwd or Path.cwd(), environ=os.environ)
        except DeepagentError:
            return  # opening the agent says the same, in words
        self.query_one(PromptArea).attach(
            history=History(place.user / "history.jsonl", str(place.root), self._mask),
            drafts=Drafts(place.user / "drafts", place.root, self._mask),
            files=FileIndex(place.cwd),
        )

    def _mask(self, text: str) -> str:
        """Takes known secrets out of what is written down."""
        agent = self._conversation.agent if self._conversation else None
        return agent.parts.masker.mask(text) if agent else text

    @on(PromptArea.Restored)
    def _restored(self, message: PromptArea.Restored) -> None:
        """What waited when the last screen went down waits again."""
        for text in message.queued:
            self.conversation.enqueue(text)
        self._show_state()

    async def _open(self, session: str | None, *, model: str | None = None) -> None:
        """Opens an agent and shows what there is. What goes wrong is shown, and the screen stays."""
        from ...agent.errors import DeepagentError
        from ...context.storage import StorageError

        try:
            opened = await self.conversation.open(session, model=model)
        except (DeepagentError, StorageError) as error:
            self.presenter.notice(str(error))
            return
        self.show_opened(opened, replay=session is not None)

    def show_opened(self, opened: Opened, *, replay: bool) -> None:
        """Shows an agent that was just opened: footer, start panel, and what was said before."""
        if opened.agent is None:
            self.start_panel.show_login()
            return
        self.footer.model = _short(opened.agent.parts.model.name)
        self.footer.mode = opened.agent.parts.settings.permissions.mode
        if replay:
            from ...agent.replay import events_of

            for event in events_of(opened.agent.session.entries):
                self.presenter.show(event)
        self._look_around(opened)

    @work(exclusive=True, group="overview")
    async def _look_around(self, opened: Opened) -> None:
        """What takes a moment: tokenizer, git, the last session."""
        from ..overview import overview_of

        assert opened.agent is not None
        await asyncio.to_thread(opened.agent.parts.counter.prepare)
        overview = await asyncio.to_thread(overview_of, opened, opened.agent.session.view)
        self.start_panel.show(overview)
        self.footer.branch = overview.git
        if self.conversation.agent is opened.agent:
            self._set_gauge(opened.agent.gauge())

    @work(exclusive=True, group="open")
    async def start_over(self, session: str | None) -> None:
        """Leaves the session as it is and goes on with `session`, or with a new one."""
        self._fresh_start()
        await self._open(session)
        self._show_state()

    def _fresh_start(self) -> None:
        self.transcript.clear()
        self.presenter.reset()
        self._add_start_panel()

    @work(exclusive=True, group="open")
    async def change_model(self, name: str) -> None:
        """The same session with another model; what was said is shown again."""
        from ...agent.errors import DeepagentError
        from ...context.storage import StorageError

        try:
            opened = await self.conversation.change_model(name)
        except (DeepagentError, StorageError) as error:
            self.presenter.notice(str(error))
            return
        self._fresh_start()
        self.show_opened(opened, replay=True)

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
        os.environ.update(result.environ)
        if result.said:
            self.presenter.notice(result.said)
        self.change_model(result.model)
        self.prompt.focus()

    def _send_early(self) -> None:
        """Sends what was written before there was an agent."""
        early, self._early = self._early, []
        for text in early:
            self._submit(text)

    async def on_unmount(self) -> None:
        """Stops what runs and gives the session back."""
        if self._conversation is not None:
            agent = self.conversation.agent
            await self.conversation.stop()
            if agent is not None:
                from ..farewell import farewell

                self.farewell = farewell(agent)
            await self.conversation.close()

    # ---------------------------------------------------------------- what the user writes

    @on(Prompt.Sent)
    def _sent(self, message: Prompt.Sent) -> None:
        self._submit(message.text)

    def _submit(self, text: str) -> None:
        if self._actions is None or (self.conversation.opened is None and not parse_slash(text)):
            self._early.append(text)
            return
        found = parse_slash(text)
        if found is not None:
            self._actions.run_slash(*found)
        elif self.conversation.agent is None:
            self.prompt.show(text)
            self.start_panel.show_login()
        else:
            self.conversation.send(text)
        self._show_state()

    @on(Prompt.Queued)
    def _queued(self, message: Prompt.Queued) -> None:
        if self._conversation is None:
            self._early.append(message.text)
        else:
            self.conversation.enqueue(message.text)
        self._show_state()

    @on(Prompt.SentEmpty)
    def _sent_empty(self) -> None:
        """Enter on the empty line goes on with the last session, if one is offered."""
        session = self.start_panel.offered
        if session is not None and self._actions is not None and not self.conversation.busy:
            self._actions.resume(session)

    @on(Prompt.HelpWanted)
    def _help_wanted(self) -> None:
        from .help_screen import HelpScreen

        self.push_screen(HelpScreen())

    # ---------------------------------------------------------------- what the agent says

    async def _on_event(self, event: Event) -> None:
        if self.query(Prompt):  # else the screen is gone: a run that ends now is shown to nobody
            await self.presenter.event(event)
            self._show_state()

    def _on_idle(self) -> None:
        self._show_state()

    def _set_gauge(self, gauge: object) -> None:
        from ...agent.events import Gauge

        self.footer.gauge = cast(Gauge, gauge)

    def _take_back(self) -> str | None:
        """↑ takes the newest message back that the model has not got yet."""
        taken = self._conversation.take_back() if self._conversation else None
        self.call_after_refresh(self._show_state)
        return taken

    @on(Prompt.Changed)
    def _changed(self) -> None:
        """The list may have opened or closed; a question waits until nothing is being written."""
        if not self.prompt.text and self.prompt.has_focus and self._question is not None:
            self._question.take_focus()
        self._show_state()

    @on(ApprovalCard.Decided)
    def _decided(self, message: ApprovalCard.Decided) -> None:
        """Hands the answer on; "always" holds for this session."""
        if message.always:
            self.conversation.allow(message.rule)
        self.presenter.decide(message.call_id, allowed=message.allowed, reason=message.reason)
        self.prompt.focus()

    @on(StepLine.UndoWanted)
    def _undo_wanted(self) -> None:
        self.conversation.undo_compaction()

    def _show_state(self) -> None:
        """Busy or not, what waits, and what Esc would do."""
        if not self.query(Prompt):
            return  # the screen is gone
        conversation = self._conversation
        busy = conversation is not None and conversation.busy
        self.prompt.busy = busy
        self.footer.busy = busy
        self.footer.escape = self._escape_means(busy=busy)
        if conversation is not None:
            waiting = [Waiting(kind="steering", text=text) for text in conversation.steering]
            waiting += [Waiting(kind="queued", text=text) for text in conversation.queue]
            self.query_one(PromptArea).set_waiting(waiting)

    def _escape_means(self, *, busy: bool) -> str:
        """What Esc would do next, in words."""
        focused = self.default_screen.focused
        if inner := self.query_one(PromptArea).escape_means:
            return inner
        for panel in (self._question, *self.query(LoginPanel)):
            if panel is not None and panel.has_focus_within and panel.escape_means:
                return panel.escape_means
        if focused is not None and focused is not self.prompt:
            return "back to the prompt"
        return "stop the run" if busy else "nothing to stop"

    @property
    def _question(self) -> ApprovalCard | None:
        """The card that waits for a decision."""
        return self._presenter.question if self._presenter else None

    # ---------------------------------------------------------------- keys

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _focus_moved(self) -> None:
        """Esc may mean something else now."""
        self.call_later(self._show_state)

    def on_key(self, event: events.Key) -> None:
        """Text that nothing else takes is written into the prompt, whatever has the focus."""
        if event.is_printable and event.character and self.screen is self.default_screen:
            self.prompt.focus()
            self.prompt.insert(event.character)

    def action_escape(self) -> None:
        """Goes back to the prompt, else stops the run; what is open closes before this, in its own widget."""
        if self.focused is not self.prompt:
            self.prompt.focus()
        elif self._conversation is not None and self.conversation.busy:
            self.conversation.interrupt()

    def action_copy_or_stop(self) -> None:
        """Ctrl+C: copies a selection, else stops the run, else clears the line, else leaves at the second time."""
        selected = self.screen.get_selected_text() or self.prompt.selected_text
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        elif self._conversation is not None and self.conversation.busy:
            self.conversation.interrupt()
        elif self.prompt.text:
            self.prompt.discard()
        elif time.monotonic() - self._stopped_at < _TWICE:
            self.exit(0)
        else:
            self._stopped_at = time.monotonic()
            self.footer.escape = "nothing to stop · Ctrl+C again leaves"

    def action_leave_if_empty(self) -> None:
        """Ctrl+D leaves when nothing is written."""
        if not self.prompt.text:
            self.exit(0)

    def action_next_mode(self) -> None:
        """Shift+Tab goes through the modes."""
        mode = MODES[(MODES.index(self.footer.mode) + 1) % len(MODES)]
        self.set_mode(mode)

    def set_mode(self, mode: PermissionMode) -> None:
        """From now on `mode` decides what runs without being asked about."""
        self.footer.mode = mode
        if self._conversation is not None:
            self.conversation.set_mode(mode)

    def action_toggle_fold(self) -> None:
        """Ctrl+O unfolds or folds every card."""
        self.transcript.toggle_fold()


def _load_modules() -> None:
    """Imports what a talk needs, in a thread: it takes a few tenths of a second."""
    for name in ("opening", "overview", "tui.actions", "tui.conversation", "tui.presenter"):
        import_module(f"deepagent.cli.{name}")


def _short(model: str) -> str:
    """A model's name without its provider."""
    return model.rpartition("/")[2]
