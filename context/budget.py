"""How much may be sent: the window, what is held back for the answer, and every limit that follows from the two.

Finding the window out is the agent's business; this module only calculates. All figures are tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

WindowSource = Literal["user", "server", "overflow", "table", "assumed"]

HOSTED_WINDOW = 200_000
"""Assumed where a hosted model's window is unknown."""
LOCAL_WINDOW = 32_000
"""Assumed for a server on this machine until it is found out."""
SMALL_WINDOW = 16_384
"""Tokens of a window up to which prompt and tools are told of in short."""
LEAST_WINDOW = 1_000
"""Tokens of the smallest window that the limits below are made for."""
ASSUMED_KEEP_MESSAGES = 6
"""Messages that stay verbatim in a compaction while the window is only assumed."""


_SHARES = (
    ("compact_at", 0.02, 1.0),
    ("trim_at", 0.0, 1.0),
    ("trim_to", 0.0, 1.0),
    ("prepare_at", 0.0, 1.0),
    ("keep", 0.0, 0.8),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """When and how far the context is made smaller."""

    window: int | None = None
    """The model's window in tokens; found out where not given."""
    compact_at: float = 0.85
    """Share of the window at which older messages are compacted."""
    trim_at: float = 0.60
    """Share of the window from which old arguments and results leave the view, where that pays."""
    trim_to: float = 0.20
    """Share of the window down to which old results leave it then."""
    keep: float = 0.10
    """Share of the budget that stays verbatim in a compaction."""
    prepare_at: float = 0.70
    """Share of the window from which the summary of a compaction to come is prepared while the work goes on."""
    auto_compact: bool = True
    """Trim and compact by itself. Offloading and the rescue from an overflow stay on without it."""
    keep_results: tuple[str, ...] = ()
    """Tools whose results leave the view with a compaction only."""
    tool_limits: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens from which the result of a tool goes to a file, by the tool's name, where the usual limit does not suit.

    They may be lower than the usual limit or up to a quarter of the budget.
    """

    def __post_init__(self) -> None:
        for name, low, high in _SHARES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}; it must lie between {low} and {high}")
        if self.window is not None and self.window < LEAST_WINDOW:
            raise ValueError(f"window is {self.window}; it must be at least {LEAST_WINDOW} tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A model's window."""

    tokens: int
    source: WindowSource
    max_output: int | None = None
    """The longest answer that the model can give; None where unknown."""
    input_only: bool = False
    """`tokens` limits the request alone, not request and answer together."""


def assumed_window(*, local: bool) -> Window:
    """The window to go by while nothing is known."""
    return Window(tokens=LOCAL_WINDOW if local else HOSTED_WINDOW, source="assumed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits that follow from a window."""

    window: Window
    reserve: int
    """Held back for the answer."""
    tokens: int
    """What a request may have at most."""
    trigger: int
    """Compaction starts here."""
    trim: int
    """Steps without a model start here, where they pay."""
    trim_to: int
    """And end here."""
    prepare: int
    """The summary of a compaction to come may be prepared from here on."""
    keep: int
    """Stays verbatim in a compaction."""
    keep_messages: int | None
    """Instead of `keep`, where the window is only assumed."""
    tool_limits: Mapping[str, int] = field(default_factory=dict[str, int])
    """Instead of `result_limit`, for some tools."""

    @property
    def result_limit(self) -> int:
        """A tool result longer than this goes to a file."""
        return max(min(20_000, self.tokens // 10), min(2_000, self.tokens // 4))

    def limit_of(self, tool: str) -> int:
        """`result_limit` for the results of one tool."""
        return min(self.tool_limits.get(tool, self.result_limit), self.step_limit)

    @property
    def memory_limit(self) -> int:
        """AGENTS.md files have together at most this many."""
        return self.tokens // 4

    @property
    def small(self) -> bool:
        """Little fits into the window: every word of the prompt counts."""
        return self.window.tokens <= SMALL_WINDOW

    @property
    def step_limit(self) -> int:
        """The results of one step are together at most this long."""
        return self.tokens // 4

    @property
    def user_limit(self) -> int:
        """A user message longer than this goes to a file."""
        return min(50_000, self.tokens // 4)

    @property
    def summary_limit(self) -> int:
        """The longest summary."""
        return min(2_000, self.tokens // 20)

    @property
    def requests_limit(self) -> int:
        """User messages that a compaction repeats word for word have together at most this."""
        return min(20_000, self.tokens // 10)

    @property
    def pins_limit(self) -> int:
        """Pins have together at most this."""
        return self.tokens // 20

    @property
    def reattach_limit(self) -> int:
        """What is put back of an earlier record has together at most this."""
        return min(1_000, self.tokens // 40)

    @property
    def head_limit(self) -> int:
        """All that a compaction keeps word for word."""
        return self.tokens // 5


def budget_for(window: Window, settings: ContextSettings) -> Budget:
    """The limits for `window`."""
    longest = window.tokens if window.max_output is None else window.max_output
    reserve = 0 if window.input_only else min(longest, int(0.13 * window.tokens), 32_000)
    tokens = window.tokens - reserve
    trigger = min(int(settings.compact_at * window.tokens), int(0.98 * tokens))
    return Budget(
        window=window,
        reserve=reserve,
        tokens=tokens,
        trigger=trigger,
        trim=min(int(settings.trim_at * window.tokens), trigger),
        trim_to=min(int(settings.trim_to * window.tokens), trigger),
        prepare=int(settings.prepare_at * window.tokens),
        keep=int(settings.keep * tokens),
        keep_messages=ASSUMED_KEEP_MESSAGES if window.source == "assumed" else None,
        tool_limits=settings.tool_limits,
    )
