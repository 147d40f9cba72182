"""What each slash command does on the screen. Names and help stand in `cli.slash`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..export import exported
from ..overview import shown_folder
from ..slash import SLASH, Slash
from .background import jobs
from .by_hand import NO_MODEL, ByHand
from .trust_screen import show_trust
from .undoing import Undoing

if TYPE_CHECKING:
    from ...agent.agent import Agent
    from .desk import Desk

_MODES = ("default", "accept-edits", "plan", "yolo")


class Actions:
    """Runs slash commands."""

    def __init__(self, app: Desk) -> None:
        self._app = app
        by_hand, undoing = ByHand(app), Undoing(app)
        self._table: dict[str, Callable[[str], object]] = {
            "help": self._help,
            "compact": by_hand.compact,
            "pin": by_hand.pin,
            "unpin": by_hand.unpin,
            "drop": by_hand.drop,
            "restore": by_hand.restore,
            "recall": lambda words: app.run_worker(by_hand.recall(words), group="recall", exclusive=True),
            "archive": by_hand.archive,
            "context": self._context,
            "clear": self._clear,
            "model": self._model,
            "login": self._login,
            "resume": self._resume,
            "sessions": lambda _: self._resume(""),
            "skills": self._skills,
            "agents": self._agents,
            "memory": self._memory,
            "doctor": lambda _: app.run_worker(self._doctor(), group="doctor", exclusive=True),
            "trust": lambda _: show_trust(app),
            "mode": self._mode,
            "jobs": lambda argument: app.run_worker(jobs(app, argument), group="jobs", exclusive=True),
            "diff": undoing.diff,
            "undo": undoing.undo,
            "redo": undoing.redo,
            "rewind": undoing.rewind,
            "copy": self._copy,
            "export": self._export,
            "quit": lambda _: self._app.exit(0),
        }
        assert set(self._table) == {slash.name for slash in SLASH}

    def run(self, name: str, argument: str) -> None:
        """Runs the command `name`."""
        self._table[name](argument)

    def run_slash(self, slash: Slash, argument: str) -> None:
        """Runs a command, or says that it has to wait."""
        if self._app.conversation.busy and not slash.at_once:
            self._say(f"/{slash.name} waits until the run has ended; Esc stops it")
            return
        self._table[slash.name](argument)

    def _say(self, text: str) -> None:
        self._app.presenter.notice(text)

    def _agent(self) -> Agent | None:
        """The agent; where there is none, that is said."""
        agent = self._app.conversation.agent
        if agent is None:
            self._say(NO_MODEL)
        return agent

    def _help(self, _: str) -> None:
        from .help_screen import HelpScreen

        self._app.push_screen(HelpScreen())

    def _context(self, _: str) -> None:
        from .context_screen import ContextScreen, figures_of

        agent = self._agent()
        if agent is not None:
            self._app.push_screen(ContextScreen(figures_of(agent)))

    def _clear(self, _: str) -> None:
        self._app.start_over(None)

    def resume(self, session: str) -> None:
        """Goes on with a session; nothing is sent."""
        if session == self._current:
            self._say("This session is open already")
        else:
            self._app.start_over(session)

    def _resume(self, argument: str) -> None:
        if argument:
            self.resume(argument)
            return
        from .sessions_screen import SessionsScreen

        opened = self._app.conversation.opened
        if opened is not None:
            self._app.push_screen(SessionsScreen(opened.workspace, current=self._current), self._picked)

    @property
    def _current(self) -> str | None:
        agent = self._app.conversation.agent
        return agent.session.id if agent else None

    def _picked(self, session: str | None) -> None:
        if session:
            self.resume(session)

    def _model(self, argument: str) -> None:
        agent = self._app.conversation.agent
        if argument and agent is not None and agent.session.requests() and not self._app.options.persist:
            self._say("A session that is not kept cannot change its model; /clear begins a new one")
        elif argument and agent is not None and (said := _too_small(agent, argument)):
            self._ask_about_window(argument, said)
        elif argument:
            self._app.change_model(argument)
        elif agent is not None:
            gauge = agent.gauge()
            self._say(
                f"{agent.parts.model.name} · window {gauge.window:,} ({gauge.window_source}). /model NAME changes it"
            )
        else:
            self._agent()

    def _ask_about_window(self, name: str, said: str) -> None:
        """The talk hardly fits into the other model's window, or not at all."""
        from .choice_screen import ChoiceScreen

        def chosen(key: str | None) -> None:
            if key == "s":
                self._app.change_model(name)
            elif key == "c":
                self._app.when_idle(lambda: self._app.change_model(name))
                self._app.conversation.compact(None)

        choices = (("c", "compact now, with the model that is there, then change"), ("s", "change as it is"))
        self._app.push_screen(ChoiceScreen(f"Change to {name.rpartition('/')[2]}?", said, choices), chosen)

    def _login(self, _: str) -> None:
        self._app.ask_for_model()

    def _skills(self, _: str) -> None:
        from ...agent.prompt_source import find_skills
        from .list_screen import ListScreen

        opened = self._app.conversation.opened
        if opened is None:
            return
        found = find_skills(opened.workspace)
        lines = [f"{skill.name} ({skill.level}): {skill.description}" for skill in found.skills]
        lines += [f"! {problem}" for problem in (*found.problems, *found.shadowed)]
        self._app.push_screen(ListScreen("Skills", lines or ["none; make one in .deepagents/skills/NAME/SKILL.md"]))

    def _agents(self, _: str) -> None:
        from ...agent.subagents.files import all_subagents
        from .list_screen import ListScreen

        opened = self._app.conversation.opened
        if opened is None:
            return
        agents, notices = all_subagents(opened.workspace)
        root = opened.workspace.root
        lines = [
            f"{agent.name} ({_near(root, agent.path) if agent.path else 'built in'}): {agent.description}"
            for agent in agents.values()
        ]
        self._app.push_screen(ListScreen("Sub-agents", [*lines, *(f"! {notice}" for notice in notices)]))

    def _memory(self, _: str) -> None:
        from ...agent.prompt_source import find_memory
        from .list_screen import ListScreen

        opened = self._app.conversation.opened
        if opened is None:
            return
        memory = find_memory(opened.workspace, opened.loaded.settings.memory)
        root = opened.workspace.root
        lines = [
            f"{_near(root, file.path)}  {file.bytes:,} bytes{', cut' if file.cut else ''}" for file in memory.files
        ]
        lines += [f"! {notice}" for notice in memory.notices]
        self._app.push_screen(ListScreen("Memory", lines or ["There is no AGENTS.md here."]))

    def _mode(self, argument: str) -> None:
        if argument in _MODES:
            self._app.set_mode(argument)
        else:
            self._say(f"The mode is {self._app.footer.mode}. /mode takes {', '.join(_MODES)}")

    async def _doctor(self) -> None:
        """Looks at everything in a thread: the sandbox is tried out for it."""
        from ..doctor import checks, text_of
        from .list_screen import ListScreen

        options = self._app.options
        look = partial(checks, options.cwd or Path(), environ=os.environ, flags=options.flags)
        found = await asyncio.to_thread(look)
        self._app.push_screen(ListScreen("Doctor", text_of(found).split("\n")))

    def _copy(self, _: str) -> None:
        agent = self._app.conversation.agent
        answers = [m for m in agent.session.messages() if m.role == "assistant" and m.text] if agent else []
        if answers:
            self._app.copy_to_clipboard(answers[-1].text)
            self._say("The last answer is in the clipboard")
        else:
            self._say("There is no answer yet")

    def _export(self, argument: str) -> None:
        agent = self._agent()
        if agent is None:
            return
        path = Path(argument).expanduser() if argument else Path(f"deepagent-{agent.session.id}.md")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(exported(agent.session, path))
        except OSError as error:
            self._say(f"Not written: {path}: {error.strerror}")
        else:
            self._say(f"Written: {path.resolve()}")


def _near(root: Path, path: Path) -> str:
    """A path as short as it can be told: from the workspace, or from home."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else shown_folder(path)


def _too_small(agent: Agent, name: str) -> str:
    """Why another model's window is too small for the talk as it is; empty where it is not, or is not known."""
    from ...agent.model.catalog import model_info
    from ..gauge import tokens

    info, gauge = model_info(name), agent.gauge()
    window = info.max_input if info else None
    settings = agent.parts.settings.context
    if settings.window is not None or not window or gauge.used < settings.compact_at * window:
        return ""
    return (
        f"{tokens(gauge.used)} tokens are in use, and its window has {tokens(window)}. Before the next request the "
        "talk would be compacted in any case, by the other model."
    )
