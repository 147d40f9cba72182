"""The gauge in one line: how full the window is, where compaction starts, what it has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..agent.events import Gauge

_CELLS = 20


def tokens(number: int) -> str:
    """A number of tokens in at most five characters: `940`, `3.9k`, `118k`, `1.2M`."""
    if number < 1_000:
        return str(number)
    if number < 999_500:
        return f"{number / 1_000:.1f}k" if number < 9_950 else f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def what_left(stubs: int, results: int) -> str:
    """What left the view without a model: `9 results → pointers, 1 argument → a stub`."""
    kinds = ((results, "result", "pointer"), (stubs, "argument", "stub"))
    return ", ".join(
        f"{number} {what}s → {became}s" if number > 1 else f"1 {what} → a {became}"
        for number, what, became in kinds
        if number
    )


def gauge_line(gauge: Gauge, *, short: bool = False) -> str:
    """`~3.9k/200k 2% [▪················│··] 85% · $0.00`; `~` marks what is not the provider's own figure.

    The short form ends with the first percentage.
    """
    mark = "" if gauge.source == "reported" else "~"
    share = min(1.0, gauge.used / gauge.window)  # a window of the user's own may be smaller than what was taken
    trigger = gauge.trigger / gauge.window
    cost = "" if gauge.cost is None else f" · ${gauge.cost:.2f}"
    used = f"{mark}{tokens(gauge.used)}/{tokens(gauge.window)} {share:.0%}"
    if short:
        return used
    return f"{used} [{_bar(share, trigger)}] {trigger:.0%}{cost}"


def _bar(share: float, trigger: float) -> str:
    filled = min(_CELLS, round(share * _CELLS))
    line = min(_CELLS - 1, int(trigger * _CELLS))
    cells = ["▪" if cell < filled else "·" for cell in range(_CELLS)]
    cells[line] = "│"
    return "".join(cells)
