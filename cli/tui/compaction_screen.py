"""A compaction before it happens: what goes, what stays word for word, what the summary costs; and its focus.

What would happen is planned by `context.compact`; that it happens is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ..gauge import tokens
from .rows import ChoiceList, Line, Pairs, bar
from .text import MUTED, one_line, safe

if TYPE_CHECKING:
    from ...agent.agent import Agent
    from ...context.compact import Preview
    from ...context.messages import Message

_BAR = 32
"""Cells of the two gauges."""
_FOCUS = "what the summary should hold above all (may stay empty)"
_KEYS = "Enter compact   Ctrl+N without a model   ↑↓ move   → open   Esc back"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionChoice:
    """What the user wants."""

    focus: str
    """Empty without one."""
    model: bool
    """A model writes the summary; else it is made from the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Messages that share a fate. The figures are tokens."""

    name: str
    size: int
    lines: tuple[tuple[str, int], ...]
    """A line for each message, and its tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFigures:
    """All that the screen shows."""

    preview: Preview
    window: int
    trigger: int
    cost: float | None
    """US dollars of the summary at most; None where the price is unknown."""
    parts: tuple[Part, ...]


def figures_of(agent: Agent) -> CompactionFigures | None:
    """What a compaction would do now; None where nothing could go."""
    from ...context.messages import UserMessage

    preview = agent.control.preview()
    if preview is None:
        return None
    gauge = agent.gauge()
    asked = {m.id: m for m in agent.session.messages() if isinstance(m, UserMessage)}
    repeated = [asked[id] for id in preview.requests]
    return CompactionFigures(
        preview=preview,
        window=gauge.window,
        trigger=gauge.trigger,
        cost=_cost(agent, preview),
        parts=(
            _part(agent, "Goes to the archive", preview.plan.evicted, "message"),
            _part(agent, "Stays word for word in the summary", repeated, "request"),
            _part(agent, "Stays as it is behind the summary", preview.plan.kept, "message"),
        ),
    )


def _part(agent: Agent, name: str, messages: Sequence[Message], what: str) -> Part:
    from ...agent.tools.answers import count

    lines = tuple((_line_of(message), agent.parts.counter.message(message)) for message in messages)
    return Part(name=f"{name}: {count(len(lines), what)}", size=sum(size for _, size in lines), lines=lines)


def _line_of(message: Message) -> str:
    from ...context.messages import AssistantMessage, ToolMessage, text_of

    if isinstance(message, ToolMessage):
        subject = message.log.get("command") or message.log.get("path") or ""
        return f"● {message.tool}  {subject}"
    if isinstance(message, AssistantMessage):
        return message.text.strip() or f"calls {', '.join(call.name for call in message.calls)}"
    return f"❯ {text_of(message).strip()}"


def _cost(agent: Agent, preview: Preview) -> float | None:
    from ...agent.model.types import Completed
    from ...context.entries import Usage

    usage = Usage(input=preview.sent, output=preview.record, cache_read=preview.cached)
    return agent.parts.summary_price(Completed(content=(), stop="end", usage=usage)) if preview.sent else None


class CompactionScreen(Screen["CompactionChoice | None"]):
    """Gives what is to be done, or None. The line keeps the focus; the arrows move in the list."""

    DEFAULT_CSS = """
    CompactionScreen { padding: 0 1; }
    CompactionScreen > Static { height: auto; }
    CompactionScreen > #compaction-rows { height: 1fr; margin: 1 0; scrollbar-gutter: stable; }
    CompactionScreen > #compaction-about, CompactionScreen > #compaction-keys { color: $text-muted; }
    CompactionScreen > Input { height: 1; border: none; padding: 0 1; margin: 1 0; background: $foreground 6%; }
    CompactionScreen > Input:focus { border: none; background: $foreground 12%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", show=False),
        Binding("ctrl+n", "decide(False)", show=False, priority=True),
        *(Binding(key, f"move('{key}')", show=False, priority=True) for key in ("up", "down", "pageup", "pagedown")),
        Binding("right", "fold(False)", show=False, priority=True),
        Binding("left", "fold(True)", show=False, priority=True),
    ]

    def __init__(self, figures: CompactionFigures) -> None:
        super().__init__()
        self._figures = figures
        self._open: set[int] = set()
        """The parts that are unfolded."""

    def compose(self) -> ComposeResult:
        yield Static(Content.assemble(("Compaction", "bold $text-accent"), "  before it happens"))
        yield Static(_gauges(self._figures), id="compaction-gauges")
        rows = ChoiceList(id="compaction-rows")
        rows.can_focus = False  # the line keeps the focus
        yield rows
        yield Static(safe(_about(self._figures)), id="compaction-about")
        focus = Input(placeholder=_FOCUS)
        focus.cursor_blink = False
        yield focus
        yield Static(safe(_KEYS), id="compaction-keys")

    def on_mount(self) -> None:
        """Shows the parts, folded."""
        self.query_one(Input).focus()
        self._show(0)

    def _show(self, highlighted: int) -> None:
        rows = self.query_one(ChoiceList)
        rows.set_options(self._options())
        rows.highlighted = highlighted

    def _options(self) -> Iterator[Option]:
        for at, part in enumerate(self._figures.parts):
            mark = "  " if not part.lines else "▾ " if at in self._open else "▸ "
            yield Option(_row(Content.assemble((mark, MUTED), part.name), part.size), id=f"part-{at}")
            for number, (line, size) in enumerate(part.lines if at in self._open else ()):
                yield Option(_row(safe(f"    {one_line(line, 200)}", MUTED), size, MUTED), id=f"line-{at}-{number}")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In a text, left and right are the line's."""
        return not (action == "fold" and self.query_one(Input).value) and super().check_action(action, parameters)

    def action_move(self, key: str) -> None:
        """Moves in the list."""
        rows = self.query_one(ChoiceList)
        move = {"up": rows.action_cursor_up, "down": rows.action_cursor_down, "pageup": rows.action_page_up}
        move.get(key, rows.action_page_down)()

    def action_fold(self, folded: bool) -> None:
        """Opens the part under the cursor, or closes it."""
        rows = self.query_one(ChoiceList)
        option = rows.highlighted_option
        if option is None:
            return
        at = int((option.id or "").split("-")[1])
        (self._open.discard if folded else self._open.add)(at)
        self._show(rows.highlighted or 0 if not folded else _place(self._figures.parts, self._open, at))

    @on(OptionList.OptionSelected)
    def _clicked(self) -> None:
        option = self.query_one(ChoiceList).highlighted_option
        if option is not None:
            self.action_fold(int((option.id or "").split("-")[1]) in self._open)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_decide(True)

    def action_decide(self, model: bool) -> None:
        """Compacts."""
        focus = self.query_one(Input).value.strip()
        self.dismiss(CompactionChoice(focus=focus if model else "", model=model))

    def action_close(self) -> None:
        """Goes back; nothing has happened."""
        self.dismiss(None)


def _place(parts: Sequence[Part], opened: set[int], at: int) -> int:
    """The row of a part."""
    return at + sum(len(parts[other].lines) for other in opened if other < at)


def _row(left: Content, size: int, style: str = "") -> Line:
    return Line(left, Content.styled(f"{size:>11,}", style))


def _gauges(figures: CompactionFigures) -> Pairs:
    preview = figures.preview
    both = (("now", preview.before, ""), ("after", preview.after, "at most "))
    return Pairs((Content.styled(name, MUTED), _gauge(used, about, figures)) for name, used, about in both)


def _gauge(used: int, about: str, figures: CompactionFigures) -> Content:
    filled, mark = used / figures.window, figures.trigger / figures.window
    text = f"{about}{tokens(used)} of {tokens(figures.window)} tokens, {filled:.0%}"
    return Content.assemble(bar(filled, mark, _BAR, fill="▄"), f"  {text}")


def _about(figures: CompactionFigures) -> str:
    preview = figures.preview
    if not preview.sent:
        return "No model is asked: the summary is made from the log"
    cached = f", {tokens(preview.cached)} of them cached" if preview.cached else ""
    cost = f", at most ${figures.cost:.2f}" if figures.cost is not None else ""
    little = " It may free nothing: there is little to go." if preview.after >= preview.before else ""
    return (
        f"A model reads {tokens(preview.sent)} tokens{cached}, and writes up to {tokens(preview.record)}{cost}.{little}"
    )
