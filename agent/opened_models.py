"""The models of an agent: the one that works and the one that writes summaries, with their windows and prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..context.budget import Window
from ..context.cache import CacheTerms
from .config import Settings
from .errors import ConfigError
from .known_windows import KnownWindows
from .model.catalog import model_info
from .model.choose import open_model
from .model.prices import cache_terms
from .model.retry import RetryingModel, RetryPolicy
from .model.types import Completed, Model
from .windows import check_price, price_of, window_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of an agent, and what is known of them."""

    work: Model
    summary: Model
    window: Window
    summary_window: Window
    known: KnownWindows
    cache: CacheTerms
    sees: bool
    """The working model is known to see images."""
    price: Callable[[Completed], float | None]
    summary_price: Callable[[Completed], float | None]


def open_models(
    settings: Settings,
    environ: Mapping[str, str],
    keys: Mapping[str, str],
    known: KnownWindows,
    *,
    given: Model | None = None,
    demo: Path | None = None,
) -> Models:
    """Opens the models that the settings name, or `given` for the working one. Raises `ConfigError` or `AuthError`."""
    open_named = partial(_open_model, settings=settings, environ=environ, keys=keys, demo=demo)
    work = _retrying(given or open_named(_model_name(settings)), settings)
    summary = _retrying(open_named(settings.summary_model), settings) if settings.summary_model else work
    info, summary_info = model_info(work.name), model_info(summary.name)
    check_price(settings, info, work)
    return Models(
        work=work,
        summary=summary,
        window=window_of(settings, work, info, known.of(work)),
        summary_window=window_of(settings, summary, summary_info, known.of(summary)),
        known=known,
        cache=cache_terms(info.prices if info else ()),
        sees=bool(info and info.supports_vision),
        price=partial(price_of, info),
        summary_price=partial(price_of, summary_info),
    )


def _model_name(settings: Settings) -> str:
    if settings.model is None:
        raise ConfigError("no model is set")
    return settings.model


def _open_model(
    name: str, *, settings: Settings, environ: Mapping[str, str], keys: Mapping[str, str], demo: Path | None
) -> Model:
    return open_model(
        name,
        lane=settings.provider.lane,
        keys=lambda variable: environ.get(variable) or keys.get(variable),
        environ=environ,
        window=settings.context.window,
        demo=demo,
    )


def _retrying(model: Model, settings: Settings) -> Model:
    return RetryingModel(model, RetryPolicy(attempts=settings.provider.retries + 1))
