"""What is known of a model before it is asked: its window and its price. Nothing here reaches the network."""

from __future__ import annotations

from ..context.budget import Window, assumed_window
from .config import Settings
from .errors import ConfigError
from .model.catalog import ModelInfo, cost
from .model.choose import is_local
from .model.types import Completed, Model


def window_of(settings: Settings, model: Model, info: ModelInfo | None) -> Window:
    """The user's figure, else the table's, else an assumption."""
    longest = info.max_output if info else None
    if settings.context.window is not None:
        return Window(tokens=settings.context.window, source="user", max_output=longest)
    if info is not None and info.max_input and not is_local(model):  # what a local server serves, only it knows
        return Window(tokens=info.max_input, source="table", max_output=longest, input_only=info.input_only)
    return assumed_window(local=is_local(model))


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
