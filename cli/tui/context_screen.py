"""`/context`: what fills the window, in rows that add up to the figure of the gauge.

The figures come from `context.accounting`; here they are laid out, folded and unfolded. Counting happens in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.css.styles import RulesMap
from textual.screen import Screen
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from .rows import ChoiceList, Flow, Line, bar
from .text import MUTED, one_line, safe

if TYPE_CHECKING:
    from ...agent.agent import Agent
    from ...agent.events import Gauge
    from ...context.accounting import Account, Row
    from ...context.entries import Entry

_PARTS = 200
"""Parts of a row that are listed; the rest is one line."""
_TOTAL = "total"
_ENOUGH = 3
"""Reports from which the growth of a turn can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFigures:
    """All that the screen shows."""

    account: Account
    gauge: Gauge
    model: str
    exact: bool
    """Rows were counted by the tokenizer, not estimated."""
    automatic: bool = True
    """Compaction starts by itself."""
    reported: str = ""
    """How long ago the provider reported; empty where it never did."""
    cached: float | None = None
    """Share of the last request that came from the provider's cache."""
    growth: int = 0
    """Tokens that a turn added, on average since the last compaction; 0 where unknown."""


def figures_of(agent: Agent) -> Callable[[], ContextFigures]:
    """What gets an agent's figures. Call this on the agent's thread, and what it returns on another."""
    from ...context.entries import Compacted, UsageReported
    from ..last_session import ago

    view, gauge, entries = agent.session.view, agent.gauge(), tuple(agent.session.entries)
    model, counter = agent.parts.model.name, agent.parts.counter

    def look() -> ContextFigures:
        counter.prepare()
        last = next((e for e in reversed(entries) if isinstance(e, UsageReported) and e.purpose == "turn"), None)
        start = max((at for at, entry in enumerate(entries) if isinstance(entry, Compacted)), default=0)
        return ContextFigures(
            account=agent.account(view),
            gauge=gauge,
            model=model,
            exact=counter.exact,
            automatic=agent.parts.settings.context.auto_compact,
            reported=ago(last.time) if last else "",
            cached=last.usage.cache_read / last.usage.input if last and last.usage.input else None,
            growth=_growth(entries[start:]),
        )

    return look


def _growth(entries: Sequence[Entry]) -> int:
    from ...context.entries import UsageReported

    inputs = [e.usage.input for e in entries if isinstance(e, UsageReported) and e.purpose == "turn"]
    return max(0, (inputs[-1] - inputs[0]) // (len(inputs) - 1)) if len(inputs) >= _ENOUGH else 0


class _Gauge(Visual):
    """The bar over the whole width, and where compaction starts."""

    def __init__(self, figures: ContextFigures) -> None:
        self.used = figures.account.used / figures.gauge.window
        self.trigger = figures.gauge.trigger / figures.gauge.window
        self.words = f"  compacts at {figures.gauge.trigger:,} ({self.trigger:.0%})"

    def line(self, width: int) -> Content:
        """The line in `width` cells."""
        return Content.assemble(bar(self.used, self.trigger, width - len(self.words) - 2), (self.words, MUTED))

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        return self.line(width).render_strips(width, 1, style, options)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return 1


class ContextScreen(Screen[None]):
    """Rows to move in; those with parts open."""

    DEFAULT_CSS = """
    ContextScreen { padding: 0 1; }
    ContextScreen > Static { height: auto; }
    ContextScreen > #context-columns { margin: 1 0 0 0; padding: 0 2 0 1; }
    ContextScreen > #context-rows { height: 1fr; scrollbar-gutter: stable; }
    ContextScreen > #context-room, ContextScreen > #context-keys { color: $text-muted; }
    ContextScreen > #context-keys { margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", show=False),
        Binding("right", "unfold", show=False),
        Binding("left", "fold", show=False),
    ]

    def __init__(self, look: Callable[[], ContextFigures]) -> None:
        """`look` gets the figures, as `figures_of` does; it is called in a thread."""
        super().__init__()
        self._look = look
        self._figures: ContextFigures | None = None
        self._open: set[int] = set()
        """The rows that are unfolded."""

    def compose(self) -> ComposeResult:
        yield Static(safe("Counting …"), id="context-head")
        yield Static(id="context-gauge")
        yield Static(id="context-columns")
        yield ChoiceList(id="context-rows")
        yield Static(id="context-room")
        yield Static(safe("↑↓ move   Enter open   Esc back"), id="context-keys")

    @work
    async def on_mount(self) -> None:
        """Counts, then shows."""
        self.query_one(ChoiceList).focus()
        figures = self._figures = await asyncio.to_thread(self._look)
        self._say("#context-head", _head(figures))
        self._say("#context-gauge", _Gauge(figures))
        self._say("#context-columns", Line(Content(""), Content.styled(f"{'tokens':>9}{'%':>7}  {'how':<10}", MUTED)))
        self._say("#context-room", Content(_room(figures)))
        self._show_rows(0)

    def _say(self, selector: str, said: Visual) -> None:
        self.query_one(selector, Static).update(said)

    def _show_rows(self, highlighted: int) -> None:
        choices = self.query_one(ChoiceList)
        choices.set_options(self._options())
        choices.highlighted = highlighted

    def _options(self) -> Iterator[Option]:
        """The rows, and below those that are unfolded their parts; the id tells which row it is."""
        figures = self._figures
        assert figures is not None
        rows = figures.account.rows
        for at, row in enumerate(rows):
            mark = ("▾ " if at in self._open else "▸ ") if row.parts else "  "
            how = "" if at == len(rows) - 1 else _how(figures)
            yield Option(_line(mark, row.name, row.tokens, figures, how=how, note=row.note), id=f"row-{at}")
            for number, part in enumerate(_shown(row) if at in self._open else ()):
                line = _line("    ", part.name, part.tokens, figures, how=_how(figures), note=part.note, style=MUTED)
                yield Option(line, id=f"part-{at}-{number}")
        yield Option(_line("  ", "Together", figures.account.used, figures, how="", style="bold"), id=_TOTAL)

    @property
    def _row(self) -> int | None:
        """The row under the cursor, or the one whose part is."""
        option = self.query_one(ChoiceList).highlighted_option
        return None if option is None or option.id == _TOTAL else int((option.id or "").split("-")[1])

    @on(OptionList.OptionSelected)
    def _toggle(self) -> None:
        """Enter: opens a row, or closes it."""
        if self._row in self._open:
            self.action_fold()
        else:
            self.action_unfold()

    def action_unfold(self) -> None:
        """Shows the parts of a row."""
        row = self._row
        if row is not None and self._figures is not None and self._figures.account.rows[row].parts:
            self._open.add(row)
            self._show_rows(self.query_one(ChoiceList).highlighted or 0)

    def action_fold(self) -> None:
        """Hides them; from a part, the cursor goes to its row."""
        row = self._row
        if row is not None and row in self._open:
            choices = self.query_one(ChoiceList)
            place = choices.get_option_index(f"row-{row}")
            self._open.discard(row)
            self._show_rows(place)

    def action_close(self) -> None:
        """Goes back."""
        self.dismiss(None)


def _how(figures: ContextFigures) -> str:
    return "counted" if figures.exact else "estimated"


def _shown(row: Row) -> Sequence[Row]:
    """The parts that are listed; what is left out is one more, so that they still add up."""
    from ...context.accounting import Row

    rest = row.parts[_PARTS:]
    more = (Row(name=f"{len(rest):,} more", tokens=sum(part.tokens for part in rest)),) if rest else ()
    return (*row.parts[:_PARTS], *more)


def _line(
    mark: str, name: str, tokens: int, figures: ContextFigures, *, how: str, note: str = "", style: str = ""
) -> Line:
    """A row in its columns. The note stands behind the name, which is the first to be cut."""
    left = Content.assemble((mark, MUTED), safe(one_line(name, 200), style), "  ", safe(one_line(note, 100), MUTED))
    share = 100 * tokens / figures.gauge.window
    numbers = f"{_number(tokens):>9}{_number(share, 1):>7}"
    return Line(left, Content.assemble((numbers, style), (f"  {how:<10}", MUTED)))


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}".replace("-", "−")


def _head(figures: ContextFigures) -> Visual:
    gauge, source = figures.gauge, figures.account.source
    used = f"{figures.account.used:,} of {gauge.window:,} tokens, {figures.account.used / gauge.window:.0%}"
    facts = (
        f"{source} {figures.reported}" if source == "reported" and figures.reported else source,
        one_line(figures.model, 40).rpartition("/")[2],
        "" if figures.cached is None else f"cache hit {figures.cached:.0%}",
        "" if gauge.cost is None else f"${gauge.cost:.2f}",
    )
    first = Content.assemble(("Context", "bold $text-accent"), f"  {used}")
    return Flow([first, *(safe(fact, MUTED) for fact in facts if fact)])


def _room(figures: ContextFigures) -> str:
    gauge = figures.gauge
    room, reserve = gauge.trigger - figures.account.used, gauge.window - gauge.budget
    kept = f"{reserve:,} kept for the answer" if reserve else ""
    if not figures.automatic:
        said = f"Room  {max(0, gauge.budget - figures.account.used):,} tokens; automatic compaction is off"
    elif room <= 0:
        said = f"Room  none, {-room:,} over: the next request compacts first"
    else:
        turns = f", about {room // figures.growth} turns of {figures.growth:,}" if figures.growth else ""
        said = f"Room  {room:,} until compaction{turns}"
    return "; ".join(part for part in (said, kept) if part)
