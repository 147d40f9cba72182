"""`/diff`, `/undo`, `/redo`, `/rewind`: what happened to files, shown and taken back.

What leaves something alone, or is about more than one file, is shown before anything is done. What is done, and to
which files, is the business of `agent.checkpoints`; all of it is asked in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static
from textual.widgets.option_list import Option

from ...agent.errors import DeepagentError
from ...context.control import CannotDo
from ...context.messages import text_of
from ...context.storage import StorageError
from ..last_session import ago
from .by_hand import NO_MODEL
from .list_screen import ListScreen
from .rows import ChoiceList, Line
from .text import MUTED, one_line, safe

if TYPE_CHECKING:
    from ...agent.agent import Agent
    from ...agent.checkpoints.files import FileChanges, FilesReport, Scope
    from ...context.messages import UserMessage
    from .desk import Desk

_SCOPES: Mapping[str, str] = {
    "turn": "Changes of the last turn",
    "session": "Changes of this session",
    "worktree": "Uncommitted changes",
}
_NAMED = 10
"""Files that are named, of each kind."""
_REQUEST = 60
"""Characters of what the user wrote that are shown."""
_PROBLEMS = (CannotDo, StorageError, DeepagentError)
_KEYS = {"y": "go ahead", "t": "the talk alone", "f": "the files alone"}


class AskScreen(ListScreen):
    """What would be done, and the keys that do it; Esc leaves all as it is."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(key, f"choose('{key}')", show=False) for key in _KEYS]

    def __init__(self, title: str, lines: Sequence[str], choices: Mapping[str, Callable[[], object]]) -> None:
        """`choices` say what each key of `_KEYS` that is offered does."""
        super().__init__(title, lines, keys="   ".join(f"{key}: {_KEYS[key]}" for key in choices))
        self._choices = choices

    def action_choose(self, key: str) -> None:
        """Does what was chosen."""
        if key in self._choices:
            self.dismiss(None)
            self._choices[key]()


class RewindScreen(Screen["str | None"]):
    """What the user has written, newest first; gives the id of the message that was picked."""

    DEFAULT_CSS = """
    RewindScreen { padding: 0 1; }
    RewindScreen > Static { height: auto; }
    RewindScreen > ChoiceList { height: 1fr; margin: 1 0; scrollbar-gutter: stable; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", show=False)]

    def __init__(self, requests: Sequence[UserMessage]) -> None:
        super().__init__()
        self._requests = requests

    def compose(self) -> ComposeResult:
        head = ("Go back to before …", "bold $text-accent"), "  ", (f"{len(self._requests)} messages", MUTED)
        yield Static(Content.assemble(*head))
        yield ChoiceList()
        yield Static(safe("↑↓ move   Enter look what would go back   Esc back", MUTED))

    def on_mount(self) -> None:
        """Begins at the newest."""
        choices = self.query_one(ChoiceList)
        for one in reversed(self._requests):
            time = Content.styled(ago(one.time), MUTED)
            choices.add_option(Option(Line(safe(one_line(text_of(one), 300)), time), id=one.id))
        choices.highlighted = 0
        choices.focus()

    @on(ChoiceList.OptionSelected)
    def _picked(self, event: ChoiceList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_id)

    def action_close(self) -> None:
        """Goes back with nothing picked."""
        self.dismiss(None)


class Undoing:
    """Runs the commands, and says what came of them."""

    def __init__(self, app: Desk) -> None:
        self._app = app

    def _say(self, text: str) -> None:
        self._app.presenter.notice(text, "info")

    def _work(self, work: Coroutine[object, object, None]) -> None:
        self._app.run_worker(self._told(work), group="files", exclusive=True)

    async def _told(self, work: Coroutine[object, object, None]) -> None:
        """Does it, or says why not."""
        try:
            await work
        except _PROBLEMS as reason:
            self._app.presenter.notice(f"Not done: {reason}")

    def _agent(self) -> Agent | None:
        agent = self._app.conversation.agent
        if agent is None:
            self._app.presenter.notice(NO_MODEL)
        return agent

    # What has changed

    def diff(self, argument: str) -> None:
        """`/diff`, of the work tree where there is one, else of the session; or of what is named."""
        opened = self._app.conversation.opened
        if opened is None:
            return
        scope = argument or ("worktree" if opened.workspace.git or opened.agent is None else "session")
        match scope:
            case "worktree" if not opened.workspace.git:
                self._app.presenter.notice("This is no git repository")
            case "worktree":
                from ...agent.git import changes

                self._work(self._show(scope, partial(changes, opened.workspace.root)))
            case "turn" | "session":
                if agent := self._agent():
                    self._work(self._show(scope, partial(_text, agent, scope)))
            case _:
                self._app.presenter.notice("/diff takes turn, session or worktree")

    async def _show(self, scope: str, look: Callable[[], str]) -> None:
        text = await asyncio.to_thread(look)
        self._app.push_screen(ListScreen(_SCOPES[scope], text.split("\n") if text else ["none"], diff=True))

    # Back and forth

    def undo(self, _: str) -> None:
        """Takes back what the newest turn did to files."""
        if agent := self._agent():
            self._work(self._step(agent.files.undo, "Undo"))

    def redo(self, _: str) -> None:
        """Takes the newest undoing back."""
        if agent := self._agent():
            self._work(self._step(agent.files.redo, "Redo"))

    async def _step(self, step: Callable[..., FilesReport], title: str) -> None:
        """Does a step at once if it is about one file, else shows it first."""
        report = await asyncio.to_thread(step, preview=True)
        if report.left or len(report.written) + len(report.removed) > 1:
            go = {"y": lambda: self._work(self._do(step))}
            self._app.push_screen(AskScreen(_title(title, report.request), list(_lines(report, done=False)), go))
        else:
            await self._do(step)

    async def _do(self, step: Callable[..., FilesReport]) -> None:
        report = await asyncio.to_thread(step)
        word = "Redone" if report.action == "redo" else "Undone"
        self._say("\n".join((_title(word, report.request), *_lines(report, done=True))))

    def rewind(self, argument: str) -> None:
        """Goes back to before a message: the one that is named by its id or by how many there are since, or picked."""
        agent = self._agent()
        if agent is None:
            return
        requests = agent.session.requests()
        if not requests:
            self._app.presenter.notice("Nothing was said yet")
        elif argument:
            self._work(self._look_back(agent, argument))
        else:
            self._app.push_screen(RewindScreen(requests), partial(self._picked, agent))

    def _picked(self, agent: Agent, message: str | None) -> None:
        if message:
            self._work(self._look_back(agent, message))

    async def _look_back(self, agent: Agent, message: str) -> None:
        request = agent.control.request(message)
        report = await asyncio.to_thread(agent.files.rewind, request.id, preview=True)
        requests = agent.session.requests()
        number = len(requests) - requests.index(request)
        talk = f"The talk goes back by {_count(number, 'message')} of yours; it stays in the log."
        files = list(_lines(report, done=False)) or ["No file changes."]
        parts: dict[str, tuple[bool, bool]] = {"y": (True, True), "t": (True, False), "f": (False, True)}
        choices = {key: partial(self._go_back, agent, request, *part) for key, part in parts.items()}
        title = _title("Rewind to before", text_of(request))
        self._app.push_screen(AskScreen(title, [talk, "", *files], choices))

    def _go_back(self, agent: Agent, request: UserMessage, talk: bool, files: bool) -> None:
        self._work(self._rewind(agent, request, talk=talk, files=files))

    async def _rewind(self, agent: Agent, request: UserMessage, *, talk: bool, files: bool) -> None:
        """The message stands in the line again if the talk went back to before it."""
        report = await asyncio.to_thread(agent.rewind, request.id, talk=talk, files=files)
        text = text_of(request)
        if talk:
            self._app.show_anew()
            if not self._app.prompt.text:
                self._app.prompt.show(text)
        lines = _lines(report, done=True) if files else ["Files are as they were."]
        self._say("\n".join((_title("Back to before", text), *lines)))


def _text(agent: Agent, scope: Scope) -> str:
    found: FileChanges = agent.files.changes(scope)
    return found.diff or "\n".join(f"{one.kind:<8} {one.path}" for one in found.files)


def _title(word: str, request: str) -> str:
    return f"{word}: “{one_line(request, _REQUEST)}”" if request.strip() else word


def _lines(report: FilesReport, *, done: bool) -> Iterator[str]:
    """What a step does to which files."""
    if report.written:
        get, other = ("got" if done else "get"), ("later" if report.action == "redo" else "earlier")
        yield f"{_count(len(report.written), 'file')} {get} the {other} content: {_named(report.written)}"
    if report.removed:
        gone = "removed" if done else "to be removed"
        yield f"{_count(len(report.removed), 'file')} {gone}: {_named(report.removed)}"
    if report.left:
        yield f"Left alone: {_count(len(report.left), 'file')}"
        yield from (f"  {one.path}: {one.why}" for one in report.left[:_NAMED])
        if len(report.left) > _NAMED:
            yield f"  and {len(report.left) - _NAMED:,} more"


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
