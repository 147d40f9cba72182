"""The first thing on the screen: where we are, what answers, what is loaded, and the session to go on with.

The first frame shows what is known without loading anything; the rest fills in below it when the overview arrives. What
it says is gathered by `cli.overview`; without a model the same place offers ways to get one (`login`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets import Static

from ... import __version__
from ..overview import Overview, shown_folder
from .login import LoginPanel
from .rows import Flow
from .text import MUTED, cut, one_line, safe

if TYPE_CHECKING:
    from ..last_session import LastSession

_NOTICES = 4
"""Notices that are shown; a longer list is cut and counted."""
_BRANCH = 30
"""Cells for the branch and its changes."""
_SANDBOX = 60
_LEAST_FOLDER = 8
_FOLDER = 24
"""Cells of the folder that go before what stands at the right."""
_LEAST_TITLE = 24


class _Head(Visual):
    """Name, folder and branch at the left, trust and sandbox at the right; the folder's end is what has to stay."""

    def __init__(self, overview: Overview, *, known: bool) -> None:
        self.folder = one_line(overview.folder)
        self.git = one_line(overview.git, _BRANCH)
        trust = "trusted" if overview.trusted else "not trusted"
        sandbox = one_line(overview.sandbox, _SANDBOX)
        told = (f"{trust} · {sandbox}", f"{trust} · {sandbox.partition(',')[0]}") if sandbox else ()
        self.rights = (*told, trust, "") if known else ("",)

    def line(self, width: int) -> Content:
        """The line in `width` cells."""
        left = Content.assemble(("deepagent", "bold $text-accent"), (f" {__version__}", MUTED), "  ")
        git = Content.assemble("  ", (self.git, MUTED)) if self.git else Content("")
        free = width - left.cell_length - git.cell_length
        wanted = max(_LEAST_FOLDER, min(cell_len(self.folder), _FOLDER))
        fits = (text for text in self.rights if not text or free - cell_len(text) - 2 >= wanted)
        right = Content.styled(next(fits), MUTED)
        room = free - right.cell_length - (2 if right.plain else 0)
        line = Content.assemble(left, _end_of(self.folder, room), git)
        gap = width - line.cell_length - right.cell_length
        return Content.assemble(line, " " * max(0, gap), right).truncate(width, ellipsis=True)

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        return self.line(width).render_strips(width, 1, style, options)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return 1


class StartRow(Horizontal):
    """A label, and what there is to say."""

    DEFAULT_CSS = """
    StartRow { height: auto; padding: 0 0 0 2; }
    StartRow > .label { width: 9; color: $text-muted; }
    StartRow > .said { width: 1fr; }
    """

    def __init__(self, label: str, said: Visual, *, id: str) -> None:
        super().__init__(id=id)
        self._label, self._said = label, said

    def compose(self) -> ComposeResult:
        yield Static(safe(self._label), classes="label")
        yield Static(self._said, classes="said")

    def say(self, said: Visual) -> None:
        """Says something else in the same place."""
        self._said = said
        for place in self.query(".said").results(Static):  # none before the row is composed
            place.update(said)


class StartPanel(Vertical):
    """The panel at the top of the transcript. `LoginPanel.Done` comes from it where a model was set up in it."""

    DEFAULT_CSS = """
    StartPanel { height: auto; margin: 0 0 1 0; }
    StartPanel > #start-head { margin: 0 0 1 0; }
    StartPanel > #start-last { margin: 1 0 0 0; }
    StartPanel > LoginPanel { padding: 0 2; }
    StartPanel > .-hidden { display: none; }
    """

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is where the agent works, if that is not the working directory."""
        super().__init__()
        self._folder = shown_folder(folder or Path.cwd())
        self._overview: Overview | None = None
        self._login: Literal["", "shown", "focused"] = ""
        self._withdrawn = False

    @property
    def offered(self) -> str | None:
        """The session that Enter on the empty line would go on with; None where none is offered."""
        last = self._overview.last if self._overview and not self._withdrawn else None
        return last.id if last else None

    @property
    def _stands(self) -> bool:
        """Whether its rows are there: the transcript takes away what is far above."""
        return self.is_mounted and self.is_attached

    def compose(self) -> ComposeResult:
        yield Static(_Head(Overview(folder=self._folder), known=False), id="start-head")
        yield StartRow("Model", Flow(["…"], hint="/model"), id="start-model")
        yield StartRow("Loaded", Flow(["…"], hint="/context"), id="start-loaded")

    def on_mount(self) -> None:
        """Shows what came before there was a place for it."""
        self._fill()
        self._fill_login()

    def show(self, overview: Overview) -> None:
        """Fills in what is known by now. May be called at any time, and again after a change of model."""
        self._overview = overview
        if overview.model:
            self._login = ""
        if self._stands:
            self._fill()

    def show_login(self, *, focus: bool = True) -> None:
        """Offers ways to get a model, in the place where one would be named."""
        self._login = "focused" if focus else "shown"
        if self._stands:
            self._fill_login()

    def withdraw_offer(self) -> None:
        """Takes the last session away: something else was begun."""
        self._withdrawn = True
        if self._stands:
            self._fill()

    def _fill(self) -> None:
        overview = self._overview
        if overview is None:
            return
        self.query_one("#start-head", Static).update(_Head(overview, known=True))
        if overview.model:
            self.query(LoginPanel).remove()
            self._say("model", "Model", _model(overview))
            self._say("loaded", "Loaded", _loaded(overview))
        self._say("notice", "Notice", _notices(overview.notices), after="#start-loaded")
        self._say("last", "Last", None if self._withdrawn else _last(overview.last))

    def _fill_login(self) -> None:
        if not self._login:
            return
        for name in ("model", "loaded"):
            self._say(name, "", None)
        panels = self.query(LoginPanel)
        if not panels:
            self.mount(LoginPanel(focus_at_once=self._login == "focused"), after="#start-loaded")
        elif self._login == "focused":
            panels.first().focus_step()

    def _say(self, name: str, label: str, said: Visual | None, *, after: str | None = None) -> None:
        """Puts a row in its place, or takes it away where there is nothing to say."""
        rows = self.query(f"#start-{name}").results(StartRow)
        row = next(iter(rows), None)
        if row is not None:
            row.set_class(said is None, "-hidden")
            if said is not None:
                row.say(said)
        elif said is not None:
            self.mount(StartRow(label, said, id=f"start-{name}"), after=after)


def _end_of(folder: str, width: int) -> str:
    """A folder in `width` cells: its end says more than its beginning."""
    while cell_len(folder) > width and "/" in folder[2:]:
        folder = f"…/{folder[2:].partition('/')[2]}"
    return cut(folder, max(0, width))


def _model(overview: Overview) -> Visual:
    facts = (safe(text, MUTED) for text in (overview.window, overview.price) if text)
    return Flow([safe(one_line(overview.model, 60)), *facts], hint="/model")


def _loaded(overview: Overview) -> Visual:
    """`~3.9k tokens: prompt 1.2k · 10 tools 1.9k · …`."""
    total = f"{'' if overview.exact else '~'}{_tokens(overview.used)} tokens"
    parts = (safe(f"{one_line(load.name, 30)} {_tokens(load.tokens)}", MUTED) for load in overview.loaded)
    return Flow([total, *parts], hint="/context")


def _tokens(number: int) -> str:
    from ..gauge import tokens

    return tokens(number) if number >= 0 else f"−{tokens(-number)}"


def _notices(notices: tuple[str, ...]) -> Visual | None:
    if not notices:
        return None
    lines = [one_line(notice) for notice in notices[:_NOTICES]]
    more = len(notices) - len(lines)
    return safe("\n".join((*lines, *((f"and {more} more",) if more else ()))), "$text-warning")


def _last(last: LastSession | None) -> Visual | None:
    if last is None:
        return None
    title = safe(f"“{one_line(last.title, 60)}”")
    cost = "" if last.cost is None else f"${last.cost:.2f}"
    facts = (
        f"todo {last.todos_done}/{last.todos}" if last.todos else "",
        f"{last.compactions} compaction{'s' if last.compactions > 1 else ''}" if last.compactions else "",
        cost,
        f"going on sends ~{_tokens(last.sends)} tokens" + (f" (${last.sends_cost:.2f})" if last.sends_cost else ""),
    )
    muted = [safe(text, MUTED) for text in facts if text]
    keys = Content.assemble(("Enter on the empty line", "$text-accent"), (": continue", MUTED))
    others = (safe("type: new session", MUTED), safe("Ctrl+R: earlier prompts", MUTED))
    told = (safe(text, MUTED) for text in (last.ago, last.ended) if text)
    return Flow([title, *told], muted, [keys, *others], hint="/resume", shrinks=_LEAST_TITLE)
