"""The app: carries what is said between the frame and the agent behind it.

Light at import: everything of the agent comes later. How a run goes is `conversation`'s business, what is shown of it
`presenter`'s, what a slash command does `actions`', which session is open `desk`'s, what is on the screen and what the
keys mean `frame`'s.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from importlib import import_module
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING, cast

from textual import on, work

from ..options import PICK, RunOptions
from ..slash import parse_slash
from ..terminal import plain
from .approval import ApprovalCard
from .desk import Desk
from .frame import MODES
from .loading import background
from .notify import LONG, notification
from .prompt import Prompt, PromptArea
from .steps import StepLine

if TYPE_CHECKING:
    from ...agent.config import PermissionMode
    from ...agent.events import Event, RunEnded
    from .actions import Actions

CARRY_OUT = "Carry out the plan."
"""What is sent when a plan is accepted."""
_PLAN = "Enter on the empty line carries the plan out; ⇧Tab first: in another mode than default; or say what to change"
_COMMAND = re.compile(r"/[a-z_]+")
"""What was meant as a command, known or not."""
_SHELL = re.compile(r"!(!?)\s*(\S.*)", re.DOTALL)
"""A line for the user's own shell; with two marks the model is not told."""


class DeepagentApp(Desk):
    """A talk with an agent in one workspace."""

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self._actions: Actions | None = None
        self._early: list[str] = [options.prompt] if options.prompt else []
        """What was sent before the agent was open."""
        self._began = 0.0
        """When the run began, on the monotonic clock."""
        self._plan_waits = False
        """The newest answer is a plan, which the empty line would have carried out."""
        self.farewell = ""
        """What is left in the scrollback after leaving."""
        self.crash = ""
        """What went wrong, if a bug ended the screen."""

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

    @work(exclusive=True, group="open")
    async def _begin(self) -> None:
        """Loads the agent's modules in a thread, then opens it."""
        with background():
            await asyncio.to_thread(_load_modules)
        from ..opening import Opener
        from .actions import Actions
        from .conversation import Conversation
        from .file_before import text_before
        from .presenter import Presenter

        opener = Opener(self.options, interactive=True)
        self._presenter = Presenter(
            self.transcript,
            on_gauge=self._set_gauge,
            kept=lambda: self.conversation.kept,
            before=lambda call: text_before(self.conversation.opened, call),
        )
        self._conversation = Conversation(
            opener,
            self._on_event,
            on_idle=self._at_rest,
            on_bug=self._handle_exception,
            on_untaken=self._give_back,
        )
        self._actions = Actions(self)
        if self.footer.mode != MODES[0]:  # chosen before there was anything to tell it to
            self.set_mode(cast("PermissionMode", self.footer.mode))
        self._attach_prompt()
        pick = self.options.session == PICK
        session = None if pick else self.options.session
        await self._open(self.conversation.open(session), replay=session is not None)
        if pick:
            self._actions.run("resume", "")

    def _opened(self) -> None:
        """Sends what was written meanwhile, or gives it back."""
        self._plan_waits = False
        early, self._early = self._early, []
        if early and self._problem and self.conversation.agent is None:
            self.prompt.show("\n".join(early))
            early = []
        for text in early:
            self._submit(text)

    def _give_back(self, text: str) -> None:
        """A prompt that could not be taken stands in the line again, before what was typed since."""
        if self.screen_stack:  # else the screen closes, and the draft has it
            self.prompt.show("\n".join(filter(None, (text, self.prompt.text))))

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
        self.prompt_area.attach(
            history=History(place.user / "history.jsonl", str(place.root), self._mask),
            drafts=Drafts(place.user / "drafts", place.root, self._mask),
            files=FileIndex(place.cwd),
        )

    def _mask(self, text: str) -> str:
        """Takes known secrets out of what is written down."""
        agent = self._conversation.agent if self._conversation else None
        return agent.parts.masker.mask(text) if agent else text

    def _handle_exception(self, error: Exception) -> None:
        """Ends the screen because of a bug. What Textual would print shows every local variable, keys among them."""
        if self._exception is None:
            self.crash = plain(self._mask("".join(format_exception(error))))
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Leaves; `launch` says why."""
        self._close_messages_no_wait()

    @on(PromptArea.Restored)
    def _restored(self, message: PromptArea.Restored) -> None:
        """What waited when the last screen went down waits again."""
        for text in message.queued:
            self.conversation.enqueue(text)
        self._show_state()

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
        if self._actions is None or self._opening:
            self._early.append(text)
            return
        found = parse_slash(text)
        if found is not None:
            self._actions.run_slash(*found)
        elif _COMMAND.fullmatch(text):
            self.prompt.show(text)
            self.presenter.notice(f"There is no command {text}; /help lists them")
        elif self.conversation.agent is None:
            self.prompt.show(text)
            self._say_why_not()
        elif command := _SHELL.fullmatch(text):
            self._run_command(text, command[2].strip(), keep=not command[1])
        else:
            self.start_panel.withdraw_offer()
            self._plan_waits = False
            self.conversation.send(text)
        self._show_state()

    def _run_command(self, text: str, command: str, *, keep: bool) -> None:
        """`!`: the user's own command, when nothing runs."""
        if self.conversation.busy:
            self.prompt.show(text)
            self.presenter.notice("A command of yours waits until the run has ended; Esc stops it")
        else:
            self.conversation.run_command(command, keep=keep)

    def _say_why_not(self) -> None:
        """Says why nothing can be sent."""
        if self._problem:
            self.presenter.notice(self._problem)
        else:
            self.start_panel.show_login()

    @on(Prompt.Queued)
    def _queued(self, message: Prompt.Queued) -> None:
        if self._conversation is None or self._opening:
            self._early.append(message.text)
        elif _SHELL.fullmatch(message.text):
            self._submit(message.text)
        else:
            self.conversation.enqueue(message.text)
        self._show_state()

    @on(Prompt.SentEmpty)
    def _sent_empty(self) -> None:
        """Enter on the empty line carries out the plan that waits, or goes on with the session that is offered."""
        if self._plan_waits and not self.conversation.busy:
            if self.footer.mode == "plan":
                self.set_mode("default")
            self._submit(CARRY_OUT)
            return
        session = self.start_panel.offered
        if session is not None and self._actions is not None and not self._opening and not self.conversation.busy:
            self._actions.resume(session)

    @on(Prompt.HelpWanted)
    def _help_wanted(self) -> None:
        from .help_screen import HelpScreen

        self.push_screen(HelpScreen())

    # ---------------------------------------------------------------- what the agent says

    async def _on_event(self, event: Event) -> None:
        from ...agent.events import ApprovalAsked, RunEnded, RunStarted

        if self.prompt.is_attached:  # else the screen is gone: a run that ends now is shown to nobody
            await self.presenter.event(event)
            match event:
                case RunStarted():
                    self._began = time.monotonic()
                case ApprovalAsked(call=call):
                    self._call_back(f"deepagent asks: {call.name}?")
                case RunEnded(outcome=outcome):
                    self._offer_plan(event)
                    if time.monotonic() - self._began >= LONG:
                        self._call_back(f"deepagent has ended: {outcome}")
                case _:
                    pass
            self._show_state()

    def _call_back(self, text: str) -> None:
        """Calls whoever looks elsewhere."""
        opened = self.conversation.opened
        if not self.app_focus and self._driver is not None and opened is not None:
            self._driver.write(notification(opened.loaded.settings.ui.notify, text, os.environ))

    def _offer_plan(self, ended: RunEnded) -> None:
        """An answer in plan mode is a plan: it can be carried out, or changed by what is written next."""
        self._plan_waits = self.footer.mode == "plan" and ended.outcome == "success" and bool(ended.text.strip())
        if self._plan_waits:
            self.presenter.notice(_PLAN, "info")

    def _on_idle(self) -> None:
        """Textual's: all messages are handled, so what they changed is seen."""
        self._show_state()

    def action_rewind(self) -> None:
        if self._actions is not None and self.conversation.agent is not None:
            self._actions.run("rewind", "")

    def _at_rest(self) -> None:
        """Nothing runs any more, and nothing is queued."""
        self._show_state()
        then, self._when_idle = self._when_idle, None
        if then is not None:
            then()

    def _take_back(self) -> str | None:
        """↑ takes the newest message back that the model has not got yet."""
        taken = self._conversation.take_back() if self._conversation else None
        self.call_after_refresh(self._show_state)
        return taken

    @on(Prompt.Changed)
    def _changed(self) -> None:
        """The list may have opened or closed; a question waits until nothing is being written."""
        self._typing.key()
        if not self.prompt.text and self.prompt.has_focus and self._question is not None:
            self._question.take_focus()
        self._show_state()

    @on(ApprovalCard.Decided)
    def _decided(self, message: ApprovalCard.Decided) -> None:
        """Hands the answer on. What "always" allows holds at once, for what waits too."""
        self.presenter.answer(message, self.conversation.allow)
        self.prompt.focus()
        if message.always:
            self.run_worker(self._keep_rules(message.always), group="rules")

    async def _keep_rules(self, rules: tuple[str, ...]) -> None:
        self.presenter.notice(await self.conversation.keep(rules), "info")

    @on(StepLine.UndoWanted)
    def _undo_wanted(self) -> None:
        if self._may_change():
            self.conversation.undo_compaction()


def _load_modules() -> None:
    """Imports what a talk needs, in a thread: it takes a few tenths of a second."""
    for name in ("opening", "overview", "tui.actions", "tui.conversation", "tui.presenter"):
        import_module(f"deepagent.cli.{name}")
