"""The slash commands with which the user shapes the context, and looks up what left it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..gauge import tokens

if TYPE_CHECKING:
    from ...agent.agent import Agent
    from ...context.control import Control
    from .desk import Desk

NO_MODEL = "No model yet: /login sets one up, /model NAME names one"
_AT = re.compile(r"at +(?:(\d{1,3})\s*%|(off))")
_WITHOUT = "--no-model"
_SHOWN = 60
"""Characters of a text in a list."""


class ByHand:
    """Runs the commands, and says what came of them."""

    def __init__(self, app: Desk) -> None:
        self._app = app

    def _say(self, text: str) -> None:
        self._app.presenter.notice(text)

    def _try(self, work: Callable[[Agent, Control], str]) -> None:
        """Does something with the agent and says what came of it, or why it cannot be done."""
        from ...agent.events import GaugeChanged
        from ...context.control import CannotDo
        from ...context.storage import StorageError

        agent = self._app.conversation.agent
        if agent is None:
            self._say(NO_MODEL)
            return
        try:
            said = work(agent, agent.control)
        except (CannotDo, StorageError, ValueError) as reason:
            said = f"Not done: {reason}"
        if said:
            self._say(said)
        self._app.presenter.show(GaugeChanged(gauge=agent.gauge()))

    def compact(self, argument: str) -> None:
        """`/compact`, with a focus, or one of its words."""
        conversation = self._app.conversation
        words = argument.removeprefix(_WITHOUT).strip()
        if conversation.agent is None:
            self._say(NO_MODEL)
        elif argument == "undo":
            conversation.undo_compaction()
        elif argument == "preview":
            self._look(conversation.agent)
        elif at := _AT.fullmatch(argument):
            self._try(lambda _, control: _compact_at(control, None if at[2] else int(at[1]) / 100))
        else:
            conversation.compact(words or None, model=words == argument)

    def _look(self, agent: Agent) -> None:
        """Shows what a compaction would do; done from there, it happens."""
        from .compaction_screen import CompactionChoice, CompactionScreen, figures_of

        figures = figures_of(agent)
        if figures is None:
            self._say("There is nothing older that could leave the view")
            return

        def decided(choice: CompactionChoice | None) -> None:
            if choice is not None:
                self._app.conversation.compact(choice.focus or None, model=choice.model)

        self._app.push_screen(CompactionScreen(figures), decided)

    def pin(self, argument: str) -> None:
        """Pins a text, or lists the pins."""

        def work(agent: Agent, control: Control) -> str:
            if argument:
                control.pin(argument)
                number = len(agent.session.view.pins)
                return f"Pinned: every compaction keeps it word for word; /unpin {number} lets it go"
            pins = agent.session.view.pins
            lines = [f"{number}  {pin.text}" for number, pin in enumerate(pins, start=1)]
            return "\n".join(lines) or "Nothing is pinned; /pin TEXT keeps a text word for word"

        self._try(work)

    def unpin(self, argument: str) -> None:
        """Lets a pin go."""
        self._try(lambda _, control: f"Let go: {control.unpin(argument).pin}")

    def drop(self, argument: str) -> None:
        """Sends a result out of the view, or lists what could go."""

        def work(agent: Agent, control: Control) -> str:
            from ...agent.events import Trimmed
            from ...agent.replay import freed

            if not argument:
                return _results(agent)
            entry = control.drop(argument)
            ids = tuple(dict.fromkeys(block.message for block in entry.blocks))
            self._app.presenter.show(Trimmed(stubs=0, results=ids, tokens_saved=freed(entry.blocks)))
            return f"/restore {ids[0][:6]} brings it back"

        self._try(work)

    def restore(self, argument: str) -> None:
        """Brings a result back."""

        def work(agent: Agent, control: Control) -> str:
            from ...agent.events import ResultRestored

            (message,) = control.restore(argument).messages
            self._app.presenter.show(ResultRestored(message=message))
            return "It is in the view again, until a compaction"

        self._try(work)

    async def recall(self, words: str) -> None:
        """Searches all sessions of the project, in a thread, and shows what was found."""
        from ...context.recall_query import Query, QueryError
        from ..archive import search_archive, text_of_search
        from .list_screen import ListScreen

        opened = self._app.conversation.opened
        if opened is None:
            return
        try:
            query = Query(text=words)
        except QueryError as reason:
            self._say(f"{reason}: /recall WORDS")
            return
        found = await asyncio.to_thread(search_archive, opened.workspace, query, session=None, limit=20)
        self._app.push_screen(ListScreen(f"Recall: {words}", text_of_search(found).split("\n")))

    def archive(self, _: str) -> None:
        """Lists the sections of this project's archives."""
        from ..listings import archive_rows
        from .list_screen import ListScreen

        opened = self._app.conversation.opened
        if opened is None:
            return
        rows = archive_rows(opened.workspace)
        lines = [f"{row.session}  {row.compaction}  {row.time[:16]}  {row.messages:>5} messages" for row in rows]
        self._app.push_screen(ListScreen("Archive", lines or ["Nothing was archived yet; /compact does it"]))


def _compact_at(control: Control, share: float | None) -> str:
    control.compact_at(share)
    return "Compaction does not start by itself any more" if share is None else f"Compaction starts at {share:.0%}"


def _results(agent: Agent) -> str:
    """The largest results in the view, each with the id that `/drop` takes."""
    from ...context.messages import Pointer, ToolMessage

    counter = agent.parts.counter
    results = [m for m in agent.session.view.tail if isinstance(m, ToolMessage)]
    whole = [m for m in results if not all(isinstance(block, Pointer) for block in m.content)]
    largest = sorted(whole, key=counter.message, reverse=True)[:12]
    lines = [f"{m.id[:6]}  {tokens(counter.message(m)):>6}  {m.tool} {_subject(m.log)}"[:_SHOWN] for m in largest]
    return (
        "\n".join(["/drop ID sends one of these out of the view:", *lines]) if lines else "There is no result to drop"
    )


def _subject(log: object) -> str:
    from collections.abc import Mapping
    from typing import cast

    facts = cast(Mapping[str, object], log)
    return str(facts.get("path") or facts.get("command") or "")
