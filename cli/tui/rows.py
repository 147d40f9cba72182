"""Lines in columns that fit themselves to the width at hand: what lists and panels of the screen are made of.

These are visuals, not widgets: an `OptionList` or a `Static` draws them, and only those that are seen. Text that comes
from outside has gone through `text` before it gets here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets import OptionList

from .text import MUTED

SCROLLBAR = """
    scrollbar-size-vertical: 1; scrollbar-color: $foreground 20%; scrollbar-color-hover: $foreground 40%;
    scrollbar-color-active: $accent; scrollbar-background: $background; scrollbar-background-hover: $background;
    scrollbar-background-active: $background;
"""
"""CSS of a narrow, quiet scrollbar."""
_DOT = " · "
_GAP = "  "


class Line(Visual):
    """One line: `left`, cut to what is free, and `right` at the right edge, whose columns the caller has aligned."""

    def __init__(self, left: Content, right: Content | None = None) -> None:
        self.left = left
        self.right = right if right is not None else Content("")

    def fitted(self, width: int) -> Content:
        """The line in exactly `width` cells; what stands right goes first where there is no room for both."""
        room = width - self.right.cell_length
        if room < min(self.left.cell_length, width // 4):
            return self.left.truncate(width, ellipsis=True, pad=True)
        return Content.assemble(self.left.truncate(room, ellipsis=True, pad=True), self.right)

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        return self.fitted(width).render_strips(width, 1, style, options)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return self.left.cell_length + self.right.cell_length

    def get_height(self, rules: RulesMap, width: int) -> int:
        return 1


class Flow(Visual):
    """Paragraphs of phrases with ` · ` between them, and `hint` at the right end of the first line.

    A line breaks between phrases, not within, as long as a phrase has room.
    """

    def __init__(self, *paragraphs: Sequence[Content | str], hint: str = "", shrinks: int = 0) -> None:
        """Where the first paragraph does not fit into a line, its first phrase is cut, to `shrinks` cells at least."""
        self.paragraphs = paragraphs
        self.hint = hint
        self.shrinks = shrinks

    def laid_out(self, width: int) -> Content:
        """The text with line breaks where they are needed."""
        room = width - len(self.hint) - len(_GAP)
        hint = self.hint if room > width // 2 else ""
        first, *others = self.paragraphs
        if self.shrinks:
            first = _shrunk(first, room if hint else width, self.shrinks)
        lines = _lines(first, width, room if hint else 0)
        lines += [line for one in others for line in _lines(one, width, 0)]
        if hint and lines:
            pad = " " * max(0, width - len(hint) - lines[0].cell_length)
            lines[0] = Content.assemble(lines[0], pad, (hint, MUTED))
        return Content("\n").join(lines)

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        return self.laid_out(width).render_strips(width, height, style, options)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return self.laid_out(width).get_height(rules, width)


def _shrunk(phrases: Sequence[Content | str], width: int, least: int) -> Sequence[Content | str]:
    """The phrases in one line, the first of them cut before its closing mark, if `least` cells are enough for it."""
    longest, *others = (Content.assemble(phrase) for phrase in phrases)
    room = width - sum(len(_DOT) + phrase.cell_length for phrase in others)
    if longest.cell_length <= room or room < least:
        return phrases
    return [Content.assemble(longest.truncate(room - 1, ellipsis=True), longest[-1:]), *others]


def _lines(phrases: Sequence[Content | str], width: int, first: int) -> list[Content]:
    """Phrases in lines of `width` cells; the first line has `first`, if not 0."""
    lines: list[Content] = []
    line, limit = Content(""), first or width
    for phrase in phrases:
        longer = Content.assemble(line, (_DOT, MUTED), phrase) if line else Content.assemble(phrase)
        if line and longer.cell_length > limit:
            lines.append(line)
            line, limit = Content.assemble(phrase), width
        else:
            line = longer
        if not lines and first and line.cell_length > first:  # one phrase alone is too long for the first line
            head, *rest = line.wrap(first)
            lines += [head.rstrip(), *(Content(" ").join(rest).wrap(width) if rest else ())]
            line, limit = lines.pop(), width
    return [*lines, line]


class Pairs(Visual):
    """Names and what they mean, in two columns; a meaning goes on below itself."""

    def __init__(self, pairs: Iterable[tuple[Content, Content]]) -> None:
        self.pairs = tuple(pairs)
        self.column = max((name.cell_length for name, _ in self.pairs), default=0) + len(_GAP)

    def laid_out(self, width: int) -> Content:
        """The text in `width` cells."""
        room = max(width - self.column, 1)
        lines: list[Content] = []
        for name, meaning in self.pairs:
            for at, line in enumerate(meaning.wrap(room)):
                left = name.truncate(self.column, pad=True) if not at else Content.blank(self.column)
                lines.append(Content.assemble(left, line.rstrip()))
        return Content("\n").join(lines)

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        return self.laid_out(width).render_strips(width, height, style, options)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return self.laid_out(width).get_height(rules, width)


class ChoiceList(OptionList):
    """A list without ornament. Its cursor is a coloured line; digits choose where `numbered`."""

    DEFAULT_CSS = f"""
    ChoiceList, ChoiceList:focus {{
        border: none; padding: 0; background: transparent; background-tint: $background 0%; {SCROLLBAR}
        & > .option-list--option {{ padding: 0 1; }}
        & > .option-list--option-highlighted {{ background: $foreground 8%; color: $foreground; text-style: none; }}
    }}
    ChoiceList:focus > .option-list--option-highlighted {{ background: $accent 25%; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(digit), f"choose({digit})", show=False) for digit in range(1, 10)
    ]

    def __init__(self, *, numbered: bool = False, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.numbered = numbered

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.numbered if action == "choose" else super().check_action(action, parameters)

    def action_choose(self, number: int) -> None:
        """Picks an entry by its number, counted from 1."""
        if number <= self.option_count:
            self.highlighted = number - 1
            self.action_select()


def bar(filled: float, mark: float, width: int, *, fill: str = "█") -> Content:
    """A gauge of `width` cells: the share that is full, and a line at another share. `fill` is what a full cell is."""
    cells = max(1, width)
    full = min(cells, round(filled * cells))
    line = min(cells - 1, int(mark * cells))
    parts: list[tuple[str, str]] = []
    for start, end, cell, style in _pieces(full, line, cells, fill):
        parts.append((cell * (end - start), style))
    return Content.assemble(("[", MUTED), *parts, ("]", MUTED))


def _pieces(full: int, line: int, cells: int, fill: str) -> Sequence[tuple[int, int, str, str]]:
    """The runs of equal cells, from the left."""
    style = "$warning" if full > line else "$accent"
    if full > line:
        return (
            (0, line, fill, style),
            (line, line + 1, "│", ""),
            (line + 1, full, fill, style),
            (full, cells, "·", MUTED),
        )
    return ((0, full, fill, style), (full, line, "·", MUTED), (line, line + 1, "│", ""), (line + 1, cells, "·", MUTED))
