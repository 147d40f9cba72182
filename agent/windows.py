"""What is known of a model before it is asked: its window and its price. Nothing here reaches the network."""

from __future__ import annotations

from ..context.budget import LOCAL_WINDOW, Window, assumed_window
from .config import Settings
from .errors import ConfigError
from .known_windows import KnownWindow
from .model.catalog import ModelInfo, cost
from .model.choose import is_local, server_of
from .model.served import Served
from .model.types import Completed, Model


def window_of(settings: Settings, model: Model, info: ModelInfo | None, known: KnownWindow | None = None) -> Window:
    """The user's figure, else what was found out earlier, else the table's, else an assumption."""
    longest = info.max_output if info else None
    if settings.context.window is not None:
        return Window(tokens=settings.context.window, source="user", max_output=longest)
    if known is not None:
        return Window(tokens=known.tokens, source=known.source, max_output=longest)
    server = server_of(model)
    own = is_local(model) or (server is not None and server.ollama)
    if info is not None and info.max_input and not own:  # what a server of one's own serves, only it knows
        return Window(tokens=info.max_input, source="table", max_output=longest, input_only=info.input_only)
    return assumed_window(local=own)


def served_window(served: Served, *, chosen_by_request: bool, assumed: int) -> Window | None:
    """The window that follows from what a server says; None where it says nothing of it.

    `chosen_by_request`: the server serves what a request names, up to the ceiling. Then the longest of what is loaded
    already and our usual figure is best: a shorter one would load the model anew and leave little room to work.
    `assumed` (tokens) is the figure so far, which a ceiling can only lower.
    """
    if chosen_by_request:
        wanted = served.fixed or max(served.tokens or 0, LOCAL_WINDOW)
        return Window(tokens=min(wanted, served.ceiling or wanted), source="server")
    if tokens := served.tokens or served.fixed:
        return Window(tokens=min(tokens, served.ceiling or tokens), source="server")
    if served.ceiling is not None and served.ceiling < assumed:
        return Window(tokens=served.ceiling, source="server")
    return None


def price_of(info: ModelInfo | None, completed: Completed) -> float | None:
    """US dollars of a call: as the provider says, else by the table; None where neither knows."""
    if completed.cost is not None:
        return completed.cost
    if info is None or completed.usage is None:
        return None
    return cost(info, completed.usage)


def check_price(settings: Settings, info: ModelInfo | None, model: Model) -> None:
    """Raises `ConfigError` if a limit in dollars is set and the price is unknown: it could not be kept."""
    if settings.limits.max_cost is not None and (info is None or not info.prices):
        raise ConfigError(f"--max-cost needs a price, and the price of {model.name} is not known")
